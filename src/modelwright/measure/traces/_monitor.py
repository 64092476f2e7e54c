"""The monitor behind a trace: onnxruntime's profile for every EP, and beside it what the EP itself records.

Runs in a child, foreign interpreters included, so: standard library and our own light rooms only.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.measure.traces._monitor_contract import Window
from modelwright.measure.traces._profile import Profile, read_profile
from modelwright.targets import BoundSession, DeviceTrace, SessionFacts, SessionSpec, Target, TraceProblem

_PROFILE = "profile"


@dataclass(frozen=True)
class Recorded:
    """What the child brings home. A problem stands where its data should be."""

    facts: SessionFacts
    warmup: int
    measured: int
    profile: Profile | None
    problem: TraceProblem | None
    inside: DeviceTrace | None = None
    inside_problem: TraceProblem | None = None


class TraceMonitor:
    """Writes into `folder`, which belongs to this trace alone."""

    def __init__(self, target: Target, folder: Path) -> None:
        self._adapter = target.adapter
        self._folder = folder
        self._session: BoundSession | None = None

    def session_spec(self, spec: SessionSpec) -> SessionSpec:
        options = {**(spec.provider_options or {}), **self._adapter.trace_options(self._folder)}
        return replace(spec, profile_prefix=str(self._folder / _PROFILE), provider_options=options)

    def collect(self, session: BoundSession) -> None:
        """The profile is complete, and its name known, when the session is closed."""
        self._session = session

    def parse(self, window: Window) -> Recorded:
        recorded = Recorded(window.facts, window.runs.warmup, window.runs.measured, None, None)
        try:
            recorded = replace(recorded, profile=read_profile(self._profile()))
        except TraceProblem as problem:
            return replace(recorded, problem=problem)
        try:
            return replace(recorded, inside=self._adapter.read_trace(self._folder))
        except TraceProblem as problem:
            return replace(recorded, inside_problem=problem)

    def close(self) -> None:
        """The folder is the parent's: it also has to go when this process does not live to say so."""
        self._session = None

    def _profile(self) -> Path:
        assert self._session is not None, "collect comes before parse"
        return Path(self._session.profile or self._folder / _PROFILE)
