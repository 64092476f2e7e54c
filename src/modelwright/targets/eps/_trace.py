"""What an EP records about the insides of its partitions, in the same words for every EP."""

from __future__ import annotations

from collections.abc import Mapping

from modelwright._dataclass import dataclass


@dataclass(frozen=True)
class DeviceOp:
    """One operator in one block. `sources` are the nodes onnxruntime handed to the EP for it; `is_io` marks the moving
    of inputs and outputs."""

    name: str
    key: str
    cycles: int
    sources: tuple[str, ...]
    is_io: bool = False


@dataclass(frozen=True)
class DeviceBlock:
    """One execution of one partition. `threads` of the accelerator, where it tells."""

    cycles: int
    accelerator_us: float
    threads: int | None
    ops: tuple[DeviceOp, ...]

    def op_us(self, op: DeviceOp) -> float:
        return self.accelerator_us * op.cycles / self.cycles if self.cycles else 0.0


@dataclass(frozen=True)
class DeviceTrace:
    """All blocks in the order they ran, as `ep` wrote them to `source`; its operator types by (partition, operator)."""

    ep: str
    source: str
    blocks: tuple[DeviceBlock, ...]
    op_types: Mapping[tuple[str, str], str]


class TraceProblem(Exception):
    """A recording that cannot be read as it should; becomes `reason_code` and `error` of the trace."""

    def __init__(self, reason: str, words: str) -> None:
        super().__init__(reason, words)
        self.reason = reason
        self.words = words
