"""Defects that people have shipped, as contributions with real models: what the run says of each, and what becomes of a
forger who writes `pass` over it."""

import json
import shutil
from pathlib import Path

import numpy as np
import onnx
import pytest

import modelwright as mw
from modelwright.errors import InputError
from modelwright.support import _statement, judge_level
from support import models
from support.forge import forged, lines, rows_of

ONCE = {"seeds": 1}


@pytest.fixture(autouse=True)
def a_clean_commit(monkeypatch):
    monkeypatch.setattr(_statement, "_git", lambda *words: "f" * 40 if words[0] == "rev-parse" else "")
    _statement.this_tool.cache_clear()
    yield
    _statement.this_tool.cache_clear()


def called_sound(folder, level, **measured):
    """As if it had been measured so, with word and reasons that fit, and every id made again."""

    def change(documents):
        for one in rows_of(documents, level):
            predicate = one["predicate"]
            predicate["measured"] |= measured
            judged = judge_level(level, predicate["measured"])
            predicate["verdict"]["word"], predicate["reasons"] = judged.word, list(judged.reasons)
            assert judged.word == "pass", "the forger knows the rules"

    return forged(folder, change)


def contradicted(found, level):
    row = next(row for row in found.rows if row.level == level)
    assert (found.verdict, row.claimed, row.word) == ("reject", "pass", "contradicted"), found.reasons
    return row.reason


def test_fp16_by_name_and_fp32_by_weight(tmp_path):
    model, recipe = models.save(models.mlp(), tmp_path), tmp_path / "recipe.toml"
    recipe.write_text('precision = "fp16"\nquantize = false\n')
    run = mw.support.run(model, tmp_path / "acme_half", recipe=recipe, ceiling="L0", **ONCE)
    (row,) = run.rows
    assert (row.precision, row.word) == ("fp16", "fail")
    assert "fp16 is claimed, the weights are fp32" in row.reasons[0]
    folder = called_sound(tmp_path / "acme_half", "L0", precision=["fp16", "fp16"])
    assert "the weights are fp32" in contradicted(mw.support.review(folder, model=model, **ONCE), "L0")


def detector(path):
    """Answers with the boxes that it is given, as centre and size, and is sure of the first class."""
    value = models.value
    inputs = [value("pixels", shape=[1, 2, 4])]
    outputs = [value("logits", shape=[1, 2, 3]), value("pred_boxes", shape=[1, 2, 4])]
    sure = np.zeros((4, 3), "f4")
    sure[:, 0] = 9.0
    weights = [onnx.numpy_helper.from_array(sure, "w"), onnx.numpy_helper.from_array(np.eye(4, dtype="f4"), "one")]
    nodes = [
        onnx.helper.make_node("MatMul", ["pixels", "w"], ["logits"]),
        onnx.helper.make_node("MatMul", ["pixels", "one"], ["pred_boxes"]),
    ]
    graph = onnx.helper.make_graph(nodes, "net", inputs, outputs, weights)
    opset = [onnx.helper.make_opsetid("", 18)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


def box_rows(path, *, corners):
    rng = np.random.default_rng(0)
    centre, size = rng.uniform(0.4, 0.6, (200, 2, 2)), rng.uniform(0.1, 0.3, (200, 2, 2))
    told = [centre - size / 2, centre + size / 2 if corners else size]
    pixels = np.concatenate([centre, size], axis=-1).astype("f4")
    np.savez(path, pixels=pixels, boxes=np.concatenate(told, axis=-1), label=np.zeros((200, 2), np.int64))
    return path


def test_rows_with_boxes_of_another_form(tmp_path):
    """Sizes where corners are meant: whoever computes a number from them computes nonsense."""
    model = detector(tmp_path / "net.onnx")
    asked = {"task": "object-detection", "ceiling": "L3", "max_drop": "5pt"}
    good, bad = (box_rows(tmp_path / f"{corners}.npz", corners=corners) for corners in (True, False))
    sound = mw.support.run(model, tmp_path / "good", data=str(good), **asked, ladder_only=True)
    assert sound.rows[-1].word == "pass", sound.rows[-1].reasons
    run = mw.support.run(model, tmp_path / "acme_boxes", data=str(bad), **asked, **ONCE)
    assert run.rows[-1].word != "pass"
    assert "not x1 y1 x2 y2" in " ".join(run.rows[-1].reasons)
    said = {"verdict": "pass", "metric": "box_f1", "candidate": 1.0, "reference": 1.0, "samples": 200}
    folder = called_sound(tmp_path / "acme_boxes", "L3", hindrance=None, failure=None, reasons=[], **said)
    found = mw.support.review(folder, model=model, data=bad, **ONCE)
    assert "is said to be 1.0, and is None here" in contradicted(found, "L3")


def seen_again(folder, level, **measured):
    """What a reviewer finds who gets the same numbers as an honest run got, beside what the forger made of them."""
    honest = shutil.copytree(folder, folder.with_name("honest"), ignore=shutil.ignore_patterns("builds"))

    def climb(job, tell):
        shutil.copytree(honest, job.out)
        shutil.copytree(honest, Path(job.out, "same"))

    return mw.support.review(called_sound(folder, level, **measured), model=folder.with_name("model"), climb=climb)


_BERT = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "num_labels": 2}
_BERT |= {"intermediate_size": 37, "max_position_embeddings": 16, "initializer_range": 0.3}


