"""What a caller may name: files under the roots and no others, and no code of anybody's unless the server was trusted.

Links are followed before anything is compared. What a named file names itself (a recipe its data, a list its models, a
table its pictures, a model its weights) is held to the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright._typed import MisfitError, typed
from modelwright.errors import UsageError
from modelwright.mcp._limits import ServerChoices
from modelwright.mcp._tools import VerbTool
from modelwright.vocabulary import Data, PixelInputs, as_data

if TYPE_CHECKING:
    from modelwright import data as samples
    from modelwright import farm, knowledge, measure, models
    from modelwright.answers import watch
    from modelwright.api import build as building
else:
    building = lazy("modelwright.api.build")
    farm = lazy("modelwright.farm")
    knowledge = lazy("modelwright.knowledge")
    measure = lazy("modelwright.measure")
    models = lazy("modelwright.models")
    samples = lazy("modelwright.data")
    watch = lazy("modelwright.answers.watch")

_TABLES = (".csv", ".tsv", ".jsonl")
_LONGEST_NAME = 4096
# Words that name no file; numbers and flags never do.
_FREE = (
    *("component", "dims", "precision", "precisions", "passes", "task", "revision", "op_trace", "by", "settings"),
    *("max_drop", "target_drop", "target", "targets", "reference_target", "status", "kind", "name", "finding"),
    *(
        "raise_to",
        "objective",
        "groups",
        "priorities",
        "version",
        "licence",
        "ceiling",
        "effort",
        "outcome",
        "min_level",
        "symptom",
        "level",
        "runtimes",
        "old",
        "new",
    ),
)


class Guard:
    """Checks the arguments of one call, and gives the values that the verb takes."""

    def __init__(self, choices: ServerChoices) -> None:
        self._roots = [Path(root) for root in choices.roots]
        self._trust = choices.trust

    def given(self, tool: VerbTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Every argument, checked. One that nobody classified is refused: that is safer than letting it through."""
        names = tool.verb in ("publish", "pull")  # there `model` is what it is called in a feed
        classes = tool.verb in ("matrix", "matrix_plan")  # there `retry` are classes of failures
        kinds: dict[str, Callable[[Any], Any]] = {
            **dict.fromkeys(_FREE, lambda value: value),
            "model": (lambda value: value) if names else self._model,
            **dict.fromkeys(("reference", "other"), self._model),
            **dict.fromkeys(
                ("output", "build", "folder", "save_recipe", "log", "history", "reduce", "bug_report"), self._path
            ),
            **dict.fromkeys(("record", "against", "replay"), self._record),
            "retry": (lambda value: value) if classes else self._record,
            "data": self._data,
            "calibrated_on": self._calibration,
            "recipe": self._recipe,
            "arms": lambda arms: [self._arm(arm) for arm in arms],
            "models": self._rows,
            "suite": self._suite,
            **dict.fromkeys(("to", "feed"), self._feed),
            "metric": self._metric,
            "inputs": lambda form: _typed(PixelInputs, form),
            **dict.fromkeys(("axes", "forbid", "only", "add"), self._changes),
            **dict.fromkeys(("trust_remote_code", "provider_options", "config", "family"), self._trusted),
        }
        said = {name: value for name, value in arguments.items() if value is not None}
        unknown = [
            name for name, value in said.items() if name not in kinds and not isinstance(value, bool | int | float)
        ]
        if unknown:
            raise UsageError(f"{tool.name} takes no {unknown[0]}", cause="it is no argument of it", fix="leave it out")
        return {name: kinds[name](value) if name in kinds else value for name, value in said.items()}

    def path(self, said: str) -> Path:
        """The place that is meant, links followed, under a root."""
        return self._inside(Path(said).expanduser(), said)

    def _inside(self, path: Path, said: str) -> Path:
        try:
            place = path.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise UsageError(f"{said[:200]} cannot be looked up", cause=str(error), fix="check the path") from None
        if not any(place.is_relative_to(root) for root in self._roots):
            raise UsageError(
                f"{said[:200]} is not under a root of this server",
                cause=f"with links followed it is somewhere else; the roots are {', '.join(map(str, self._roots))}",
                fix="name a file under a root, or start the server with another `root`",
            )
        return place

    def _path(self, said: str) -> str:
        place = self.path(said)
        self._links_below(place)
        return str(place)

    def _links_below(self, place: Path) -> None:
        """A folder is read whole: no link in it may lead out. Of a file, what it names itself is looked at."""
        for one in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if one.is_symlink():
                self._inside(one, str(one))
            if one.suffix.lower() in _TABLES and one.is_file():
                self._table(one)
        if place.suffix.lower() == ".onnx" and place.is_file():
            self._beside(place)

    def _beside(self, model: Path) -> None:
        """The reader of models lets them name files of their own folder only; as links those may lead out of it."""
        for name in models.model_facts(model).parts:
            self._inside(model.parent / name, name)

    def _table(self, table: Path) -> None:
        for word in (*samples.table_words(table), "shared.npz"):
            if 0 < len(word) <= _LONGEST_NAME and "\0" not in word:
                for place in (table.parent / word, Path(word).expanduser() if word[0] in "/\\~." else table):
                    if _exists(place):
                        self._inside(place, word)

    def _model(self, said: str) -> str:
        """A path where there is one, or where it is spelt as one; an id of the Hub is none."""
        path = Path(said).expanduser()
        if _exists(path) or path.is_absolute() or path.suffix.lower() == ".onnx" or said[:1] in ("~", "."):
            return self._path(said)
        if ".." in path.parts:
            self.path(said)
        return said

    def _record(self, said: str) -> str:
        return self._path(said) if _exists(Path(said).expanduser()) or "/" in said or "\\" in said else said

    def _data(self, said: Any) -> Data:
        data = as_data(said) if isinstance(said, str) else _typed(Data, said)
        if data.function:
            self._trusted(data.source)
            self.path(data.source.rpartition(":")[0])
        elif not data.random:
            self._model(data.source)
        for more in (data.labels, data.processor):
            if more is not None:
                self._path(more)
        return data

    def _calibration(self, said: str) -> str:
        self._data(said)
        return said

    def _recipe(self, said: Any) -> Any:
        """As it is; what it says about data and options is looked at first. `catalog:NAME` is one of ours."""
        name = str(said).partition(":")[0] if isinstance(said, str) else ""
        if isinstance(said, str) and name != "catalog":
            said = self._path(said)
        elif name == "catalog":
            return said
        layer = building.read_recipe(said)
        if layer.get("data") is not None:
            self._data(layer["data"])
        for section in layer.values():
            if isinstance(section, Mapping) and section.get("provider_options"):
                self._trusted(section["provider_options"])
        tuned = layer.get("tune")
        for words in tuned.values() if isinstance(tuned, Mapping) else ():
            self._changes(words)
        return said

    def _arm(self, said: Any) -> measure.Arm:
        arm: measure.Arm = measure.parse_arm(said) if isinstance(said, str) else _typed(measure.Arm, said)
        if arm.options or arm.config:
            self._trusted(arm.options or arm.config)
        return replace(arm, model=self._model(arm.model))

    def _rows(self, said: Any) -> Any:
        """A list file and every path in it, as the reader of lists sees them."""
        given = self._path(said) if isinstance(said, str) else said
        for row in farm.read_rows(given):
            self._model(row.model)
            if row.data is not None:
                self._data(row.data)
        return given

    def _suite(self, said: str) -> str:
        """The models and the data of its cases, as the reader of suites sees them: from its own folder."""
        suite = Path(self._path(said))
        for row in watch.case_rows(suite):
            self._path(str(suite.parent / str(row.get("model", ""))))
            data = row.get("data")
            if data is not None:
                beside = suite.parent / str(data)
                self._data(str(beside) if _exists(beside) else str(data))
        return str(suite)

    def _feed(self, said: str) -> str:
        if "://" in said:
            self._trusted(said)
            return said
        return self._path(said)

    def _metric(self, said: str) -> str:
        if ":" in said:
            self._trusted(said)
            self.path(said.rpartition(":")[0])
        return said

    def _changes(self, words: Iterable[str]) -> Any:
        for word in words:
            if knowledge.is_own(str(word).partition("=")[0]):
                self._trusted(word)
        return words

    def _trusted(self, said: Any) -> Any:
        """Options of EPs and sessions name libraries to load, a feed is another machine, and the rest is Python."""
        if said and not self._trust:
            raise UsageError(
                "this server runs no code of yours, and sends nothing away",
                cause=f"{str(said)[:200]} could do that, and the server was not started with trust",
                fix="leave it out, or ask whoever started the server to do so with `trust`",
            )
        return said


def _typed(kind: type, form: Any) -> Any:
    if isinstance(form, kind):
        return form
    try:
        return typed(kind, form, strict=True)
    except MisfitError as error:
        raise UsageError("an argument is not right", cause=str(error), fix="the schema of the tool shows it") from None


def _exists(path: Path) -> bool:
    try:
        return path.is_symlink() or path.exists()
    except (OSError, ValueError):
        return False
