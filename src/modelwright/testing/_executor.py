"""What every executor must keep."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from modelwright.errors import InputError
from modelwright.plans import Executor, Node, NodeResult, Plan, Ref
from modelwright.store import Store
from modelwright.testing import _executor_tasks as tasks
from modelwright.testing._executor_tasks import TextOutcome, TextParams
from modelwright.vocabulary import Progress

AnyNode = Node[Any, Any]
_PATIENCE_S = 60.0


class ExecutorSuite:
    """Override the fixture `executor`: one that is ready to run plans."""

    @pytest.fixture
    def executor(self) -> Executor:
        raise NotImplementedError("give the executor that is to be tested")

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        with Store(tmp_path / "executor" / "store") as opened:
            yield opened

    def test_nodes_run_once_each_after_what_they_depend_on(self, executor: Executor, store: Store) -> None:
        shared = node(tasks.WRITE, "shared")
        plan = Plan({name: (node(tasks.WRITE, name, before=shared),) for name in "ab"})
        order = [result.node.id for result in executor.run(plan, store)]
        assert sorted(order) == sorted(one.id for one in plan.nodes)
        assert order[0] == shared.id

    def test_a_node_reads_what_the_one_before_wrote(self, executor: Executor, store: Store) -> None:
        last = node(tasks.WRITE, "b", before=node(tasks.WRITE, "a"))
        assert told(run(executor, store, last)[last.id]).read == "a"

    def test_what_the_store_has_is_not_made_again(self, executor: Executor, store: Store) -> None:
        chain = node(tasks.WRITE, "b", before=node(tasks.WRITE, "a"))
        assert produced(run(executor, store, chain)) == [True, True]
        assert produced(run(executor, store, chain)) == [False, False]

    def test_the_same_content_from_a_changed_stage_stops_the_work_there(self, executor: Executor, store: Store) -> None:
        run(executor, store, node(tasks.WRITE, "b", before=node(tasks.WRITE, "a")))
        changed = node(tasks.WRITE_AGAIN, "a")
        after = node(tasks.WRITE, "b", before=changed)
        results = run(executor, store, after)
        assert produced({one: results[one] for one in (changed.id, after.id)}) == [True, False]

    def test_a_failure_takes_with_it_only_what_depends_on_it(self, executor: Executor, store: Store) -> None:
        bad, good = node(tasks.REFUSE), node(tasks.WRITE)
        after_bad, after_good = node(tasks.WRITE, "a", before=bad), node(tasks.WRITE, "b", before=good)
        results = run(executor, store, after_bad, after_good)
        assert isinstance(results[bad.id].error, InputError)
        assert results[after_bad.id].done is None
        assert results[after_bad.id].cause is results[bad.id].error
        assert told(results[after_good.id]).read == "x"

    def test_a_gate_that_says_no_leaves_out_what_needs_it(self, executor: Executor, store: Store) -> None:
        gate = node(tasks.WRITE, passes=False)
        after = node(tasks.WRITE, "after", needs=(gate,))
        results = run(executor, store, after)
        assert results[gate.id].done is not None
        assert (results[after.id].done, results[after.id].error) == (None, None)

    def test_an_outcome_that_is_not_worth_keeping_is_given_and_made_again(
        self, executor: Executor, store: Store
    ) -> None:
        for _ in range(2):
            fleeting = node(tasks.FLEETING, passes=False)
            assert produced(run(executor, store, fleeting)) == [True]
        assert store.entries() == ()

    def test_what_is_wanted_because_a_node_has_ended_is_run_too(self, executor: Executor, store: Store) -> None:
        first, other = node(tasks.WRITE, "a"), node(tasks.WRITE, "b")
        after = node(tasks.WRITE, "c", before=first)
        told_of: list[str] = []

        def more(result: NodeResult) -> tuple[AnyNode, ...]:
            told_of.append(result.node.id)
            return (after,) if len(told_of) == 2 else ()

        results = {one.node.id: one for one in executor.run(Plan({"a": (first, other)}, more), store)}
        assert told(results[after.id]).read == "a"
        # The first had ended when it was wanted once more, so it is told of again.
        assert sorted(told_of) == sorted([first.id, first.id, other.id, after.id])

    def test_the_work_goes_on_while_somebody_looks_at_what_has_ended(self, executor: Executor, store: Store) -> None:
        first = node(tasks.WRITE, "a")
        after = node(tasks.WRITE, "b", before=first)
        made: list[int] = []

        def look(result: NodeResult) -> tuple[AnyNode, ...]:
            made.append(_entries(store, 2 if result.node.id == first.id else 0))
            return ()

        list(executor.run(Plan({"a": (after,)}, look), store))
        assert made[0] == 2

    def test_who_stops_looking_stops_the_work(self, executor: Executor, store: Store) -> None:
        def stop(progress: Progress) -> None:
            if progress.message == "on it":
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            list(executor.run(Plan({"a": (node(tasks.LAST),)}), store, stop))
        assert store.entries() == ()

    def test_progress_says_which_node_it_is_about(self, executor: Executor, store: Store) -> None:
        heard: list[Progress] = []
        list(executor.run(Plan({"a": (node(tasks.WRITE),)}), store, heard.append))
        assert {(one.stage, one.label) for one in heard} == {("write", "it")}


def node(stage: Any, text: str = "x", *, passes: bool = True, before: AnyNode | None = None, **more: Any) -> AnyNode:
    inputs = {} if before is None else {"model": Ref(before)}
    return Node(stage, TextParams(text, passes), inputs, "it", **more)


def run(executor: Executor, store: Store, *wanted: AnyNode) -> dict[str, NodeResult]:
    plan = Plan({str(number): (one,) for number, one in enumerate(wanted)})
    return {result.node.id: result for result in executor.run(plan, store)}


def _entries(store: Store, count: int) -> int:
    """How many there are, as soon as there are so many, or when nobody makes them."""
    until = time.monotonic() + _PATIENCE_S
    while len(store.entries()) < count and time.monotonic() < until:
        time.sleep(0.02)
    return len(store.entries())


def produced(results: dict[str, NodeResult]) -> list[bool]:
    return [result.done is not None and result.done.produced for result in results.values()]


def told(result: NodeResult) -> TextOutcome:
    assert result.done is not None, result.error
    found: TextOutcome = result.done.outcome
    return found
