"""The recipe: one typed, fully resolved description of a build. Unknown keys are errors."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import MISSING, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from modelwright._dataclass import dataclass
from modelwright._json import dumps, loads, plain
from modelwright._lazy import lazy
from modelwright._output import SEAL, write_output
from modelwright._typed import MisfitError, typed
from modelwright.errors import InputError, UsageError, did_you_mean
from modelwright.models import require_file
from modelwright.stages.check import CheckParams
from modelwright.stages.compile import CompileParams
from modelwright.stages.export import ExportParams
from modelwright.stages.optimize import OptimizeParams
from modelwright.stages.quantize import QuantizeParams
from modelwright.stages.validate import ValidateParams
from modelwright.vocabulary import Data, PixelInputs, Sized

if TYPE_CHECKING:
    from modelwright import knowledge
else:
    knowledge = lazy("modelwright.knowledge")

Layer = dict[str, Any]
_SEALED = "seal"
_STAGES = ("export", "optimize", "quantize", "compile")
_SECTIONS = ("inputs", *_STAGES, "check", "validation")


@dataclass(frozen=True)
class Reasons:
    """Why values are what they are, in words; null where there was nothing to decide. `sizes` are those that were
    fixed, each with who says so; `passes` those of a preset that are left out, and by which finding."""

    reduce_range: str | None = None
    chip: str | None = None
    sizes: tuple[Sized, ...] = ()
    passes: tuple[str, ...] = ()


@dataclass(frozen=True)
class TuneTable:
    """What a search may do otherwise than this recipe, and what not; a build does not read it. `pin` holds a session
    setting for every variant (`threads=1`), or an axis as it is; `forbid` leaves an axis or one change out."""

    axes: tuple[str, ...] = ()
    pin: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    add: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        words = (*self.axes, *self.pin, *self.forbid, *self.add)
        if words:
            knowledge.require_changes(words)


def _told(description: str, default: Any = MISSING) -> Any:
    return field(default=default, metadata={"description": description})


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A section that is null is a stage that does not run."""

    schema_version: Literal[2] = 2
    policy_version: int = _told("What `auto` meant when this was resolved.")
    target: str = _told("What it is for, for example qnn-npu:soc=x-elite.")
    precision: str = _told("The precision the finished artifact must measure.")
    export: ExportParams | None = _told("Hugging Face sources only.")
    inputs: PixelInputs | None = _told("Images as the finished model takes them; null as the source does.", None)
    optimize: OptimizeParams | None
    quantize: QuantizeParams | None
    data: Data = _told("Real samples; a word alone is its source.", Data())
    compile: CompileParams | None
    check: CheckParams | None = _told("What the target itself is asked; null for the CPU.", None)
    validation: ValidateParams = ValidateParams()
    tune: TuneTable | None = _told("What a search may do otherwise; a build does not read it.", None)
    reasons: Reasons = _told("Written by resolving, never read.", Reasons())

    def save(self, path: str | Path) -> Path:
        """Write it to a .toml or .json file, to be edited and built from."""
        write_output(Path(path), recipe_file(self, Path(path).suffix))
        return Path(path)


def read_layer(path: Path) -> Layer:
    """A recipe file, whole or partial, TOML or JSON; only its syntax is checked here."""
    require_file(path)
    try:
        text = path.read_text(encoding="utf-8")
        found = loads(text) if path.suffix.lower() == ".json" else _toml_table(text)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist", cause="no such file", fix="check the path of the recipe") from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path.name} cannot be read as a recipe", cause=str(error), fix="`wright config` writes one to start from"
        ) from None
    if not isinstance(found, dict):
        raise InputError(f"{path.name} is not a recipe", cause="it holds no table", fix="see `wright config --help`")
    layer = {key: value for key, value in found.items() if key != _SEALED}
    _refuse_old(layer, path.name)
    return layer


