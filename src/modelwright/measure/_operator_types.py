"""Which operators cost more in a quantized arm than in the float base."""

from __future__ import annotations

from modelwright._dataclass import dataclass


@dataclass(frozen=True)
class OperatorChange:
    """All operators of one type, in both models. Times are medians of traced runs, with what converts for them.

    - `nodes`: how many the arm's model has; `base_nodes`: how many the base's
    - `kernels`, `base_kernels`: what onnxruntime ran them as; none where they are part of others
    - `conversions`, `conversion_ms`: QuantizeLinear and DequantizeLinear that ran before or behind them
    - `low_ms` … `high_ms`: the difference, from the 95 % intervals of the medians of every trace
    """

    op_type: str
    nodes: int
    base_nodes: int
    kernels: tuple[str, ...]
    base_kernels: tuple[str, ...]
    base_ms: float
    arm_ms: float
    conversions: int
    conversion_ms: float
    low_ms: float
    high_ms: float
    why: str

    @property
    def difference_ms(self) -> float:
        return self.arm_ms - self.base_ms

    @property
    def slower(self) -> bool:
        return self.low_ms > 0

    @property
    def faster(self) -> bool:
        return self.high_ms < 0


@dataclass(frozen=True)
class OperatorChanges:
    """Of an arm, the most time lost first. `reason`: why there are none. Traced runs are slower than others: these are
    differences between traces, not latencies."""

    traces: int
    runs: int
    changes: tuple[OperatorChange, ...] = ()
    reason: str | None = None
