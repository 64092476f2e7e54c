"""Changes as they are written in findings and rules: every word of them is known, or it is an error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from modelwright._dataclass import dataclass
from modelwright.errors import InputError, UsageError, WrightError, did_you_mean
from modelwright.knowledge._types import KbFinding
from modelwright.stages.optimize import find_pass
from modelwright.stages.quantize import canonical
from modelwright.targets import parse_target

PASS_AXIS, PRECISION_AXIS, OPTION_AXIS = "pass", "precision", "option"
AXES = (PRECISION_AXIS, "opset", PASS_AXIS, "compile", OPTION_AXIS, "threads", "level", "spinning", "denormals")
"""Along which a model may be built or opened otherwise."""
OPTION, ENTRY = "opt.", "config."
_SIGNS = ("+", "-")


@dataclass(frozen=True)
class Change:
    """`+gelu_fusion` is the pass, `threads=1` the axis `threads`."""

    axis: str
    value: str

    @property
    def pass_name(self) -> str | None:
        return self.value[1:] if self.axis == PASS_AXIS else None


def is_own(axis: str) -> bool:
    """An option of an EP (`opt.KEY`) or an entry of a session (`config.KEY`), whose names are theirs."""
    return any(axis.startswith(prefix) and axis != prefix for prefix in (OPTION, ENTRY))


def require_changes(words: Iterable[str]) -> None:
    """Each is an axis or a change of one, with everything in it known; whatever model they are about."""
    for word in words:
        if word in AXES:
            continue
        if "=" not in word and not word.startswith(_SIGNS):
            raise UsageError(
                f"there is no axis or change '{word}'",
                cause=f"axes are {', '.join(AXES)}; a change is +PASS, -PASS or AXIS=VALUE",
                fix=did_you_mean(word, AXES) or "choose one of these",
            )
        read_change(word, AXES)


def read_change(text: str, axes: Sequence[str] | None = None) -> Change:
    """Raises for a pass, a precision or (where `axes` are given) an axis that does not exist."""
    if text.startswith(_SIGNS):
        row = find_pass(text[1:])
        if row.name != text[1:]:
            raise InputError(f"'{text}' is not written as it is called", cause=f"the pass is {row.name}", fix=row.name)
        return Change(PASS_AXIS, text)
    axis, equals, value = text.partition("=")
    if not equals or not value or (axes is not None and axis not in axes and not is_own(axis)):
        raise UsageError(
            f"there is no change '{text}'",
            cause=f"it is +PASS, -PASS or AXIS=VALUE, and axes are {', '.join(axes or ())}",
            fix=did_you_mean(axis, axes or ()) or "`wright tune --help` names the axes",
        )
    if axis == PRECISION_AXIS and canonical(value) != value:
        raise InputError(f"'{value}' is not written as it is called", cause=f"it is {canonical(value)}", fix="say that")
    return Change(axis, value)


def misspelt(finding: KbFinding, axes: Sequence[str] | None, specimens: Iterable[str]) -> list[str]:
    """Every word of a finding that means nothing; without `axes` those are not looked at."""
    found = [] if finding.target is None else _wrong(parse_target, finding.target)
    for text in finding.changes:
        found += _wrong(read_change, text, axes)
    found += [f"'{name}' is a pass here and no foreign one" for name in finding.foreign if _is_pass(name)]
    strange = [name for name in finding.models if not name.endswith(".onnx") and name not in specimens]
    found += [f"there is no specimen '{name}'" for name in strange]
    if finding.changes and finding.target is None:
        found.append("a change without a target says nothing")
    return found


def _wrong(read: object, *words: object) -> list[str]:
    try:
        read(*words)  # type: ignore[operator]
    except WrightError as error:
        return [f"{error.problem}: {error.fix}"]
    return []


def _is_pass(name: str) -> bool:
    """One that can be named in `changes`; what only others have cannot."""
    return not _wrong(find_pass, name)
