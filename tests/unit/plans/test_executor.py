"""Plans done in real children."""

import pytest

from modelwright.errors import InputError
from modelwright.plans import History, LocalExecutor, Node, Plan, Ref, foresee, run_all
from modelwright.store import Store
from modelwright.worker import limited
from unit.plans import tasks
from unit.plans.tasks import Params, stage

WRITE = stage(tasks.write, "write")


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


def test_independent_nodes_run_side_by_side_and_share_the_cores(store, tmp_path):
    both = [node(tasks.meet, text, given={"folder": str(tmp_path / "meeting")}) for text in "ab"]
    (tmp_path / "meeting").mkdir()
    results = run(store, *both, cores=2)
    assert [results[one.id].done.outcome.cpus for one in both] == [1, 1]


def test_a_node_alone_has_all_cores(store):
    (result,) = run(store, node(tasks.write), cores=2).values()
    assert result.done.outcome.cpus is None


@pytest.mark.parametrize("limits", [{"cores": 1}, {"cores": 2, "memory": 1}])
def test_without_cores_or_memory_for_two_they_take_turns(store, tmp_path, limits):
    three = [node(tasks.keep_apart, text, given={"folder": str(tmp_path)}) for text in "abc"]
    results = run(store, *three, **limits)
    assert [results[one.id].error for one in three] == [None, None, None]


def test_one_that_fails_takes_with_it_only_what_depends_on_it(store):
    bad, good = node(tasks.refuse), node(tasks.write)
    after_bad, after_good = node(tasks.write, "a", before=bad), node(tasks.write, "b", before=good)
    results = run(store, after_bad, after_good, cores=2)
    assert isinstance(results[after_bad.id].cause, InputError)
    assert results[after_bad.id].done is None
    assert results[after_good.id].done.outcome.read == "x"


def test_what_the_store_has_is_not_made_again(store):
    chain = node(tasks.write, "b", before=node(tasks.write, "a"))
    assert [result.done.produced for result in run(store, chain).values()] == [True, True]
    assert [result.done.produced for result in run(store, chain).values()] == [False, False]


def test_the_same_content_from_a_changed_stage_upstream_stops_the_work_there(store):
    run(store, node(tasks.write, "b", before=Node(WRITE, Params("a"), {}, "it")))
    changed = Node(stage(tasks.write, "write", "2"), Params("a"), {}, "it")
    results = run(store, after := node(tasks.write, "b", before=changed))
    assert results[changed.id].done.produced
    assert not results[after.id].done.produced


def test_an_outcome_that_is_not_worth_keeping_is_given_and_made_again(store):
    fleeting = Node(stage(tasks.write, "asked", keeps=_passed), Params("a", passes=False), {}, "it")
    for _ in range(2):
        (result,) = run(store, fleeting).values()
        assert result.done.produced
        assert result.done.outcome.passed is False
    assert store.entries() == ()


def _passed(outcome):
    return outcome.passed


def test_who_stops_looking_stops_the_children(store):
    heard = []
    plan = Plan({"a": (node(tasks.last_for_ever),)})

    def stop(progress):
        heard.append(progress)
        if progress.message == "on it":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(LocalExecutor().run(plan, store, stop))
    assert heard[-1].stage == "last_for_ever"
    assert store.entries() == ()


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
    more = Plan({"cpu": (node(tasks.write, "d", before=node(tasks.write, "c")),)})
    assert [(item.state, item.forecast.runs) for item in foresee(more, store)] == [("run", 2), ("later", 2)]
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
