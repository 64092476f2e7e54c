"""Plans done in real children."""

import time

import pytest

from modelwright.plans import History, LocalExecutor, Node, Plan, Ref, foresee, run_all
from modelwright.store import Store
from modelwright.testing import ExecutorSuite
from modelwright.worker import limited
from unit.plans import tasks
from unit.plans.tasks import Params, stage


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "home/store") as opened:
        yield opened


def node(task, text="x", *, before=None, **more):
    inputs = {} if before is None else {"model": Ref(before)}
    return Node(stage(task, task.__name__), Params(text), inputs, "it", **more)


def run(store, *wanted, **limits):
    plan = Plan({str(number): (one,) for number, one in enumerate(wanted)})
    return run_all(plan, store, executor=LocalExecutor(**limits))


class TestLocalExecutor(ExecutorSuite):
    @pytest.fixture
    def executor(self):
        return LocalExecutor(cores=2)


def test_independent_nodes_run_side_by_side_and_share_the_cores(store, tmp_path):
    both = [node(tasks.meet, text, given={"folder": str(tmp_path / "meeting")}) for text in "ab"]
    (tmp_path / "meeting").mkdir()
    results = run(store, *both, cores=2)
    assert [results[one.id].done.outcome.cpus for one in both] == [1, 1]


def test_a_node_alone_has_all_cores(store):
    (result,) = run(store, node(tasks.write), cores=2).values()
    assert result.done.outcome.cpus is None


def test_what_waits_for_a_core_begins_without_being_told_to_and_has_all_cores_if_nothing_runs_beside_it(store):
    three = [node(tasks.write, text) for text in "abc"]
    made, until = [], time.monotonic() + 60

    def look(_):
        while len(store.entries()) < 3 and time.monotonic() < until:
            time.sleep(0.02)
        made.append(len(store.entries()))
        return ()

    plan = Plan({"all": tuple(three)}, look)
    results = list(LocalExecutor(cores=1).run(plan, store))
    assert made[0] == 3
    assert [one.done.outcome.cpus for one in results] == [None, None, None]


@pytest.mark.parametrize("limits", [{"cores": 1}, {"cores": 2, "memory": 1}])
def test_without_cores_or_memory_for_two_they_take_turns(store, tmp_path, limits):
    three = [node(tasks.keep_apart, text, given={"folder": str(tmp_path)}) for text in "abc"]
    results = run(store, *three, **limits)
    assert [results[one.id].error for one in three] == [None, None, None]


@pytest.mark.parametrize(
    ("wanted", "limits", "prepared"),
    [
        (2, {"cores": 2}, ["False", "True"]),
        (1, {"cores": 2}, ["False"]),
        (2, {"cores": 1}, ["False", "False"]),
        (2, {"cores": 2, "memory": 1}, ["False", "False"]),
    ],
)
def test_a_child_gets_ready_for_what_will_run_beside_others(store, wanted, limits, prepared):
    """Where it is one at a time, or where there is no memory for two, the warm child does all."""
    first = node(tasks.write)
    kind = stage(tasks.tell_imports, "tell", imports=(tasks.UNUSED,))
    nodes = [Node(kind, Params(text), {"model": Ref(first)}, "it") for text in "ab"[:wanted]]
    results = run(store, *nodes, **limits)
    assert sorted(results[one.id].done.outcome.read for one in nodes) == prepared


def test_a_child_that_cannot_get_ready_works_all_the_same(store):
    first = node(tasks.write)
    kind = stage(tasks.tell_imports, "tell", imports=("no_such_module",))
    nodes = [Node(kind, Params(text), {"model": Ref(first)}, "it") for text in "ab"]
    results = run(store, *nodes, cores=2)
    assert [results[one.id].error for one in nodes] == [None, None]


def test_limits_that_were_set_hold_in_every_thread(store):
    with limited(timeout=0.5):
        (result,) = run(store, node(tasks.last_for_ever)).values()
    assert "limit 0.5 s" in result.error.cause


def test_a_forecast_tells_what_earlier_runs_took_and_nothing_without_them(store):
    one = node(tasks.write, "b", before=node(tasks.write, "a"))
    plan = Plan({"cpu": (one,)})
    assert [item.state for item in foresee(plan, store)] == ["run", "later"]
    assert foresee(plan, store)[0].forecast is None
    run(store, one)
    assert [item.state for item in foresee(plan, store)] == ["cached", "cached"]
    known = History(store).forecast("write", 1)
    assert known is not None
    assert known.seconds > 0
    assert known.peak_rss_bytes > 1_000_000
    assert known.runs == 2
    assert History(store).forecast("never", 1) is None


def test_a_node_that_waits_for_the_users_code_says_why(store):
    plan = Plan({"cpu": (node(tasks.write, open="nobody knows"),)})
    (item,) = foresee(plan, store)
    assert (item.state, item.key, item.why) == ("later", None, "nobody knows")


def test_looking_at_a_store_changes_nothing_on_disk(tmp_path):
    root = tmp_path / "home/store"
    with Store(root, read_only=True) as none:
        assert [item.state for item in foresee(Plan({"a": (node(tasks.write),)}), none)] == ["run"]
    assert not root.exists()
    with Store(root) as store:
        run(store, node(tasks.write))
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    with Store(root, read_only=True) as looked:
        assert [item.state for item in foresee(Plan({"a": (node(tasks.write),)}), looked)] == ["cached"]
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


@pytest.mark.parametrize(
    ("kind", "processes"),
    [
        ({}, 1),
        ({"alone": True}, 3),
        ({"last": True}, 3),
        ({"last": True, "leaves": lambda outcome: False}, 1),
        ({"last": True, "leaves": lambda outcome: outcome.passed}, 2),
    ],
)
def test_a_process_is_used_again_unless_something_was_left_there(store, kind, processes):
    """The second of three says that it left nothing, where it is asked."""
    asked = stage(tasks.tell_process, "tell", **kind)
    three = [Node(asked, Params(text, passes=text != "b"), {}, text) for text in "abc"]
    results = run(store, *three, cores=1)
    assert len({results[one.id].done.outcome.read for one in three}) == processes
