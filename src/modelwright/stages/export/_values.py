"""What an export is asked for, and what it says about itself afterwards."""

from __future__ import annotations

from typing import Literal

from modelwright._dataclass import dataclass
from modelwright._extensions import FAMILIES, extension_packages
from modelwright.stages.stage import Stage
from modelwright.vocabulary import InputSpec, Sized
from modelwright.worker import RemoteTask

# The lowest opset that the torch.export route writes without converting.
DEFAULT_OPSET = 18

StrategyName = Literal["transformers", "dynamo", "torchscript"]
DynamicAxis = Literal["batch", "sequence"]


@dataclass(frozen=True)
class ExportParams:
    """A size that is None is the model's own: what its processor says, or its usual length.

    `attention` "eager" writes plain MatMul and Softmax; None leaves the choice to the model. `seed` is for random
    weights, `input_seed` for the samples that the graph is traced with and compared on. `family` is a file with a
    `FAMILY` for this model, or the word none for the general rules alone; None is what is known here of its type.
    """

    task: str
    opset: int | None = None
    attention: Literal["eager"] | None = "eager"
    dynamic_axes: tuple[DynamicAxis, ...] = ()
    sequence_length: int | None = None
    cache_length: int | None = None
    image_size: tuple[int, int] | None = None
    audio_samples: int | None = None
    strategies: tuple[StrategyName, ...] = ("transformers", "dynamo", "torchscript")
    random_weights: bool = False
    trust_remote_code: bool = False
    seed: int = 0
    input_seed: int = 0
    family: str | None = None


@dataclass(frozen=True)
class Parity:
    """The worst output over all samples, against PyTorch: `max_abs` is allowed up to `bound`.

    `spread` is how much PyTorch's own answers differ between samples, for the output where they differ least: next
    to nothing means that agreement proves next to nothing.
    """

    output: str
    cosine: float
    max_abs: float
    bound: float
    spread: float
    samples: int


@dataclass(frozen=True)
class Attempt:
    """A strategy that did not count, and why, in one line."""

    strategy: StrategyName
    reason: str
    seconds: float


@dataclass(frozen=True)
class LeftOut:
    """An argument of the model that the graph has no input for, and why."""

    argument: str
    reason: str


@dataclass(frozen=True)
class Link:
    """An output that feeds an input of the next run: encoder to decoder, or a cache to itself."""

    component: str
    output: str
    to_component: str
    to_input: str


@dataclass(frozen=True)
class Component:
    """One written model: `<name>/model.onnx`."""

    name: str
    strategy: StrategyName
    rejected: tuple[Attempt, ...]
    nodes: int
    opset: int
    parity: Parity
    inputs: InputSpec
    outputs: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    seconds: float


@dataclass(frozen=True)
class ExportOutcome:
    """`class_renamed_from` is set when the configuration names a class by an older spelling. `sizes` are those that the
    graphs were given, each with who says so."""

    task: str
    model_class: str
    class_renamed_from: str | None
    random_weights: bool
    parameters: int
    components: tuple[Component, ...]
    links: tuple[Link, ...]
    load_seconds: float
    sizes: tuple[Sized, ...] = ()


EXPORT = Stage(
    name="export",
    version="6",
    params=ExportParams,
    outcome=ExportOutcome,
    task=RemoteTask("modelwright.stages.export._run:run_export"),
    packages=("torch", "transformers", "onnx", "onnx-ir", "onnxscript", *extension_packages(FAMILIES)),
    patience_s=1800.0,
    # Exporters patch the libraries they use.
    alone=True,
)
