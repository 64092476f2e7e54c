"""The space: which single changes of the baseline are worth a look, and what each one means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from modelwright._dataclass import dataclass
from modelwright.errors import InputError, UsageError, did_you_mean
from modelwright.knowledge import AXES, ENTRY, OPTION, OPTION_AXIS, is_own, require_changes
from modelwright.pipeline import Recipe
from modelwright.search._variant import PASS_AXIS, AxisChange, Variant
from modelwright.stages.compile import CompileParams
from modelwright.stages.optimize import OptimizeParams, find_pass, resolve_passes
from modelwright.targets import GraphOptimization, Target

_ON, _OFF = "on", "off"
_PRECISIONS = {"cpu": ("w8a8", "dynamic"), "npu": ("w8a16", "w8a8", "fp16"), "gpu": ("fp16",)}
_OPSETS = (17, 18, 19, 20, 21)
_LEVELS: Mapping[str, GraphOptimization] = {"basic": "basic", "extended": "extended"}
_CONFIG = {
    AxisChange("spinning", _OFF): ("session.intra_op.allow_spinning", "0"),
    AxisChange("denormals", _OFF): ("session.set_denormal_as_zero", "1"),
}
_VALUES = {"level": tuple(_LEVELS), "spinning": (_OFF,), "denormals": (_OFF,), "compile": (_ON, _OFF)}
_NUMBERS = ("threads", "opset")
_SESSION = ("threads", "level", "spinning", "denormals")


@dataclass(frozen=True)
class Surroundings:
    """What the space depends on beside the recipe: the model's opset, passes that would change it, CPUs to use."""

    opset: int
    firing: tuple[str, ...]
    cpus: int


@dataclass(frozen=True)
class SessionChoice:
    """How a variant is opened; what is unset is onnxruntime's default."""

    threads: int | None = None
    level: GraphOptimization | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)


def single_changes(recipe: Recipe, target: Target, around: Surroundings) -> tuple[Variant, ...]:
    """One factor at a time, in the order of `AXES`."""
    values = {
        "precision": _other_precisions(recipe, target),
        "opset": [str(opset) for opset in _OPSETS if opset > around.opset] if recipe.optimize else [],
        PASS_AXIS: _passes(recipe, around.firing),
        "compile": [_OFF if recipe.compile is not None else _ON] if target.provider.ep_context else [],
        "threads": _threads(around.cpus) if target.device == "cpu" else [],
        "level": list(_LEVELS) if target.ep == "cpu" else [],
        "spinning": [_OFF] if target.ep == "cpu" and around.cpus > 1 else [],
        "denormals": [_OFF] if target.ep == "cpu" else [],
    }
    changes = [AxisChange(axis, value) for axis in AXES for value in values.get(axis, ())]
    return tuple(Variant((change,)) for change in (*changes, *_options(target)))


def refuse_unknown(axes: Iterable[str], forbid: Iterable[str], only: Iterable[str], add: Iterable[str] = ()) -> None:
    """What is wrong whatever the model is, before anything is built: an axis, a pass or a precision that nobody has."""
    for word in axes:
        _require(word, AXES, "axis")
    require_changes([*forbid, *only])
    for word in (*forbid, *only):
        _require_value(word)
    added(add)


def _require_value(word: str) -> None:
    """Of axes that have the same values for every model."""
    axis, equals, value = word.partition("=")
    if equals and axis in _VALUES:
        _require(word, [f"{axis}={one}" for one in _VALUES[axis]], "change")
    if equals and axis in _NUMBERS and not (value.isdigit() and int(value)):
        raise UsageError(f"there is no change '{word}'", cause=f"{axis} is a number", fix=f"write for example {axis}=1")


def axis_of(change: AxisChange) -> str:
    """All options of an EP are one axis to choose or to leave out."""
    return OPTION_AXIS if change.axis.startswith(OPTION) else change.axis


def pinned(words: Iterable[str]) -> tuple[AxisChange, ...]:
    """Session settings that hold for every variant; what a recipe says in a place of its own is said there."""
    found = []
    for word in (word for word in words if word not in AXES):
        axis, _, value = word.partition("=")
        _require_value(word)
        if axis not in _SESSION and not is_own(axis):
            raise InputError(
                f"'{word}' cannot be pinned",
                cause="only a setting of the session is; precision, passes, opset and compile have their own keys",
                fix="write for example threads=1, level=basic, spinning=off or opt.KEY=VALUE",
            )
        found.append(AxisChange(axis, value))
    return tuple(found)