def bert(folder, head):
    torch, transformers = (pytest.importorskip(name) for name in ("torch", "transformers"))
    torch.manual_seed(0)
    getattr(transformers, f"Bert{head}")(transformers.BertConfig(**_BERT)).save_pretrained(folder)
    return folder


@pytest.mark.filterwarnings("ignore")
def test_a_head_that_no_checkpoint_has(tmp_path):
    model = bert(tmp_path / "model", "Model")
    config = model / "config.json"
    said = {**json.loads(config.read_text()), "architectures": ["BertForSequenceClassification"]}
    config.write_text(json.dumps(said))
    run = mw.support.run(model, tmp_path / "acme_head", ceiling="L0", ladder_only=True)
    (row,) = run.rows
    assert row.word == "fail"
    assert "lacks weights" in row.reasons[0]
    assert "classifier" in row.reasons[0]
    assert "lacks weights" in contradicted(seen_again(tmp_path / "acme_head", "L0", failure=None), "L0")


SWAPPED = """
from modelwright.stages.export import ModelFamily

FAMILY = ModelFamily(answers=lambda found: {"start_logits": found.end_logits, "end_logits": found.start_logits})
"""


@pytest.mark.filterwarnings("ignore")
def test_two_outputs_of_one_shape_that_are_swapped(tmp_path):
    """Everything that looks at names, shapes and types is content: it is found by their values."""
    model, family = bert(tmp_path / "model", "ForQuestionAnswering"), tmp_path / "family.py"
    family.write_text(SWAPPED)
    run = mw.support.run(model, tmp_path / "acme_swapped", family=family, ladder_only=True)
    assert [row.word for row in run.rows] == ["pass", "pass", "fail"]
    assert "start_logits" in run.rows[-1].reasons[0]
    evidence = rows_of(lines(tmp_path / "acme_swapped"), "L2")[0]["predicate"]["measured"]
    for one in evidence["outputs"]:
        one["parity"] |= {"cosine": 1.0, "max_abs": 0.0, "reason": None, "measures": []}
    found = seen_again(tmp_path / "acme_swapped", "L2", **evidence)
    assert "start_logits" in contradicted(found, "L2")


def test_weights_that_lie_outside_of_the_model_are_not_claimed_about(tmp_path):
    inside = tmp_path / "model"
    inside.mkdir()
    net = models.mlp()
    onnx.external_data_helper.convert_model_to_external_data(net, location="weights.bin", size_threshold=0)
    onnx.save(net, inside / "model.onnx")
    (inside / "weights.bin").rename(tmp_path / "weights.bin")
    net = onnx.load(inside / "model.onnx", load_external_data=False)
    for tensor in net.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = "../weights.bin"
    (inside / "model.onnx").write_bytes(net.SerializeToString())
    with pytest.raises(InputError, match=r"weights\.bin"):
        mw.support.run(inside / "model.onnx", tmp_path / "out", ceiling="L0", **ONCE)
    assert not (tmp_path / "out/claim.toml").exists()
