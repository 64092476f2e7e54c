"""What is made of stored tensors alone is made right before it is read."""

from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from modelwright.graph import late, names_read


def node(reads, writes, **attributes):
    return helper.make_node("DequantizeLinear", reads.split(), writes.split(), name=writes, **attributes)


def test_each_weight_waits_for_its_reader():
    nodes = [node("q1", "w1"), node("q2", "w2"), node("w2", "t2"), node("x w1", "a"), node("a t2", "y")]
    assert [item.name for item in late(nodes, {"q1", "q2"})] == ["w1", "a", "w2", "t2", "y"]


def test_an_output_that_nothing_reads_and_a_reader_inside_a_subgraph_are_served():
    body = helper.make_graph(
        [node("w1", "inner")], "then", [], [helper.make_tensor_value_info("inner", TensorProto.FLOAT, None)]
    )
    nodes = [node("q2", "alone"), node("q1", "w1"), node("x", "y"), node("y", "z", then_branch=body)]
    assert [item.name for item in late(nodes, {"q1", "q2"})] == ["y", "w1", "z", "alone"]


@given(st.lists(st.tuples(st.lists(st.integers(0, 30), min_size=1, max_size=3), st.integers(1, 2)), max_size=25))
def test_every_node_comes_once_and_behind_what_it_reads(drawn):
    names, nodes = ["x", "q0", "q1", "q2"], []
    for index, (reads, count) in enumerate(drawn):
        made = [f"n{index}_{place}" for place in range(count)]
        nodes.append(node(" ".join(names[number % len(names)] for number in reads), " ".join(made)))
        names += made
    found = late(nodes, {"q0", "q1", "q2"})
    assert sorted(item.name for item in found) == sorted(item.name for item in nodes)
    known = {"x", "q0", "q1", "q2"}
    for item in found:
        assert known.issuperset(names_read(item))
        known |= set(item.output)