def chosen(
    variants: Sequence[Variant], axes: Iterable[str], forbid: Iterable[str], only: Iterable[str] = ()
) -> tuple[Variant, ...]:
    """Those on the axes that are wanted (all where none is said), without what is forbidden by axis or by label; of
    them only those with the labels that are said, if any are."""
    wanted, without = tuple(axes) or AXES, tuple(forbid)
    labels = [variant.label for variant in variants]
    few = tuple(only) or tuple(labels)
    for word in few:
        _require(word, labels, "change")
    return tuple(
        one
        for one in variants
        if axis_of(one.changes[0]) in wanted
        and one.label in few
        and not {axis_of(one.changes[0]), one.changes[0].axis, one.label} & {*without}
    )


def optimized(params: OptimizeParams | None, variant: Variant) -> OptimizeParams | None:
    """The optimize section with the variant's passes and opset."""
    if params is None:
        return None
    names = set(params.passes)
    for change in variant.changes:
        if change.axis == PASS_AXIS:
            name = change.value[1:]
            names = names | {name} if change.value.startswith("+") else names - {name}
    opset = next((int(change.value) for change in variant.changes if change.axis == "opset"), params.opset)
    return replace(params, passes=resolve_passes(sorted(names)), opset=opset)


def compiled(recipe: Recipe, variant: Variant, target: Target) -> CompileParams | None:
    said = next((change.value for change in variant.changes if change.axis == "compile"), None)
    if said is None:
        return recipe.compile
    return CompileParams(str(target)) if said == _ON else None


def precision_of(variant: Variant) -> str | None:
    """None where it is the baseline's."""
    return next((change.value for change in variant.changes if change.axis == "precision"), None)


def session_of(changes: Iterable[AxisChange]) -> SessionChoice:
    """What comes later wins."""
    changes = tuple(changes)
    said = {change.axis: change.value for change in changes}
    config = dict(_CONFIG[change] for change in changes if change in _CONFIG)
    threads = int(said["threads"]) if "threads" in said else None
    level = _LEVELS.get(said.get("level", ""))
    return SessionChoice(threads, level, _prefixed(said, OPTION), {**config, **_prefixed(said, ENTRY)})


def added(words: Iterable[str]) -> tuple[Variant, ...]:
    """Changes that no axis has: `opt.KEY=VALUE` is an option of the EP, `config.KEY=VALUE` an entry of the session."""
    found = []
    for word in words:
        axis, equals, value = word.partition("=")
        if not equals or not value or not is_own(axis):
            raise UsageError(
                f"cannot read the change '{word}'",
                cause="what is added is opt.KEY=VALUE for the EP, or config.KEY=VALUE for the session",
                fix="write for example opt.htp_performance_mode=burst",
            )
        found.append(Variant((AxisChange(axis, value),)))
    return tuple(dict.fromkeys(found))


def _prefixed(said: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {axis.removeprefix(prefix): value for axis, value in said.items() if axis.startswith(prefix)}


def _options(target: Target) -> list[AxisChange]:
    usual = target.provider_options
    tries = target.device_entry.tries
    return [AxisChange(f"{OPTION}{key}", word) for key in tries for word in tries[key] if usual.get(key) != word]


def _other_precisions(recipe: Recipe, target: Target) -> list[str]:
    if not target.accepts_qdq:
        return ["fp16"] if recipe.precision == "fp32" else []
    return [word for word in _PRECISIONS.get(target.device, ()) if word != recipe.precision]


def _passes(recipe: Recipe, firing: Sequence[str]) -> list[str]:
    """What would change the model and is not done yet; what depends on this very CPU is onnxruntime's own affair."""
    if recipe.optimize is None:
        return []
    rows = [find_pass(name) for name in firing if name not in recipe.optimize.passes]
    quantized = recipe.quantize is not None
    return [f"+{row.name}" for row in rows if not row.host_specific and not (quantized and row.breaks_qdq)]


def _threads(cpus: int) -> list[str]:
    """Fewer than all: halves down to one."""
    found = []
    while cpus > 1:
        cpus //= 2
        found.append(str(cpus))
    return found


def _require(word: str, known: Sequence[str], what: str) -> None:
    if word not in known:
        raise UsageError(
            f"there is no {what} '{word}'",
            cause=f"there are {', '.join(known)}",
            fix=did_you_mean(word, known) or "choose one of these",
        )


def require_single(names: Sequence[str]) -> None:
    """A search is about one graph."""
    if len(names) != 1:
        raise InputError(
            "a model of several graphs cannot be tuned",
            cause=f"it exports to {', '.join(names)}, and each would need a baseline of its own",
            fix="build it first and tune one of its .onnx files",
        )
