"""What watches a session while it is measured, and the one order in which it is asked. Runs in a child.

Imported by foreign interpreters too, so: standard library and our own light rooms only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from modelwright._dataclass import dataclass
from modelwright.errors import ExecutionError
from modelwright.targets import BoundSession, ModelBytes, SessionFacts, SessionSpec, Target, open_session

T = TypeVar("T")


@dataclass(frozen=True)
class Runs:
    """How often the session ran while it was watched: first `warmup`, then `measured`."""

    warmup: int
    measured: int


@dataclass(frozen=True)
class Window:
    """What a monitor needs to know to read its data: the runs in it, and the session they ran on."""

    runs: Runs
    facts: SessionFacts


class Monitor(Protocol):
    """Watches one session. Called in this order, each once: `session_spec`, `collect`, `parse`, `close`.

    A monitor makes no session, changes no global state, and lets every exception through.
    """

    def session_spec(self, spec: SessionSpec) -> SessionSpec:
        """The spec with the options this monitor needs; all others are left as they are."""
        ...

    def collect(self, session: BoundSession) -> None:
        """The runs are over and the session still lives. Also called when the runs failed."""
        ...

    def parse(self, window: Window) -> object:
        """The session is released, so its files are complete. Not called when the runs failed."""
        ...

    def close(self) -> None:
        """Remove what is left behind. Always called, last."""
        ...


@dataclass(frozen=True)
class Monitored(Generic[T]):
    """What the body gave, and what the monitor saw."""

    value: T
    seen: object
    window: Window


def run_monitored(
    model: str | ModelBytes,
    target: Target,
    spec: SessionSpec,
    monitor: Monitor,
    body: Callable[[BoundSession], tuple[T, Runs]],
) -> Monitored[T]:
    """Open a session with the monitor's options, run the body on it, and ask the monitor in the fixed order:
    the body stops counting, `collect`, the session is released, `parse`, `close`."""
    try:
        watched = monitor.session_spec(spec)
        with open_session(model, target, watched) as session:
            require_effective(session, watched)
            value, runs = _collected(session, monitor, body)
        window = Window(runs, session.facts)
        return Monitored(value, monitor.parse(window), window)
    finally:
        monitor.close()


def _collected(
    session: BoundSession, monitor: Monitor, body: Callable[[BoundSession], tuple[T, Runs]]
) -> tuple[T, Runs]:
    try:
        answer = body(session)
    except BaseException as error:
        try:
            monitor.collect(session)
        except Exception as second:  # noqa: BLE001 the first failure is the one to report; this one is its note
            error.add_note(f"then the monitor failed too: {second}")
        raise
    monitor.collect(session)
    return answer


def require_effective(session: BoundSession, spec: SessionSpec) -> None:
    """Raise unless the created session itself reports every option the spec asks for."""
    options = session.native.get_session_options()
    reported = session.facts.options
    for key, value in (spec.config or {}).items():
        _same(session, key, value, _config_entry(options, key))
    for key, value in (spec.provider_options or {}).items():
        _same(session, key, value, reported.get(key))
    if spec.profile_prefix is not None and not options.enable_profiling:
        _same(session, "enable_profiling", "on", "off")


def _config_entry(options: Any, key: str) -> str | None:
    try:
        return str(options.get_session_config_entry(key))
    except RuntimeError:
        # onnxruntime's way to say that there is no such entry.
        return None


def _same(session: BoundSession, key: str, wanted: str, found: str | None) -> None:
    if found != wanted:
        raise ExecutionError(
            f"{session.facts.target} did not take the option {key}",
            cause=f"asked for {wanted!r}, the session reports {found!r}",
            fix=f"leave {key} out, or use an onnxruntime and an EP that know it",
        )
