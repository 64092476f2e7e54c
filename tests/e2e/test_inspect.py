"""`wright inspect` on good, bad and odd models."""

import hashlib

import onnx
import pytest
from onnx import TensorProto, helper

from support.models import conv_net, ep_context, mlp, model, qdq, save, save_external, scalar, value, weight


def test_a_model_is_described_for_people_and_for_programs(wright, tmp_path):
    save(conv_net(), tmp_path)
    people = wright("inspect", "model.onnx", env={"COLUMNS": "100"})
    assert people.code == 0
    assert "Precision    fp32" in people.out
    assert "Conv" in people.out
    found = wright("inspect", "model.onnx", "--json").json
    assert found["schema_version"] == 1
    assert found["precision"]["label"] == "fp32"
    assert found["fingerprint"] in people.out


def test_what_two_models_do_not_share_is_shown(wright, tmp_path):
    save(mlp(), tmp_path, "float.onnx")
    save(qdq(), tmp_path, "quantized.onnx")
    people = wright("inspect", "float.onnx", "quantized.onnx", env={"COLUMNS": "80"})
    assert people.code == 0, people.err
    assert "float.onnx" in people.out.splitlines()[0]
    assert "Precision    fp32 → w8a8" in people.out
    assert max(map(len, people.out.split("MACs")[0].splitlines())) <= 80
    found = wright("inspect", "float.onnx", "quantized.onnx", "--json").json
    assert found["same"] is False
    ops = {item["name"]: (item["first"], item["second"]) for item in found["difference"]["ops"]}
    assert ops["QuantizeLinear"] == (None, 2)
    assert found["second"]["macs"]["total"] == 64
    again = wright("inspect", "float.onnx", "float.onnx", "--json").json
    assert again["same"] is True
    assert {name for name, found in again["difference"].items() if found} == {"same_weights"}


def test_macs_of_a_dynamic_model_need_a_size(wright, tmp_path):
    save(mlp(), tmp_path)
    assert wright("inspect", "model.onnx", "--json").json["macs"]["total"] is None
    assert wright("inspect", "model.onnx", "--dim", "batch=4", "--json").json["macs"]["total"] == 4 * (32 + 24)


def test_the_layout_of_the_file_does_not_change_the_fingerprint(wright, tmp_path):
    inline = save(mlp(), tmp_path, "inline.onnx")
    external = save_external(mlp(), tmp_path, "external.onnx")
    marks = {wright("inspect", path, "--json").json["fingerprint"] for path in (inline, external)}
    assert len(marks) == 1


def test_a_quantized_and_a_compiled_model_are_recognised(wright, tmp_path):
    assert wright("inspect", save(qdq(), tmp_path, "q.onnx"), "--json").json["precision"]["label"] == "w8a8"
    compiled = wright("inspect", save(ep_context(), tmp_path, "c.onnx"), "--json").json
    assert compiled["precision"]["label"] is None
    assert "compiled blob" in compiled["precision"]["reason"]


def _text(folder):
    (folder / "model.onnx").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")


def _truncated(folder):
    path = save(conv_net(), folder)
    path.write_bytes(path.read_bytes()[:200])


def _external_missing(folder):
    save_external(mlp(), folder)
    (folder / "model.onnx.data").unlink()


def _external_outside(folder):
    path = save_external(mlp(), folder)
    model = onnx.load(path, load_external_data=False)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../secret.data"
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize("spoil", [_text, _truncated, _external_missing, _external_outside])
def test_a_bad_model_is_exit_3_with_a_next_step(wright, tmp_path, spoil):
    spoil(tmp_path)
    answer = wright("inspect", "model.onnx")
    assert answer.code == 3
    assert answer.out == ""
    assert [line.split(":")[0].strip() for line in answer.err.splitlines()] == ["error", "why", "next"]


def test_a_read_only_folder_works_and_stays_as_it_was(wright, tmp_path):
    folder = tmp_path / "read only"
    folder.mkdir()
    path = save(conv_net(), folder)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    folder.chmod(0o555)
    try:
        assert wright("inspect", path).code == 0
    finally:
        folder.chmod(0o755)
    assert [item.name for item in folder.iterdir()] == ["model.onnx"]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_nearly_all_is_not_all(wright, tmp_path):
    """A table that is only added is no matrix; a matrix that is left in float is said to be."""
    stored = [weight("w", 64, 64, dtype="int8"), scalar("s", 0.1), weight("table", 1, 64), weight("left", 64, 1)]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=TensorProto.INT8),
        helper.make_node("DequantizeLinear", ["q", "s"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "s"], ["m"]),
        helper.make_node("MatMul", ["d", "m"], ["h"]),
        helper.make_node("Add", ["h", "table"], ["y"]),
    ]
    save(model(nodes, [value("x", shape=[1, 64])], [value("y", shape=[1, 64])], stored[:3]), tmp_path)
    assert "w8a8  (all matrices quantized)" in wright("inspect", "model.onnx").out
    nodes.append(helper.make_node("MatMul", ["y", "left"], ["z"]))
    save(model(nodes, [value("x", shape=[1, 64])], [value("z", shape=[1, 1])], stored), tmp_path)
    assert "(98% of the matrices quantized)" in wright("inspect", "model.onnx").out
