"""What the measuring commands share: options of the inputs and of the loop, and the live monitor."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from modelwright._lazy import lazy
from modelwright.cli._completing import runtime_names
from modelwright.cli._data import data_options
from modelwright.cli._options import Output, dim_option, ep_option, parse_dims
from modelwright.errors import UsageError
from modelwright.vocabulary import Progress

if TYPE_CHECKING:
    from modelwright import measure
    from modelwright.report import telemetry as charts
else:
    measure = lazy("modelwright.measure")
    charts = lazy("modelwright.report.telemetry")

F = TypeVar("F", bound=Callable[..., Any])
_SHOWN_SAMPLES = 240


def input_options(*, partly: bool = False) -> Callable[[F], F]:
    """Adds --data with what belongs to it, --batch and --dim; `partly` as for `data_options`."""

    def decorate(function: F) -> F:
        @data_options(partly=partly)
        @click.option("--batch", type=int, help="Size of the dynamic dimension in front.")
        @dim_option
        @functools.wraps(function)
        def wrapper(*args: Any, dims: tuple[str, ...], **kwargs: Any) -> Any:
            return function(*args, dims=parse_dims(dims) or None, **kwargs)

        return wrapper  # type: ignore[return-value]

    return decorate


def loop_options(function: F) -> F:
    """Adds what decides how long and on what is measured."""

    @click.option("--iterations", type=int, help="Measured runs per session.")
    @click.option("--duration", "duration_s", type=float, help="Seconds to measure per session (default 5).")
    @click.option("--warmup", default="auto", show_default=True, help="`auto` (until steady) or a number of runs.")
    @click.option("--sessions", default=1, show_default=True, help="Fresh sessions, each in a process of its own.")
    @click.option("--threads", type=int, help="Intra-op threads (default: the CPUs this process may use).")
    @ep_option
    @click.option(
        "--runtime",
        metavar="NAME",
        shell_complete=runtime_names,
        help="Measure in this runtime (see `wright runtime`).",
    )
    @wait_option
    @functools.wraps(function)
    def wrapper(*args: Any, warmup: str, **kwargs: Any) -> Any:
        return function(*args, warmup=_warmup(warmup), **kwargs)

    return wrapper  # type: ignore[return-value]


def wait_option(function: F) -> F:
    """Adds --no-wait; hands the command `wait`."""

    @click.option("--no-wait", is_flag=True, help="Fail when another measurement runs, instead of waiting.")
    @functools.wraps(function)
    def wrapper(*args: Any, no_wait: bool, **kwargs: Any) -> Any:
        return function(*args, wait=not no_wait, **kwargs)

    return wrapper  # type: ignore[return-value]


class LiveMonitor:
    """Watches the measured process from here and draws on stderr; the timed loop does not know."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._samples: Path | None = None
        self._telemetry = measure.Telemetry()
        self._chart = charts.LiveChart(self._telemetry, out.console(sys.stderr), self._latest_ms)

    def __enter__(self) -> LiveMonitor:
        if not self._out.quiet:
            self._chart.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._chart.__exit__(kind, error, trace)

    def __call__(self, progress: Progress) -> None:
        self._chart(progress)

    def start(self, pid: int, samples: Path) -> None:
        self._samples = samples
        self._telemetry.start(pid)

    def stop(self) -> measure.TelemetryResult:
        self._samples = None
        return self._telemetry.stop()

    def _latest_ms(self) -> list[float]:
        file = self._samples
        return [] if file is None else (measure.recent_samples(file, _SHOWN_SAMPLES) / 1e6).tolist()


def _warmup(text: str) -> int | None:
    if text == "auto":
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(
            f"cannot read --warmup {text}", cause="it is `auto` or a number of runs", fix="try --warmup 10"
        ) from None
