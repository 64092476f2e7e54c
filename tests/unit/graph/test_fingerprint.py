"""The fingerprint follows what a model computes, not how its file is written."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from modelwright import graph
from modelwright.errors import InputError
from support import models

Proto = onnx.ModelProto
INPUTS = ("x", "y")
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def fingerprint_of(proto: Proto) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return graph.fingerprint(graph.load(models.save(proto, Path(folder))))


def copy_of(proto: Proto) -> Proto:
    copy = Proto()
    copy.CopyFrom(proto)
    return copy


# --- random graphs -----------------------------------------------------------------------------------------


@st.composite
def random_models(draw: st.DrawFn) -> Proto:
    """Up to eight nodes over two inputs and three weights. Wiring is free; shapes need not fit."""
    weights = [
        models.weight(f"w{i}", *draw(st.sampled_from([(2,), (2, 3), ()])), seed=draw(st.integers(0, 3)))
        for i in range(draw(st.integers(1, 3)))
    ]
    names = [*INPUTS, *(tensor.name for tensor in weights)]
    nodes = []
    for index in range(draw(st.integers(1, 8))):
        nodes.append(draw(random_nodes(index, tuple(names))))
        names.append(f"v{index}")
    free = [f"v{i}" for i in range(len(nodes)) if not any(_reads(node, f"v{i}") for node in nodes)]
    more = draw(st.lists(st.sampled_from([f"v{i}" for i in range(len(nodes))]), max_size=2))
    outputs = list(dict.fromkeys([*free, *more]))
    inputs = [models.value(name, shape=["n", 2]) for name in INPUTS]
    return models.model(nodes, inputs, [models.value(name) for name in outputs], weights)


@st.composite
def random_nodes(draw: st.DrawFn, index: int, names: tuple[str, ...]) -> onnx.NodeProto:
    pick = st.sampled_from(names)
    kind = draw(st.sampled_from(["Relu", "Sub", "Gemm", "Concat", "If"]))
    output = [f"v{index}"]
    if kind == "Relu":
        return helper.make_node("Relu", [draw(pick)], output, name=f"n{index}")
    if kind == "Sub":
        return helper.make_node("Sub", [draw(pick), draw(pick)], output)
    if kind == "Gemm":
        bias = draw(st.sampled_from(["", names[0]]))
        attributes = {"alpha": draw(st.sampled_from([0.5, 1.0])), "transB": draw(st.integers(0, 1))}
        return helper.make_node("Gemm", [draw(pick), draw(pick), bias], output, **attributes)
    if kind == "Concat":
        inputs = draw(st.lists(pick, min_size=1, max_size=4))
        return helper.make_node("Concat", inputs, output, axis=draw(st.integers(-1, 1)))
    bodies = {
        branch: _branch(f"{branch}{index}", draw(pick), draw(st.sampled_from(["Neg", "Abs"])))
        for branch in ("then_branch", "else_branch")
    }
    return helper.make_node("If", [draw(pick)], output, **bodies)


def _branch(prefix: str, captured: str, operator: str) -> onnx.GraphProto:
    nodes = [
        helper.make_node(operator, [captured], [f"{prefix}_a"]),
        helper.make_node("Add", [f"{prefix}_a", f"{prefix}_w"], [f"{prefix}_b"]),
    ]
    weights = [models.weight(f"{prefix}_w", 2, seed=1)]
    return helper.make_graph(nodes, prefix, [], [models.value(f"{prefix}_b")], weights)


def _graphs(proto: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield proto
    for node in proto.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graphs(attribute.g)


def _reads(node: onnx.NodeProto, name: str) -> bool:
    inside = [inner for item in node.attribute for inner in item.g.node]
    return name in node.input or any(_reads(inner, name) for inner in inside)


# --- what must not matter ----------------------------------------------------------------------------------


def rename_nodes(proto: Proto, rng: random.Random) -> None:
    for part in _graphs(proto.graph):
        part.name = f"g{rng.random()}"
        for node in part.node:
            node.name = f"node{rng.random()}"


def rename_inner_values(proto: Proto, rng: random.Random) -> None:
    keep = {value.name for value in (*proto.graph.input, *proto.graph.output)} | {""}
    new: dict[str, str] = {}

    def name(old: str) -> str:
        return old if old in keep else new.setdefault(old, f"t{rng.random()}")

    for part in _graphs(proto.graph):
        for node in part.node:
            node.input[:] = [name(item) for item in node.input]
            node.output[:] = [name(item) for item in node.output]
        for item in (*part.initializer, *part.output, *part.input):
            item.name = name(item.name)


def reorder_initializers(proto: Proto, rng: random.Random) -> None:
    tensors = list(proto.graph.initializer)
    rng.shuffle(tensors)
    copies = [onnx.TensorProto.FromString(tensor.SerializeToString()) for tensor in tensors]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(copies)


def reorder_independent_nodes(proto: Proto, rng: random.Random) -> None:
    left = [onnx.NodeProto.FromString(node.SerializeToString()) for node in proto.graph.node]
    placed: list[onnx.NodeProto] = []
    while left:
        unmade = {name for node in left for name in node.output}
        ready = [node for node in left if not any(_reads(node, name) for name in unmade)]
        chosen = rng.choice(ready)
        placed.append(chosen)
        left.remove(chosen)
    del proto.graph.node[:]
    proto.graph.node.extend(placed)


def use_typed_fields(proto: Proto, rng: random.Random) -> None:
    for part in _graphs(proto.graph):
        for tensor in part.initializer:
            array = numpy_helper.to_array(tensor)
            tensor.ClearField("raw_data")
            tensor.float_data.extend(array.ravel().tolist())


def add_noise(proto: Proto, rng: random.Random) -> None:
    proto.doc_string = proto.graph.doc_string = f"{rng.random()}"
    proto.producer_name, proto.producer_version, proto.model_version = "other", "9", 7
    proto.ir_version = 11
    helper.set_model_props(proto, {"author": "someone"})
    for node in proto.graph.node:
        node.doc_string = "text"
        if node.output[0] not in {value.name for value in proto.graph.output}:
            proto.graph.value_info.append(models.value(node.output[0], shape=[1, 2]))
    annotation = proto.graph.quantization_annotation.add()
    annotation.tensor_name = "x"
    proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    proto.opset_import[0].domain = "ai.onnx"


def reorder_attributes(proto: Proto, rng: random.Random) -> None:
    for node in proto.graph.node:
        copies = [onnx.AttributeProto.FromString(item.SerializeToString()) for item in node.attribute]
        del node.attribute[:]
        node.attribute.extend(reversed(copies))


NEUTRAL = (
    rename_nodes,
    rename_inner_values,
    reorder_initializers,
    reorder_independent_nodes,
    use_typed_fields,
    add_noise,
    reorder_attributes,
)


@pytest.mark.parametrize("change", NEUTRAL, ids=lambda change: change.__name__)
@given(proto=random_models(), seed=st.integers(0, 99))
@settings(RELAXED, max_examples=40)
def test_neutral_change_keeps_the_fingerprint(
    change: Callable[[Proto, random.Random], None], proto: Proto, seed: int
) -> None:
    before = fingerprint_of(proto)
    changed = copy_of(proto)
    change(changed, random.Random(seed))
    assert fingerprint_of(changed) == before


@given(proto=random_models(), seed=st.integers(0, 99))
@settings(RELAXED, max_examples=40)
def test_all_neutral_changes_together_keep_the_fingerprint(proto: Proto, seed: int) -> None:
    changed = copy_of(proto)
    for change in NEUTRAL:
        change(changed, random.Random(seed))
    assert fingerprint_of(changed) == fingerprint_of(proto)


@given(proto=random_models())
@settings(RELAXED, max_examples=40)
def test_inline_and_external_weights_have_one_fingerprint(proto: Proto) -> None:
    with tempfile.TemporaryDirectory() as folder:
        outside = graph.load(models.save_external(proto, Path(folder)))
        assert graph.external_data(outside)
        assert graph.fingerprint(outside) == fingerprint_of(proto)


# --- what must matter --------------------------------------------------------------------------------------


@given(proto=random_models(), data=st.data())
@settings(RELAXED, max_examples=60)
def test_one_changed_weight_byte_changes_the_fingerprint(proto: Proto, data: st.DataObject) -> None:
    changed = copy_of(proto)
    tensors = [tensor for part in _graphs(changed.graph) for tensor in part.initializer]
    tensor = data.draw(st.sampled_from(tensors))
    raw = bytearray(tensor.raw_data)
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    tensor.raw_data = bytes(raw)
    assert fingerprint_of(changed) != fingerprint_of(proto)


@given(proto=random_models(), data=st.data())
@settings(RELAXED, max_examples=60)
def test_one_changed_attribute_changes_the_fingerprint(proto: Proto, data: st.DataObject) -> None:
    changed = copy_of(proto)
    plain = [item for node in changed.graph.node for item in node.attribute if not item.HasField("g")]
    assume(plain)
    item = data.draw(st.sampled_from(plain))
    if item.type == onnx.AttributeProto.FLOAT:
        item.f += 0.25
    else:
        item.i += 1
    assert fingerprint_of(changed) != fingerprint_of(proto)


@given(proto=random_models(), data=st.data())
@settings(RELAXED, max_examples=60)
def test_a_left_out_attribute_changes_the_fingerprint(proto: Proto, data: st.DataObject) -> None:
    changed = copy_of(proto)
    nodes = [node for node in changed.graph.node if node.attribute]
    assume(nodes)
    del data.draw(st.sampled_from(nodes)).attribute[0]
    assert fingerprint_of(changed) != fingerprint_of(proto)


@given(proto=random_models(), data=st.data())
@settings(RELAXED, max_examples=80)
def test_a_swapped_input_changes_the_fingerprint(proto: Proto, data: st.DataObject) -> None:
    changed = copy_of(proto)
    formulas = _formulas(proto)
    nodes = [
        node
        for node in changed.graph.node
        if len(node.input) > 1 and formulas[node.input[0]] != formulas[node.input[1]]
    ]
    assume(nodes)
    node = data.draw(st.sampled_from(nodes))
    node.input[0], node.input[1] = node.input[1], node.input[0]
    assert fingerprint_of(changed) != fingerprint_of(proto)


def _formulas(proto: Proto) -> dict[str, str]:
    """Every value written out as text, by another route than the code under test."""
    known = {name: name for name in (*INPUTS, "")}
    known |= {tensor.name: str(numpy_helper.to_array(tensor).tolist()) for tensor in proto.graph.initializer}
    for node in proto.graph.node:
        attributes = sorted(str(_plain(item, known)) for item in node.attribute)
        known[node.output[0]] = f"{node.op_type}{attributes}({','.join(known[name] for name in node.input)})"
    return known


def _plain(item: onnx.AttributeProto, known: dict[str, str]) -> tuple[object, ...]:
    inner = [(node.op_type, known.get(node.input[0])) for node in item.g.node]
    return item.name, item.i, item.f, inner


@given(proto=random_models(), version=st.sampled_from([13, 17, 22]))
@settings(RELAXED, max_examples=30)
def test_another_opset_changes_the_fingerprint(proto: Proto, version: int) -> None:
    changed = copy_of(proto)
    changed.opset_import[0].version = version
    assert fingerprint_of(changed) != fingerprint_of(proto)


@given(proto=random_models())
@settings(RELAXED, max_examples=60)
def test_another_output_order_changes_the_fingerprint(proto: Proto) -> None:
    assume(len(proto.graph.output) > 1)
    changed = copy_of(proto)
    outputs = list(reversed(proto.graph.output))
    del changed.graph.output[:]
    changed.graph.output.extend(outputs)
    assert fingerprint_of(changed) != fingerprint_of(proto)


@given(proto=random_models(), data=st.data())
@settings(RELAXED, max_examples=60)
def test_a_duplicated_node_differs_from_a_shared_one(proto: Proto, data: st.DataObject) -> None:
    changed = copy_of(proto)
    node = data.draw(st.sampled_from(list(changed.graph.node)))
    twin = changed.graph.node.add()
    twin.CopyFrom(node)
    twin.output[0] = "twin"
    for reader in changed.graph.node:
        if node.output[0] in reader.input:
            position = list(reader.input).index(node.output[0])
            reader.input[position] = "twin"
            break
    assert fingerprint_of(changed) != fingerprint_of(proto)


@given(proto=random_models(), data=st.data())
@settings(RELAXED, max_examples=60)
def test_a_changed_subgraph_changes_the_fingerprint(proto: Proto, data: st.DataObject) -> None:
    changed = copy_of(proto)
    inner = list(_graphs(changed.graph))[1:]
    assume(inner)
    node = data.draw(st.sampled_from(inner)).node[0]
    node.op_type = "Abs" if node.op_type == "Neg" else "Neg"
    assert fingerprint_of(changed) != fingerprint_of(proto)


def test_a_subgraph_that_captures_another_value_differs() -> None:
    proto, changed = models.branching(), models.branching()
    changed.graph.node[1].attribute[0].g.node[0].input[0] = "x"
    assert fingerprint_of(changed) != fingerprint_of(proto)


def test_a_duplicated_constant_differs_from_a_shared_one() -> None:
    def proto(second: str) -> Proto:
        nodes = [
            helper.make_node("Constant", [], ["a"], value_float=1.0),
            helper.make_node("Constant", [], ["b"], value_float=1.0),
            helper.make_node("Neg", ["a"], ["p"]),
            helper.make_node("Neg", [second], ["q"]),
        ]
        used = [node for node in nodes if node.output[0] != "b" or second == "b"]
        return models.model(used, [], [models.value(name) for name in "pq"])

    assert fingerprint_of(proto("a")) != fingerprint_of(proto("b"))


@pytest.mark.parametrize("read", ["outer", "inner"])
def test_a_nested_body_tells_its_own_parameter_from_the_outer_one(read: str) -> None:
    fingerprints = {name: fingerprint_of(_nested(name)) for name in ("outer", "inner")}
    assert fingerprints["outer"] != fingerprints["inner"]
    renamed = _nested(read)
    rename_inner_values(renamed, random.Random(1))
    assert fingerprint_of(renamed) == fingerprints[read]


def _nested(read: str) -> Proto:
    """A Scan in a Scan; the innermost node reads the parameter of one or the other."""
    inner = helper.make_graph(
        [helper.make_node("Neg", [read], ["i"])], "in", [models.value("inner")], [models.value("i")]
    )
    scan = helper.make_node("Scan", ["outer"], ["o"], body=inner, num_scan_inputs=1)
    outer = helper.make_graph([scan], "out", [models.value("outer")], [models.value("o")])
    top = helper.make_node("Scan", ["x"], ["y"], body=outer, num_scan_inputs=1)
    return models.model([top], [models.value("x")], [models.value("y")])


def test_trailing_absent_inputs_mean_nothing() -> None:
    proto, longer = models.conv_net(), models.conv_net()
    longer.graph.node[0].input.append("")
    longer.graph.node[0].output.append("")
    assert fingerprint_of(longer) == fingerprint_of(proto)


def test_which_of_two_equal_weights_is_shared_matters() -> None:
    def proto(second: str) -> Proto:
        twins = [numpy_helper.from_array(np.ones(2, np.float32), name) for name in ("a", "b")]
        nodes = [
            helper.make_node("Neg", ["a"], ["p"]),
            helper.make_node("Abs", [second], ["q"]),
            helper.make_node("Exp", ["b"], ["r"]),
        ]
        return models.model(nodes, [], [models.value(name) for name in "pqr"], twins)

    assert fingerprint_of(proto("a")) != fingerprint_of(proto("b"))


@pytest.mark.parametrize("change", ["input name", "output name", "dimension name", "size", "dtype"])
def test_the_signature_is_part_of_the_fingerprint(change: str) -> None:
    proto = models.mlp()
    if change == "input name":
        proto.graph.input[0].name = proto.graph.node[0].input[0] = "other"
    elif change == "output name":
        proto.graph.output[0].name = proto.graph.node[-1].output[0] = "other"
    elif change == "dimension name":
        proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "other"
    elif change == "size":
        proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 1
    else:
        proto.graph.output[0].type.tensor_type.elem_type = models.FLOAT16
    assert fingerprint_of(proto) != fingerprint_of(models.mlp())


def test_the_same_bytes_under_another_type_or_shape_differ() -> None:
    proto, reshaped, retyped = models.mlp(), models.mlp(), models.mlp()
    reshaped.graph.initializer[0].dims[:] = [8, 4]
    retyped.graph.initializer[0].data_type = onnx.TensorProto.INT32
    assert len({fingerprint_of(item) for item in (proto, reshaped, retyped)}) == 3


def test_the_body_of_a_local_function_is_part_of_the_fingerprint() -> None:
    assert fingerprint_of(models.with_function(2.0)) != fingerprint_of(models.with_function(3.0))


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "bool", "int64", "uint64", "float64", "int32"])
def test_raw_and_typed_storage_agree_for_every_type(dtype: str) -> None:
    array = np.array([0, 1, 1, 0, 1]).astype(dtype)
    code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    typed = helper.make_tensor("w", code, [5], array)
    raw = numpy_helper.from_array(array, "w")
    assert raw.HasField("raw_data")
    assert not typed.HasField("raw_data")
    protos = [
        models.model([helper.make_node("Neg", ["w"], ["y"])], [], [models.value("y")], [tensor])
        for tensor in (typed, raw)
    ]
    assert fingerprint_of(protos[0]) == fingerprint_of(protos[1])


def test_packed_int4_agrees_with_its_raw_form() -> None:
    proto, raw = models.weight_only_qdq(), models.weight_only_qdq()
    tensor = raw.graph.initializer[0]
    tensor.raw_data = bytes(tensor.int32_data)
    tensor.ClearField("int32_data")
    assert fingerprint_of(raw) == fingerprint_of(proto)


def test_weights_listed_as_inputs_by_old_models_say_nothing() -> None:
    old, listed = models.mlp(), models.mlp()
    old.ir_version = listed.ir_version = 3
    listed.graph.input.extend(models.value(w.name, shape=list(w.dims)) for w in listed.graph.initializer)
    assert fingerprint_of(listed) == fingerprint_of(old)
    listed.ir_version = 8  # here it means that a caller may replace them
    assert fingerprint_of(listed) != fingerprint_of(old)


def test_large_inline_weights_are_hashed_like_external_and_typed_ones(tmp_path: Path) -> None:
    proto = models.mlp(hidden=20_000)  # above the size at which weights stay on disk
    path = models.save(proto, tmp_path)
    loaded = graph.load(path)
    assert loaded.on_disk
    expected = graph.fingerprint(loaded)
    (tmp_path / "out").mkdir()
    assert graph.fingerprint(graph.load(models.save_external(proto, tmp_path / "out"))) == expected
    use_typed_fields(proto, random.Random(0))
    assert fingerprint_of(proto) == expected


def test_a_changed_byte_in_a_large_weight_changes_the_fingerprint(tmp_path: Path) -> None:
    path = models.save(models.mlp(hidden=20_000), tmp_path)
    loaded = graph.load(path)
    before, span = graph.fingerprint(loaded), loaded.on_disk[0]
    data = bytearray(path.read_bytes())
    data[span.offset + span.length // 2] ^= 1
    path.write_bytes(data)
    assert graph.fingerprint(graph.load(path)) != before


def test_a_file_rewritten_after_loading_is_noticed(tmp_path: Path) -> None:
    path = models.save(models.mlp(hidden=20_000), tmp_path)
    loaded = graph.load(path)
    path.write_bytes(path.read_bytes() + b"\x32\x01a")
    with pytest.raises(InputError, match="changed since"):
        graph.fingerprint(loaded)


def test_the_fingerprint_of_a_known_model_stays_the_same() -> None:
    """Stored results are found by it: a change here must be meant, and bump the version in the hash."""
    weights = [numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(2, 3), "w")]
    nodes = [
        helper.make_node("Gemm", ["x", "w"], ["h"], alpha=0.5),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    shapes = [models.value("x", shape=["n", 2]), models.value("y", shape=["n", 3])]
    proto = models.model(nodes, shapes[:1], shapes[1:], weights)
    assert fingerprint_of(proto) == "ae816e3dea2baae50be047199abfa2f8d37817ee699911dc1430503e7b04418d"


@pytest.mark.parametrize("fault", ["undefined", "two writers", "cycle", "undefined output"])
def test_a_graph_that_cannot_run_has_no_fingerprint(fault: str) -> None:
    proto = models.mlp()
    if fault == "undefined":
        proto.graph.node[1].input[1] = "nowhere"
    elif fault == "two writers":
        proto.graph.node[1].output[0] = "h1"
    elif fault == "cycle":
        proto.graph.node[0].input[0] = "h3"
    else:
        proto.graph.output[0].name = "nowhere"
    with pytest.raises(InputError):
        fingerprint_of(proto)


def test_twenty_thousand_chained_nodes_in_any_order() -> None:
    proto, backwards = models.chain(20_000), models.chain(20_000)
    nodes = list(reversed(proto.graph.node))
    del backwards.graph.node[:]
    backwards.graph.node.extend(nodes)
    assert fingerprint_of(backwards) == fingerprint_of(proto)
    assert fingerprint_of(models.chain(19_999)) != fingerprint_of(proto)


def test_the_structure_is_the_same_for_other_weights_and_another_one_for_other_shapes(tmp_path: Path) -> None:
    def net(seed: int, hidden: int = 8, axis: int = 1) -> graph.Graph:
        weights = [models.weight("w", 4, hidden, seed=seed), numpy_helper.from_array(np.array([axis]), "axes")]
        nodes = [
            helper.make_node("MatMul", ["x", "w"], ["h"]),
            helper.make_node("ReduceSum", ["h", "axes"], ["y"]),
        ]
        io = [models.value("x", shape=[2, 4])], [models.value("y")]
        body = helper.make_graph(nodes, "net", *io, weights)
        made = helper.make_model(body, opset_imports=[helper.make_opsetid("", 18)])
        return graph.load(models.save(made, tmp_path, f"{seed}-{hidden}-{axis}.onnx"))

    assert graph.structure(net(1)) == graph.structure(net(2))
    assert graph.fingerprint(net(1)) != graph.fingerprint(net(2))
    assert graph.structure(net(1)) != graph.structure(net(1, hidden=9))
    # A whole number says how the graph works.
    assert graph.structure(net(1)) != graph.structure(net(1, axis=0))
