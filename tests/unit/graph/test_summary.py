"""What `summary` says, on models whose answer is known."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
from onnx import helper

from modelwright import _json, graph
from modelwright.errors import InputError
from modelwright.graph import DtypeTotal, ModelFilePart, ModelSummary, OpCount, Opset, ValueSpec
from support import models


def summary_of(proto: onnx.ModelProto, folder: Path) -> ModelSummary:
    return graph.summary(graph.load(models.save(proto, folder)))


def test_a_small_model_in_full(tmp_path: Path) -> None:
    found = summary_of(models.mlp(), tmp_path)
    size = (tmp_path / "model.onnx").stat().st_size
    assert found.files == (ModelFilePart("model.onnx", "model", size),)
    assert (found.total_bytes, found.over_2gib) == (size, False)
    assert (found.ir_version, found.producer, found.producer_version) == (10, "tests", None)
    assert found.opsets == (Opset("", 21),)
    assert found.inputs == (ValueSpec("x", "float32", ("batch", 4)),)
    assert found.outputs == (ValueSpec("y", "float32", ("batch", 3)),)
    assert found.dynamic
    assert found.ops == (OpCount("", "MatMul", 2), OpCount("", "Add", 1), OpCount("", "Relu", 1))
    assert (found.node_count, found.top_level_nodes, found.subgraphs, found.control_flow) == (4, 4, 0, False)
    assert found.parameters == 4 * 8 + 8 + 8 * 3
    assert found.weights == (DtypeTotal("float32", 3, 64, 256),)
    assert (found.ep_context, found.functions, found.warnings, found.quantized) == ((), (), (), False)


def test_fixed_shapes_are_not_dynamic(tmp_path: Path) -> None:
    assert not summary_of(models.conv_net(), tmp_path).dynamic


def test_unknown_dimensions_and_ranks_are_null(tmp_path: Path) -> None:
    proto = models.mlp()
    proto.graph.input[0].CopyFrom(models.value("x", shape=[None, 4]))
    proto.graph.output[0].CopyFrom(models.value("y", shape=None))
    found = summary_of(proto, tmp_path)
    assert found.inputs[0].shape == (None, 4)
    assert found.outputs[0].shape is None
    assert found.dynamic


def test_sequences_and_optionals_are_spelled_out(tmp_path: Path) -> None:
    proto = models.mlp()
    tensor = helper.make_tensor_type_proto(models.FLOAT, [2])
    proto.graph.input.append(helper.make_value_info("s", helper.make_sequence_type_proto(tensor)))
    proto.graph.input.append(helper.make_value_info("o", helper.make_optional_type_proto(tensor)))
    dtypes = [value.dtype for value in summary_of(proto, tmp_path).inputs]
    assert dtypes == ["float32", "sequence(float32)", "optional(float32)"]


def test_weights_listed_as_inputs_are_no_inputs(tmp_path: Path) -> None:
    proto = models.mlp()
    proto.graph.input.extend(models.value(item.name, shape=list(item.dims)) for item in proto.graph.initializer)
    assert [value.name for value in summary_of(proto, tmp_path).inputs] == ["x"]


def test_nodes_in_subgraphs_are_counted(tmp_path: Path) -> None:
    found = summary_of(models.branching(), tmp_path)
    assert {(op.op_type, op.count) for op in found.ops} == {("MatMul", 1), ("If", 1), ("Relu", 1), ("Neg", 1)}
    assert (found.node_count, found.top_level_nodes) == (4, 2)
    assert (found.subgraphs, found.control_flow) == (2, True)


def test_local_functions_are_listed_and_their_nodes_counted_once(tmp_path: Path) -> None:
    found = summary_of(models.with_function(), tmp_path)
    assert [(item.domain, item.name, item.nodes) for item in found.functions] == [("local", "Scaled", 2)]
    assert found.ops[0] == OpCount("local", "Scaled", 2)
    assert found.node_count == 4
    assert found.warnings == ()


def test_a_function_that_is_not_in_the_file_is_told(tmp_path: Path) -> None:
    proto = models.with_function()
    del proto.functions[:]
    assert "local::Scaled" in summary_of(proto, tmp_path).warnings[0]


def test_a_used_domain_without_import_is_told(tmp_path: Path) -> None:
    proto = models.matmul_nbits()
    del proto.opset_import[1]
    assert "com.microsoft" in summary_of(proto, tmp_path).warnings[0]


def test_external_files_are_listed_with_their_size(tmp_path: Path) -> None:
    path = models.save_external(models.mlp(), tmp_path)
    found = graph.summary(graph.load(path))
    data = tmp_path / "model.onnx.data"
    assert found.files[1] == ModelFilePart(data.name, "weights", data.stat().st_size)
    assert found.total_bytes == path.stat().st_size + data.stat().st_size


def test_an_embedded_context_is_reported(tmp_path: Path) -> None:
    (node,) = summary_of(models.ep_context(), tmp_path).ep_context
    assert (node.name, node.source, node.partition, node.main_context) == ("part0", "QNN", "QNN_0", True)
    assert (node.embedded, node.cache_file, node.cache_present) == (True, None, None)


@pytest.mark.parametrize("present", [True, False])
def test_a_context_file_is_looked_for(present: bool, tmp_path: Path) -> None:
    if present:
        (tmp_path / "ctx.bin").write_bytes(bytes(10))
    found = summary_of(models.ep_context("ctx.bin"), tmp_path)
    assert (found.ep_context[0].cache_file, found.ep_context[0].cache_present) == ("ctx.bin", present)
    assert found.files[1] == ModelFilePart("ctx.bin", "compiled", 10 if present else None)
    assert bool(found.warnings) is not present


def test_a_context_file_outside_the_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="refused"):
        summary_of(models.ep_context("../ctx.bin"), tmp_path)


def test_the_summary_is_strict_json(tmp_path: Path) -> None:
    text = _json.dumps(summary_of(models.qdq(), tmp_path))
    assert json.loads(text)["precision"]["label"] == "w8a8"


def test_ten_times_the_nodes_are_about_ten_times_the_work(tmp_path: Path) -> None:
    def cost(nodes: int) -> float:
        path = models.save(models.chain(nodes), tmp_path)
        start = time.process_time()
        loaded = graph.load(path)
        assert graph.summary(loaded).node_count == nodes
        assert len(graph.fingerprint(loaded)) == 64
        return time.process_time() - start

    few, many = min(cost(2_000) for _ in range(3)), cost(20_000)
    print(f"2,000 nodes: {few:.2f} s of CPU, 20,000 nodes: {many:.2f} s")
    assert many < 40 * few


def test_importing_the_room_imports_nothing_heavy() -> None:
    heavy = "{'onnx', 'numpy', 'onnxruntime'}"
    code = f"import sys, modelwright.graph; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_reading_a_model_does_not_import_onnxruntime(tmp_path: Path) -> None:
    path = models.save(models.mlp(), tmp_path)
    code = (
        "import sys; from modelwright import graph; g = graph.load(sys.argv[1]);"
        "graph.summary(g); graph.fingerprint(g); print('onnxruntime' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
