"""What is special about single EPs: a file each. An EP without a file is an `EpAdapter` as it stands."""

from modelwright.targets.eps._adapter import EpAdapter, Explanation, Refusal, RefusalKind, TakenOperators, TensorRule
from modelwright.targets.eps._find import adapter_of
from modelwright.targets.eps._trace import DeviceBlock, DeviceOp, DeviceTrace, TraceProblem

__all__ = [
    "DeviceBlock",
    "DeviceOp",
    "DeviceTrace",
    "EpAdapter",
    "Explanation",
    "Refusal",
    "RefusalKind",
    "TakenOperators",
    "TensorRule",
    "TraceProblem",
    "adapter_of",
]
