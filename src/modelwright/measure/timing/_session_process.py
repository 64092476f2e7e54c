"""The parent's side of a session in a child, and what it may cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from modelwright.graph import model_bytes
from modelwright.measure.timing import _session_tasks as tasks
from modelwright.measure.timing._leg import LegPlan
from modelwright.targets import SessionSpec, Target
from modelwright.worker import CallResult, Runtime, Task, Worker

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")
# NPU compilers may take many minutes to open a large model.
OPEN_S = 1800.0
_RUN_S = 600.0


class SessionProcess:
    """A child that holds one open session at a time. `peak_rss_bytes` and `cpu_s` cover its whole life."""

    def __init__(self, runtime: Runtime | None = None) -> None:
        self.runtime = runtime
        self.peak_rss_bytes: int | None = None
        self.cpu_s: float | None = 0.0
        self._worker = Worker(runtime=runtime)
        self._sizes: dict[Path, int] = {}
        self._size = 0

    def __enter__(self) -> SessionProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.close()

    def open(self, model: Path, target: Target, spec: SessionSpec, feeds: Mapping[str, NDArray[Any]]) -> tasks.Opened:
        if model not in self._sizes:
            self._sizes[model] = model_bytes(model)
        self._size = self._sizes[model] + sum(array.nbytes for array in feeds.values())
        return self._ask(tasks.open_here.call(str(model), target, spec, feeds), OPEN_S).unwrap()

    def measure(self, plan: LegPlan, samples: Path, timeout_s: float) -> CallResult[bool | None]:
        """Measure into `samples`; a failure is in the result, because the samples are kept."""
        return self._ask(tasks.measure_here.call(plan, str(samples)), timeout_s, plan.duration_s or 0.0)

    def outputs(self) -> dict[str, NDArray[Any]]:
        return self._ask(tasks.outputs_here.call(), _RUN_S).unwrap()

    def warm(self, cap_s: float) -> tasks.Warm:
        return self._ask(tasks.warm_here.call(cap_s), _RUN_S, cap_s).unwrap()

    def burst(self, bursts: tasks.Bursts) -> tuple[tasks.BurstTaken, ...]:
        return self._ask(tasks.burst_here.call(bursts), _RUN_S).unwrap()

    def leave(self) -> None:
        """Close the session and keep the child."""
        self._ask(tasks.close_here.call(), _RUN_S).unwrap()

    def renew(self) -> None:
        """End the child; the next call gets a new one."""
        self._worker.close()

    def _ask(self, task: Task[T], timeout_s: float, planned_s: float = 0.0) -> CallResult[T]:
        before, self.cpu_s = self.cpu_s, None  # unknown if this call does not come back
        result = self._worker.run(task, timeout=timeout_s, planned=planned_s, size=self._size)
        if result.peak_rss_bytes is not None:
            self.peak_rss_bytes = max(self.peak_rss_bytes or 0, result.peak_rss_bytes)
        self.cpu_s = None if before is None or result.cpu_s is None else before + result.cpu_s
        return result
