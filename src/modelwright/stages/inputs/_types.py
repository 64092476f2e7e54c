"""What the stage tells."""

from __future__ import annotations

from modelwright._dataclass import dataclass
from modelwright.stages.stage import Stage
from modelwright.vocabulary import PixelInputs
from modelwright.worker import RemoteTask


@dataclass(frozen=True)
class ChangedInput:
    """An input before and after, such as `float32[1, 3, 224, 224]` and `uint8[1, 224, 224, 3]`."""

    name: str
    before: str
    after: str


@dataclass(frozen=True)
class InputsOutcome:
    """`relative_error`: the changed model on pixels against the given one on the same pixels, prepared outside. None,
    with the `reason`, where nothing could be made up for the inputs."""

    changed: tuple[ChangedInput, ...]
    relative_error: float | None
    reason: str | None
    seconds: float


INPUTS = Stage(
    name="inputs",
    version="1",
    params=PixelInputs,
    outcome=InputsOutcome,
    task=RemoteTask("modelwright.stages.inputs._run:run_inputs"),
    packages=("onnx", "onnx-ir", "onnxruntime", "numpy"),
    patience_s=900.0,
)
