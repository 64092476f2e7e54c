"""The stages that a worker runs: those of this modelwright, by name and version."""

from __future__ import annotations

from typing import Any

from modelwright.stages import Stage
from modelwright.stages.check import CHECK
from modelwright.stages.compile import COMPILE
from modelwright.stages.decode import AGREE, DECODE
from modelwright.stages.export import EXPORT
from modelwright.stages.inputs import INPUTS
from modelwright.stages.optimize import OPTIMIZE
from modelwright.stages.place import CLAIM, PLACE
from modelwright.stages.quantize import QUANTIZE
from modelwright.stages.validate import VALIDATE

_ALL: tuple[Stage[Any, Any], ...] = (
    AGREE, CHECK, CLAIM, COMPILE, DECODE, EXPORT, INPUTS, OPTIMIZE, PLACE, QUANTIZE, VALIDATE,
)  # fmt: skip
STAGES = {(stage.name, stage.version): stage for stage in _ALL}
