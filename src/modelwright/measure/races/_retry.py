"""Units of an earlier call of the same comparison: they count, so nothing is measured twice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright._json import loads
from modelwright._output import is_sealed
from modelwright._typed import typed
from modelwright.errors import InputError, UsageError
from modelwright.measure.races._arm import ReadyArm, inputs_digest
from modelwright.measure.races._types import COMPARE_PROTOCOL, CompareOptions
from modelwright.measure.races._unit import UnitPlan, UnitRecord


@dataclass(frozen=True)
class _Facts:
    onnxruntime: str


@dataclass(frozen=True)
class _Arm:
    name: str
    identity: str
    facts: _Facts | None


@dataclass(frozen=True)
class _Options:
    alpha: float
    by: tuple[float, ...]
    unit: UnitPlan | None


@dataclass(frozen=True)
class Earlier:
    """What a result file says that later units depend on."""

    protocol: str
    arms: tuple[_Arm, ...]
    options: _Options
    inputs_digest: str
    seeds: tuple[int, ...]
    total_s: float
    units: tuple[UnitRecord, ...]

    def onnxruntime(self, arm: str) -> str | None:
        return next((one.facts.onnxruntime for one in self.arms if one.name == arm and one.facts), None)


def read_earlier(path: Path | None, arms: Sequence[ReadyArm], options: CompareOptions) -> Earlier | None:
    """The units in `path`; refused when they were measured on anything else than is asked for now."""
    if path is None:
        return None
    earlier = _read(path)
    other = _what_differs(earlier, arms, options)
    if other is not None:
        raise UsageError(
            f"the units in {path.name} do not belong to this comparison",
            cause=f"{other} differ",
            fix="repeat the command that wrote the file and add `retry`, or leave `retry` out",
        )
    return earlier


def _read(path: Path) -> Earlier:
    try:
        data = path.read_bytes()
        if not is_sealed(data):
            raise ValueError("it was changed since, or wright did not write it")
        return typed(Earlier, loads(data))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} is no result of wright compare",
            cause=str(error).splitlines()[0],
            fix="give `retry` a file that a comparison was saved to",
        ) from None


def _what_differs(earlier: Earlier, arms: Sequence[ReadyArm], options: CompareOptions) -> str | None:
    now = [(arm.name, arm.identity) for arm in arms]
    asked = _Options(options.alpha, options.by, options.unit)
    pairs = {
        "the protocols": (earlier.protocol, COMPARE_PROTOCOL),
        "the arms or their settings": ([(arm.name, arm.identity) for arm in earlier.arms], now),
        "the inputs": (earlier.inputs_digest, inputs_digest(arms[0])),
        "`alpha` or `by`": ((earlier.options.alpha, earlier.options.by), (asked.alpha, asked.by)),
        "the plans of a unit": (earlier.options.unit, asked.unit),
    }
    return next((name for name, (before, after) in pairs.items() if before != after), None)
