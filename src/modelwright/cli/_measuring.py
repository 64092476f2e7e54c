"""What the measuring commands share: options that become requests, errors after a partial answer, the live monitor."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from modelwright._lazy import lazy
from modelwright.cli._data import data_options
from modelwright.cli._options import Output, dim_option, parse_dims, parse_pairs
from modelwright.cli._streams import complain
from modelwright.errors import UsageError, WrightError
from modelwright.vocabulary import Data, Progress

if TYPE_CHECKING:
    from modelwright import measure
    from modelwright.report import telemetry as charts
else:
    measure = lazy("modelwright.measure")
    charts = lazy("modelwright.report.telemetry")

F = TypeVar("F", bound=Callable[..., Any])
_SHOWN_SAMPLES = 240


@dataclass(frozen=True)
class Extras:
    """What is shown beside the numbers."""

    monitor: bool
    trace_html: Path | None


def input_options(function: F) -> F:
    """Adds --data with what belongs to it, --batch and --dim, and hands the command an `InputChoice`."""

    @data_options()
    @click.option("--batch", type=int, help="Size of the dynamic dimension in front.")
    @dim_option
    @functools.wraps(function)
    def wrapper(*args: Any, data: Data, batch: int | None, dims: tuple[str, ...], **kwargs: Any) -> Any:
        choice = measure.InputChoice(data, batch, dict(parse_dims(dims)))
        return function(*args, inputs=choice, **kwargs)

    return wrapper  # type: ignore[return-value]


def loop_options(function: F) -> F:
    """Adds what decides how long and on what is measured, and hands the command `PerfOptions`."""

    @click.option("--iterations", type=int, help="Measured runs per session.")
    @click.option("--duration", type=float, help="Seconds to measure per session (default 5).")
    @click.option("--warmup", default="auto", show_default=True, help="`auto` (until steady) or a number of runs.")
    @click.option("--sessions", default=1, show_default=True, help="Fresh sessions, each in a process of its own.")
    @click.option("--threads", type=int, help="Intra-op threads (default: the CPUs this process may use).")
    @click.option("--ep-option", multiple=True, metavar="KEY=VALUE", help="Option of the EP; repeatable.")
    @click.option("--runtime", metavar="NAME", help="Measure in this runtime (see `wright runtime`).")
    @click.option("--no-wait", is_flag=True, help="Fail when another measurement runs, instead of waiting.")
    @functools.wraps(function)
    def wrapper(
        *args: Any, duration: float | None, warmup: str, ep_option: tuple[str, ...], no_wait: bool, **kwargs: Any
    ) -> Any:
        names = ("iterations", "sessions", "threads", "runtime")
        options = measure.PerfOptions(
            duration_s=duration,
            warmup=_warmup(warmup),
            provider_options=parse_pairs("--ep-option", ep_option),
            wait=not no_wait,
            **{name: kwargs.pop(name) for name in names},
        )
        return function(*args, options=options, **kwargs)

    return wrapper  # type: ignore[return-value]


def look_options(function: F) -> F:
    """Adds --op-trace and --monitor; goes outside `loop_options`, whose `PerfOptions` it completes."""

    @click.option(
        "--op-trace",
        "--op-tracing",
        is_flag=False,
        flag_value="basic",
        type=click.Choice(["basic", "detail"]),
        help="Also trace where the time goes, in a window of its own; `detail` adds shapes and bytes.",
    )
    @click.option("--trace-html", type=click.Path(path_type=Path), help="Write the trace as one HTML page.")
    @click.option("--trace-chrome", type=click.Path(path_type=Path), help="Write the trace for chrome://tracing.")
    @click.option("--monitor", is_flag=True, help="Watch CPU, memory and devices meanwhile; live on a terminal.")
    @functools.wraps(function)
    def wrapper(
        *args: Any,
        op_trace: Literal["basic", "detail"] | None,
        trace_html: Path | None,
        trace_chrome: Path | None,
        monitor: bool,
        options: measure.PerfOptions,
        **kwargs: Any,
    ) -> Any:
        level = op_trace or ("basic" if trace_html or trace_chrome else None)
        options = replace(options, op_trace=level, trace_chrome=trace_chrome)
        return function(*args, options=options, extras=Extras(monitor, trace_html), **kwargs)

    return wrapper  # type: ignore[return-value]


def told(error: WrightError) -> click.exceptions.Exit:
    """The end of a command that failed after its partial answer was printed."""
    complain(error)
    return click.exceptions.Exit(error.exit_code)


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