def _refuse_old(layer: Layer, origin: str) -> None:
    """What earlier versions wrote, with the words of today."""
    source, seed = layer.get("calibration"), layer.get("calibration_seed")
    if source is None and seed is None and layer.get("schema_version", 2) != 1:
        return
    lines = [f"source = {json.dumps(source or 'random')}"] + ([f"seed = {seed}"] if seed else [])
    raise InputError(
        f"{origin} is a recipe of an earlier version",
        cause="calibration and calibration_seed have become the table [data], and schema_version is 2",
        fix=f"write schema_version = 2 and, in place of both, a table [data] with {' and '.join(lines)}",
    )


def require_layer(layer: Layer, origin: str) -> Recipe:
    """Every value is of the kind its key wants, before anything is decided by it. What a layer does not say is as the
    types have it, so two layers that say the same are equal here."""
    needed = {"export": {"task": ""}, "compile": {"target": ""}, "check": {"target": ""}}
    given = {
        key: {**needed.get(key, {}), **value} if isinstance(value, dict) else value for key, value in layer.items()
    }
    nothing = {"policy_version": 0, "target": "", "precision": "", **dict.fromkeys(_STAGES)}
    return make_recipe({**nothing, **given}, origin)


def _toml_table(text: str) -> Layer:
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def merged(base: Layer, over: Layer) -> Layer:
    """`over` wins key by key. Absent means unset; an explicit null switches a stage off."""
    result = dict(base)
    for key, value in over.items():
        before = result.get(key)
        result[key] = merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result


def make_recipe(layer: Layer, origin: str) -> Recipe:
    try:
        return typed(Recipe, {**layer, **_data_table(layer)}, strict=True)
    except MisfitError as error:
        raise _explained(error, origin) from None
    except UsageError as error:
        raise InputError(f"{origin}: {error.problem}", cause=error.cause, fix=error.fix) from None


def make_data(value: object) -> Data:
    """The table [data] of a recipe that was checked."""
    return typed(Data, _data_table({"data": value}).get("data", value))


def make_pixels(value: object) -> PixelInputs | None:
    """The table [inputs] of a recipe that was checked."""
    return None if value is None else typed(PixelInputs, value)


def _data_table(layer: Layer) -> Layer:
    """A word alone is the source."""
    data = layer.get("data")
    return {"data": {"source": data}} if isinstance(data, str) else {}


def toml_text(recipe: Recipe) -> str:
    """The recipe as TOML. A stage that does not run is written as `stage = false`, since TOML has no null."""
    data: Layer = plain(recipe)
    single = {key: value for key, value in data.items() if not isinstance(value, dict) and value is not None}
    lines = [f"{key} = {toml_value(value)}" for key, value in single.items()]
    lines += [f"{key} = false" for key in _SECTIONS if data[key] is None]
    for key, section in data.items():
        if isinstance(section, dict):
            lines += ["", f"[{key}]"]
            lines += [f"{name} = {toml_value(value)}" for name, value in section.items() if value is not None]
    return "\n".join(lines) + "\n"


def recipe_file(recipe: Recipe, suffix: str = ".toml") -> str:
    """The recipe as a file for the user to keep and edit."""
    if suffix == ".json":
        return dumps({**plain(recipe), _SEALED: SEAL}) + "\n"
    return f"{toml_text(recipe)}\n# {SEAL}\n"


def toml_value(value: Any) -> str:
    """JSON is TOML for strings, numbers, booleans and arrays; tables inside arrays need `=`."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml_key(key)} = {toml_value(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


def _explained(error: MisfitError, origin: str) -> InputError:
    where = ".".join(map(str, error.place))
    if error.known:
        return InputError(
            f"{origin}: unknown key '{where}'",
            cause=f"known keys here are {', '.join(error.known)}",
            fix=did_you_mean(str(error.place[-1]), list(error.known)) or "remove it",
        )
    return InputError(
        f"{origin}: '{where}' is not right", cause=error.why, fix="`wright config --schema` shows what fits"
    )
