"""What the tests of measurements do inside a child."""

from __future__ import annotations

import gc
import os
import weakref

import numpy as np

from modelwright.errors import WrightError
from modelwright.measure import LegPlan, Runs, SampleSink, TimedLeg, measure_leg, run_monitored
from modelwright.targets import SessionSpec, open_session, parse_target
from modelwright.worker import task

FEEDS = {"x": np.ones((1, 4), np.float32)}


@task
def leg(model: str, plan: LegPlan) -> tuple[TimedLeg, bool]:
    """A leg, and whether the garbage collector is as it was."""
    with open_session(model, parse_target("cpu"), SessionSpec(threads=1)) as session:
        return measure_leg(session, FEEDS, plan), gc.isenabled()


@task
def bad_inputs(model: str) -> str:
    with open_session(model, parse_target("cpu")) as session:
        try:
            measure_leg(session, {"x": np.ones((1, 5), np.float32)}, LegPlan(iterations=1), SampleSink())
        except WrightError as error:
            return type(error).__name__
    return "nothing"


class Recorder:
    """A monitor that writes down what happens to it."""

    def __init__(self, events, config=None, fail=""):
        self.events = events
        self.config = config or {}
        self.fail = fail
        self.native = None

    def session_spec(self, spec):
        self._at("session_spec")
        return SessionSpec(threads=spec.threads, config=self.config, profile_prefix=spec.profile_prefix)

    def collect(self, session):
        self.native = weakref.ref(session.native._sess)
        self._at("collect")

    def parse(self, window):
        self._at("parse" if self.native() is None else "parse while the session lives")
        return [window.runs.warmup, window.runs.measured, window.facts.target]

    def close(self):
        self._at("close")

    def _at(self, event):
        self.events.append(event)
        if event == self.fail:
            raise ValueError(event)


@task
def monitored(model: str, fail: str = "") -> tuple[list[str], object]:
    """The order of events, and what came of it."""
    events: list[str] = []

    def body(session):
        session.run(FEEDS)
        events.append("body")
        if fail == "body":
            raise KeyError("body")
        return "value", Runs(0, 1)

    monitor = Recorder(events, {"session.disable_prepacking": "1"}, fail)
    try:
        done = run_monitored(model, parse_target("cpu"), SessionSpec(threads=1), monitor, body)
    except (ValueError, KeyError) as error:
        return events, f"{type(error).__name__}: {error.args[0]}"
    entry = (done.value, done.seen)
    return events, entry


@task
def swallowed_option(model: str) -> str:
    """A session that did not get what the monitor asked for."""

    class Forgetful(Recorder):
        def session_spec(self, spec):
            return _Lying(config={"session.disable_prepacking": "1"})

    try:
        run_monitored(model, parse_target("cpu"), SessionSpec(), Forgetful([]), lambda session: ("", Runs(0, 0)))
    except WrightError as error:
        return str(error)
    return "nothing was noticed"


class _Lying(SessionSpec):
    """Tells the session nothing of its config, and everybody else all of it."""

    def __getattribute__(self, name):
        if name == "config" and _asked_by_targets():
            return None
        return super().__getattribute__(name)


def _asked_by_targets() -> bool:
    import sys

    return "targets" in sys._getframe(2).f_code.co_filename


@task
def abort() -> None:
    os.abort()
