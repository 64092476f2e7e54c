"""The contract of an EP's file.

Imported by foreign interpreters too, so: standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright.targets._catalogue import ExecutionProvider, Soc
from modelwright.targets.eps._trace import DeviceTrace, TraceProblem

RefusalKind = Literal["unsupported", "policy"]


@dataclass(frozen=True)
class Refusal:
    """Why one node was refused, in the EP's words; `line` is the log entry as written."""

    kind: RefusalKind
    reason: str
    line: str


@dataclass(frozen=True)
class Explanation:
    """What an error of the EP really means, and what to do about it."""

    cause: str
    fix: str


@dataclass(frozen=True)
class TensorRule:
    """How a tensor of an operator has to be quantized for the EP to take it: the weight it stores as second input, or
    its first output. Without a scale the range decides, asymmetric."""

    tensor: Literal["weight", "output"]
    dtype: str
    scale: float | None = None
    zero_point: int = 0


@dataclass(frozen=True)
class TakenOperators:
    """ONNX operators by what the EP's own compiler made of them: those that it computes on integers, and those that it
    computes in float only. What is in neither it leaves, or nobody asked."""

    integers: frozenset[str]
    floats: frozenset[str]


class EpAdapter:
    """How to talk to one EP. This class is an EP with nothing special about it: override what differs.

    Adapters hold no state, and none of their functions opens a session or changes the process.
    """

    provider: ClassVar[ExecutionProvider | None] = None
    """The row of the catalogue, for an EP that another package brings; ours have theirs in `eps.toml`."""

    tells_why: ClassVar[bool] = True
    """Whether a verbose log may say why nodes are refused."""

    quick_options: ClassVar[Mapping[str, str]] = {}
    """EP options under which it says soonest which nodes it takes, without changing the answer."""

    device_words: ClassVar[tuple[str, ...]] = ()
    """EP options that name the device: for a flavour only, because a plugin is handed the device itself."""

    narrowest_range: ClassVar[float] = 0.0
    """The narrowest real range of a quantized tensor that it takes."""

    narrowest_inputs: ClassVar[Mapping[str, float]] = {}
    """By operator, the narrowest real range of its first input in 16 bits that it computes with rightly."""

    lacks_detail: ClassVar[TraceProblem | None] = None
    """What a trace of the level `detail` does not hold."""

    trace_advice: ClassVar[Mapping[str, str]] = {}
    """What to do about the reasons its trace can give."""

    def chip(self, provider: ExecutionProvider, words: Mapping[str, str]) -> dict[str, str]:
        """The chip of a target, checked, in its one spelling. The keys are known to be the provider's."""
        return dict(words)

    def chip_options(self, provider: ExecutionProvider, chip: Mapping[str, str]) -> dict[str, str]:
        """EP options that make it compile for this chip."""
        return dict(chip)

    def explain(self, words: str, soc: Soc | None) -> Explanation | None:
        """What it means when it fails with these words for this chip; None where they say it themselves."""
        return None

    def refusals(self, log: str) -> dict[str, Refusal]:
        """Refused nodes by the name the EP knows them by, from its verbose log."""
        return {}

    def tensor_rules(self, op_type: str, weights: str, activations: str) -> tuple[TensorRule, ...]:
        """What it insists on for an operator at these element types. Every quantized model keeps to the rules of all
        EPs, so that targets can share it."""
        return ()

    def operators(self, activation_bits: int) -> TakenOperators | None:
        """What it takes with activations of so many bits, asked of the EP itself; None where nobody did."""
        return None

    def trace_options(self, folder: Path) -> dict[str, str]:
        """EP options that make it record its operators into this folder."""
        return {}

    def read_trace(self, folder: Path) -> DeviceTrace | None:
        """What it recorded; None for an EP that records nothing. Raises TraceProblem."""
        return None
