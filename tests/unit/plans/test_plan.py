"""Nodes and plans as values: nothing is run here."""

import pickle

import pytest

from modelwright.errors import InputError
from modelwright.plans import Node, NodeResult, Plan, Ref, StageResult
from modelwright.plans._schedule import NodeSchedule
from modelwright.store import Artifact, Key
from unit.plans import tasks
from unit.plans.tasks import Outcome, Params, stage

FIRST = stage(tasks.write, "first")
SECOND = stage(tasks.write, "second")


def first(text="x", **more):
    return Node(FIRST, Params(text), {}, "it", **more)


def second(before, text="y", **more):
    return Node(SECOND, Params(text), {"model": Ref(before)}, "it", **more)


def done(node, tmp_path, *, passed=True):
    artifact = Artifact(Key("0" * 64, node.stage.name), "", (), {}, 0.0, tmp_path)
    return NodeResult(
        node, StageResult(node.stage.name, Outcome, artifact.key, artifact, True, {"passed": passed, "read": ""})
    )


def test_a_node_comes_back_from_another_process_as_the_same():
    node = second(first(), needs=(first("z"),))
    again = pickle.loads(pickle.dumps(node))
    assert again.id == node.id
    assert again.stage.task is tasks.write


@pytest.mark.parametrize(
    "other",
    [
        second(first("other")),
        second(first(), "other"),
        second(first(), marks={"data": "0" * 64}),
        second(first(), needs=(first("gate"),)),
        Node(SECOND, Params("y"), {"model": Ref(first(), "part")}, "it"),
        Node(stage(tasks.write, "second", "2"), Params("y"), {"model": Ref(first())}, "it"),
    ],
)
def test_whatever_shapes_a_result_or_lies_upstream_makes_another_node(other):
    assert other.id != second(first()).id


def test_what_the_task_is_given_beside_the_key_does_not():
    assert second(first(), given={"folder": "/a"}).id == second(first(), given={"folder": "/b"}).id


def test_what_several_targets_need_is_in_a_plan_once_and_says_who_needs_it():
    cpu, npu = second(first()), second(first(), "npu")
    plan = Plan({"cpu": (cpu,), "npu": (npu,)})
    assert [node.id for node in plan.nodes] == [first().id, cpu.id, npu.id]
    assert plan.users[first().id] == ("cpu", "npu")
    assert plan.users[npu.id] == ("npu",)


def test_a_node_is_ready_when_everything_before_it_has_ended(tmp_path):
    plan = Plan({"cpu": (second(first()),)})
    schedule = NodeSchedule(plan)
    assert schedule.ready() == [plan.nodes[0]]
    schedule.begin(plan.nodes[0])
    assert schedule.ready() == []
    schedule.end(done(plan.nodes[0], tmp_path))
    assert schedule.ready() == [plan.nodes[1]]
    assert schedule.foregone(plan.nodes[1]) is None


def test_what_depends_on_a_failure_is_left_out_and_names_it(tmp_path):
    plan = Plan({"cpu": (second(first()),)})
    schedule, error = NodeSchedule(plan), InputError("no", cause="no", fix="no")
    schedule.end(NodeResult(plan.nodes[0], error=error))
    left_out = schedule.foregone(plan.nodes[1])
    assert left_out is not None
    assert left_out.cause is error


def test_a_gate_that_says_no_leaves_out_what_needs_it_without_an_error(tmp_path):
    gate = first("gate")
    plan = Plan({"cpu": (second(first(), needs=(gate,)),)})
    schedule = NodeSchedule(plan)
    for node in plan.nodes[:2]:
        schedule.end(done(node, tmp_path, passed=node.id != gate.id))
    left_out = schedule.foregone(plan.nodes[2])
    assert left_out is not None
    assert left_out.cause is None
    assert not left_out.good


def test_the_longest_way_begins_first_and_equal_ways_are_walked_one_after_the_other():
    short, other = second(first("a")), second(first("b"))
    long = second(second(first("c"), "middle"), "end")
    schedule = NodeSchedule(Plan({"short": (short,), "other": (other,), "long": (long,)}))
    assert [node.params.text for node in schedule.ready()] == ["c", "a", "b"]
    schedule.end(NodeResult(short.upstream[0], left_out=None))
    assert [node.params.text for node in schedule.ready()] == ["c", "y", "b"]
