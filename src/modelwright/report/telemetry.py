"""Hardware telemetry for people: a live chart beside the latency, and the summary at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.measure import Telemetry, TelemetryResult, TelemetrySeries
from modelwright.report._units import human_bytes
from modelwright.report.status import line
from modelwright.vocabulary import Progress

if TYPE_CHECKING:
    import rich.box
    import rich.console
    import rich.live
    import rich.table
    import rich.text
else:
    rich = lazy("rich")

_BLOCKS, _PLAIN = "▁▂▃▄▅▆▇█", "_.-=+*%#"
# Drawing costs CPU time that the measured process may need.
_DRAWS_PER_S = 2
_NARROW, _NAME_WIDTH, _NUMBERS_WIDTH = 60, 20, 36


class LiveChart:
    """Draws on stderr until it is left. `latency_ms` gives the last timings; the drawing thread asks for them.

    Where the console is no terminal it draws nothing.
    """

    def __init__(
        self,
        telemetry: Telemetry,
        console: rich.console.Console,
        latency_ms: Callable[[], Sequence[float]] | None = None,
    ) -> None:
        self._telemetry = telemetry
        self._console = console
        self._latency_ms = latency_ms
        self._message = ""
        self._live = rich.live.Live(
            get_renderable=self._picture,
            console=console,
            refresh_per_second=_DRAWS_PER_S,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> LiveChart:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, progress: Progress) -> None:
        """The line above the chart."""
        self._message = line(progress)

    def _picture(self) -> rich.table.Table:
        latency = list(self._latency_ms()) if self._latency_ms is not None else []
        return chart(self._telemetry.so_far(), latency, self._console, self._message)


def chart(
    seen: TelemetryResult, latency_ms: Sequence[float], console: rich.console.Console, title: str = ""
) -> rich.table.Table:
    """One line per series: a sparkline of what came last, then the newest value, mean and max."""
    wide = console.width >= _NARROW
    room = max(8, min(60, console.width - _NAME_WIDTH - _NUMBERS_WIDTH)) if wide else 0
    table = rich.table.Table(box=None, pad_edge=False, title=title or None, title_justify="left")
    table.add_column("", no_wrap=True, max_width=_NAME_WIDTH, overflow="ellipsis")
    if wide:
        table.add_column("", no_wrap=True, min_width=room)
    titles = ("now", "mean", "max") if wide else ("now", "max")
    for name in titles:
        table.add_column(name, justify="right", no_wrap=True)
    letters = _BLOCKS if (console.encoding or "").lower().startswith("utf") else _PLAIN
    rows = [_latency(latency_ms), *(_series(one) for one in seen.series)]
    for name, values, top, numbers in (row for row in rows if row is not None):
        line = [sparkline(values, room, top, letters)] if wide else []
        table.add_row(name, *line, *(numbers if wide else (numbers[0], numbers[2])))
    return table


def render_telemetry(seen: TelemetryResult, console: rich.console.Console) -> None:
    """The summary, with what could not be read and why."""
    for series in seen.series:
        if series.mean is None or series.max is None:
            text = f"unknown: {series.reason}"
            console.print(rich.text.Text(f"{series.name:<22}{text}", style="dim"), soft_wrap=True)
        else:
            mean, most = _number(series.mean, series.unit), _number(series.max, series.unit)
            console.print(rich.text.Text(f"{series.name:<22}mean {mean}, max {most}"), soft_wrap=True)


def sparkline(values: Sequence[float], width: int, top: float | None = None, letters: str = _BLOCKS) -> str:
    """The last `width` values, from 0 to `top` (their own largest when None)."""
    shown = values[-width:] if width else ()
    highest = top or max(shown, default=0.0) or 1.0
    steps = len(letters) - 1
    return "".join(letters[min(steps, max(0, round(steps * value / highest)))] for value in shown)


Row = tuple[str, Sequence[float], float | None, tuple[str, str, str]]


def _latency(samples: Sequence[float]) -> Row | None:
    if not samples:
        return None
    mean = sum(samples) / len(samples)
    numbers = (f"{samples[-1]:.2f} ms", f"{mean:.2f} ms", f"{max(samples):.2f} ms")
    return "latency", samples, None, numbers


def _series(series: TelemetrySeries) -> Row | None:
    """None for what this machine does not tell: a chart of nothing would look like a measured 0."""
    if not series.recent:
        return None
    values = [sample.value for sample in series.recent]
    top = 100.0 if series.unit == "%" else None
    shown = (series.latest, series.mean, series.max)
    now, mean, most = ("…" if value is None else _number(value, series.unit) for value in shown)
    return series.name, values, top, (now, mean, most)


def _number(value: float, unit: str) -> str:
    if unit == "bytes":
        return human_bytes(round(value))
    return f"{value:.0f} {unit.partition(' ')[0]}"
