"""Where a quantized model leaves its float model: every tensor, both ways, with the noise traced to its makers."""

from __future__ import annotations

from dataclasses import field, replace
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright._scratch import scratch
from modelwright.data import draw, source_for
from modelwright.diagnosis._run import DebugRequest, run_debug
from modelwright.diagnosis._types import DEFAULT_BUDGET, DEFAULT_SAMPLES, DebugInterrupted, DebugReport
from modelwright.errors import UsageError
from modelwright.graph import model_bytes
from modelwright.models import model_files, onnx_of
from modelwright.targets import Target, parse_target
from modelwright.vocabulary import Data, InputSpec, OnProgress
from modelwright.worker import read_so_far, run

_LIMIT_S = 1800.0
_SMALLEST_BUDGET = 1 << 20


@dataclass(frozen=True)
class DebugOptions:
    """How to compare, on which samples (`DEFAULT_SAMPLES` of them unless the data says how many).

    `recorded` is what the export knows about the inputs, where the model does not lie in its build folder.
    """

    data: Data = field(default_factory=Data)
    memory_budget: int = DEFAULT_BUDGET
    target: Target | None = None
    origin: bool = True
    recorded: InputSpec | None = None


def debug(
    float_model: str | Path,
    quant_model: str | Path | None = None,
    options: DebugOptions | None = None,
    *,
    on_progress: OnProgress | None = None,
) -> DebugReport:
    """Compare a float model with its quantized form; without one, the model on the CPU with itself on the target.

    Raises DebugInterrupted, with what was compared, when somebody ends it early; when the child dies, what it had
    compared is the answer.
    """
    options = options or DebugOptions()
    target = options.target or parse_target("cpu")
    _check(options, quant_model, target)
    wanted = onnx_of(float_model)
    quantized = onnx_of(quant_model) if quant_model is not None else wanted
    files = model_files(wanted), model_files(quantized)
    with scratch("debug") as folder:
        so_far = Path(folder, "so-far")
        request = _request(wanted, quantized, options, target, so_far)
        # The user's own function runs once, however often the samples are gone through.
        request = replace(request, source=draw(request.source, request.samples, Path(folder), on_progress))
        try:
            result = run(run_debug.call(request), timeout=_LIMIT_S, size=_needed(request), on_progress=on_progress)
        except KeyboardInterrupt:
            found = read_so_far(so_far)
            if found is None:
                raise
            stop = DebugInterrupted()
            stop.partial = replace(found, float_files=files[0], quant_files=files[1])
            raise stop from None
        died = result.failure if result.failure is not None and result.failure.died else None
        partial: DebugReport | None = read_so_far(so_far) if died is not None else None
    if died is not None and partial is not None:
        answer = replace(partial, status="crashed", reason=f"{died.words}; {partial.reason}")
    else:
        answer = replace(result.unwrap(), peak_rss_bytes=result.peak_rss_bytes)
    return replace(answer, float_files=files[0], quant_files=files[1])


def _request(wanted: Path, quantized: Path, options: DebugOptions, target: Target, so_far: Path) -> DebugRequest:
    return DebugRequest(
        float_model=str(wanted),
        quant_model=str(quantized),
        target=target,
        source=source_for(options.data, wanted, options.recorded, like=[quantized]),
        samples=options.data.samples or DEFAULT_SAMPLES,
        budget=options.memory_budget,
        origin=options.origin,
        so_far=str(so_far),
    )


def _needed(request: DebugRequest) -> int | None:
    """The bytes it works on, and those it may hold at a time; unknown when the user's own code gives the samples."""
    data = request.source.size_bytes()
    models = (request.float_model, request.quant_model)
    return None if data is None else sum(map(model_bytes, models)) + data + request.budget


def _check(options: DebugOptions, quant_model: str | Path | None, target: Target) -> None:
    if options.memory_budget < _SMALLEST_BUDGET:
        raise UsageError(
            "the memory budget is too small", cause="it must be at least 1 MiB", fix="use `memory_budget` 512MiB"
        )
    if quant_model is None and target.ep == "cpu":
        raise UsageError(
            "there is nothing to compare with",
            cause="without a reference the same model is run on another target",
            fix="give a `reference`, or the target qnn-npu",
        )
