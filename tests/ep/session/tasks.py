"""What the session tests do inside a child."""

from __future__ import annotations

import gc
import os
import weakref
from pathlib import Path

import numpy as np

from modelwright.errors import InputError, WrightError
from modelwright.targets import SessionFacts, SessionSpec, bind, open_as_written, open_exact, open_session, parse_target
from modelwright.worker import task


def _feeds(session):
    return {item.name: np.ones(item.shape, dtype=item.dtype) for item in session.inputs}


@task
def facts_of(model: str, target: str, spec: SessionSpec | None = None) -> SessionFacts:
    with open_session(model, parse_target(target), spec) as session:
        return session.facts


@task
def run_ones(model: str, target: str) -> np.ndarray:
    with open_session(model, parse_target(target)) as session:
        return session.run(_feeds(session))["y"]


@task
def config_entries(model: str, target: str, keys: list[str]) -> list[str]:
    """Read back from the created session, not from what was asked."""
    with open_session(model, parse_target(target)) as session:
        options = session.native.get_session_options()
        return [options.get_session_config_entry(key) for key in keys]


@task
def cpu_beside(model: str, other: str) -> tuple[tuple[str, ...], list[str]]:
    bind(parse_target(other))
    with open_session(model, parse_target("cpu")) as session:
        return session.facts.providers, sorted({group.ep_name for group in session.assignment()})


@task
def threads_on_one_cpu(model: str) -> int:
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with open_session(model, parse_target("cpu")) as session:
        return session.native.get_session_options().intra_op_num_threads


@task
def cpus_of_a_simulator(model: str) -> tuple[list[set[int]], bool]:
    """The CPUs of every thread that computes or that the simulator started; whether ours has its own again after."""
    mine = os.sched_getaffinity(0)
    others = set(Path("/proc/self/task").iterdir())
    with open_session(model, parse_target("qnn-npu")) as session:
        session.run(_feeds(session))
        started = set(Path("/proc/self/task").iterdir()) - others
        found = [os.sched_getaffinity(int(thread)) for thread in ("0", *(path.name for path in started))]
    return found, os.sched_getaffinity(0) == mine


@task
def native_is_freed_after_failed_run(model: str, target: str) -> tuple[bool, bool]:
    """Whether the native session was alive before and is alive after close, while the error is still held."""
    session = open_session(model, parse_target(target))
    native = weakref.ref(session.native._sess)
    kept = None
    try:
        with session:
            session.run({"x": np.ones([2, 2], np.float32)})
    except WrightError as error:
        kept = error
    before = kept is not None
    gc.collect()
    return before, native() is not None


@task
def good_run_after_bad_one(model: str) -> np.ndarray:
    with open_session(model, parse_target("cpu")) as session:
        try:
            session.run({"x": np.ones([1], np.float32)})
        except InputError:
            return session.run(_feeds(session))["y"]
    raise AssertionError("the bad input was accepted")


@task
def profiled(model: str, prefix: str) -> str | None:
    session = open_session(model, parse_target("cpu"), SessionSpec(profile_prefix=prefix))
    with session:
        session.run(_feeds(session))
    return session.profile


@task
def open_in_turn(model: str, targets: list[str]) -> list[str]:
    """Several sessions in one process: a library is registered once."""
    found = []
    for target in targets:
        with open_session(model, parse_target(target)) as session:
            found.append(session.facts.providers[0])
    return found


@task
def arena_of(model: str, config: dict[str, str]) -> bool:
    """Whether the created session has an arena."""
    with open_session(model, parse_target("cpu"), SessionSpec(config=config)) as session:
        return bool(session.native.get_session_options().enable_cpu_mem_arena)


@task
def exact_and_written(model: str) -> tuple[np.ndarray, ...]:
    found = []
    for opened in (open_exact, open_as_written):
        with opened(model) as session:
            found.append(session.run(_feeds(session))["y"])
    return tuple(found)
