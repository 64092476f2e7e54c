"""The plain CPU session that finds types and ranges, and what it answers."""

from __future__ import annotations

import concurrent.futures
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.targets import new_options, usable_cpus

if TYPE_CHECKING:
    import onnxruntime as ort
    from numpy.typing import NDArray
else:
    ort = lazy("onnxruntime")

_ERRORS_ONLY = 4
# Of what samples that are computed side by side may hold, and how many of them there may be.
_ROOM, _MOST = 1 << 30, 8
Sample = dict[str, "NDArray[Any]"]
Values = list["NDArray[Any]"]


def open_session(path: Path) -> Any:
    """The graph as it is written: no fusion may remove a tensor that is being watched. One thread, on every machine:
    sums that several share end in other last bits, and what is quantized would depend on the number of cores."""
    options = new_options()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = _ERRORS_ONLY
    options.use_deterministic_compute = True
    # As the nodes stand: what looks at a tensor is behind what makes it, and the tensor is let go at once.
    options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
    options.intra_op_num_threads = 1
    # Packed copies of the weights would double the memory of a session that runs a few dozen times.
    options.add_session_config_entry("session.disable_prepacking", "1")
    # A plan of all memory pays off after many runs, and looks for each block among all others.
    options.enable_mem_pattern = False
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"], enable_fallback=0)
    # onnxruntime raises many unrelated classes here; all of them mean that the model does not load.
    except Exception as error:
        raise InputError(
            "the model does not load in onnxruntime",
            cause=str(error).splitlines()[0] if str(error) else type(error).__name__,
            fix="Check the model with `wright inspect`, or export it again.",
        ) from error


def run(session: Any, names: list[str], sample: Sample) -> Values:
    """One inference; what onnxruntime says about a sample it cannot run is the cause."""
    try:
        return list(session.run(names, sample))
    # onnxruntime raises many unrelated classes here; all of them mean that this sample does not run.
    except Exception as error:
        raise InputError(
            "the model does not run on a calibration sample",
            cause=str(error).splitlines()[0] if str(error) else type(error).__name__,
            fix="Check values and sizes of the samples: indices inside their tables, lengths the model allows.",
        ) from error


def run_each(
    session: Any, names: list[str], samples: Iterable[Sample], held: Callable[[Values], int] | None = None
) -> Iterator[tuple[Sample, Values]]:
    """Every sample with its answers, in order. Each is computed by one thread; there are as many side by side as there
    are cores, and room for what one of them holds, which the first one tells (`held`, in bytes: else its answers)."""
    held = held or _bytes
    left = iter(samples)
    for sample in left:
        values = run(session, names, sample)
        yield sample, values
        at_once = min(int(usable_cpus()), _MOST, _ROOM // max(1, held(values)))
        if at_once > 1:
            yield from _side_by_side(session, names, left, at_once)


def _bytes(values: Values) -> int:
    return sum(getattr(value, "nbytes", 0) for value in values)


def _side_by_side(
    session: Any, names: list[str], samples: Iterable[Sample], at_once: int
) -> Iterator[tuple[Sample, Values]]:
    waiting: deque[tuple[Sample, concurrent.futures.Future[Values]]] = deque()
    with concurrent.futures.ThreadPoolExecutor(at_once, thread_name_prefix="sample") as threads:
        for sample in samples:
            waiting.append((sample, threads.submit(run, session, names, sample)))
            if len(waiting) == at_once:
                first, answer = waiting.popleft()
                yield first, answer.result()
        for first, answer in waiting:
            yield first, answer.result()
