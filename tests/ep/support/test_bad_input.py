"""What nobody should give: said in one line, and never a claim or a row that is not so."""

import json

import pytest

import modelwright as mw
from modelwright.errors import InputError, StoreError, UsageError, WrightError
from support import models

_CONFIG = {
    "model_type": "bert",
    "architectures": ["BertForSequenceClassification"],
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 37,
    "max_position_embeddings": 16,
}


def _folder(tmp_path, **changes):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({**_CONFIG, **changes}))
    return folder


def _refused(tmp_path, model, kind=InputError, **asked):
    with pytest.raises(kind) as found:
        mw.support.run(model, tmp_path / "out", ceiling="L0", **asked)
    assert found.value.problem
    assert found.value.cause
    assert found.value.fix
    assert not (tmp_path / "out" / "claim.toml").exists()
    return found.value


def test_a_checkpoint_without_weights(tmp_path):
    assert "weights" in str(_refused(tmp_path, _folder(tmp_path)))


def test_a_folder_of_several_graphs_and_no_model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("encoder.onnx", "decoder.onnx"):
        models.save(models.mlp(), folder, name)
    assert "several models" in str(_refused(tmp_path, folder))


def test_an_id_that_cannot_be_reached(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    _refused(tmp_path, "nobody/has-this", (InputError, StoreError, WrightError))


def test_code_that_comes_with_a_model_is_not_run_unasked(tmp_path):
    folder = _folder(tmp_path, auto_map={"AutoModel": "own.Model", "AutoConfig": "own.Config"}, model_type="own")
    (folder / "own.py").write_text("raise SystemExit('it ran')")
    (folder / "model.safetensors").write_bytes(b"\x02\x00\x00\x00\x00\x00\x00\x00{}")
    assert "trust" in " ".join(vars(_refused(tmp_path, folder)).values())


def test_a_family_that_is_not_there(tmp_path):
    path = models.save(models.mlp(), tmp_path)
    assert "gone.py" in str(_refused(tmp_path, path, family=tmp_path / "gone.py"))
    assert "no family" in str(_refused(tmp_path, path, family="nosuchtype"))


def test_a_target_or_a_level_that_does_not_exist(tmp_path):
    path = models.save(models.mlp(), tmp_path)
    _refused(tmp_path, path, UsageError, targets=["abacus"])


def test_a_claim_that_says_too_little_for_what_it_touches(tmp_path):
    path = models.save(models.mlp(), tmp_path)
    (tmp_path / "recipe.toml").write_text("[validation]\nsamples = 3\n")
    _refused(tmp_path, path, UsageError, recipe=tmp_path / "recipe.toml", effort="none")


def test_a_tree_that_is_no_commit_is_told(tmp_path, monkeypatch):
    from modelwright.support import _marching

    path = models.save(models.mlp(), tmp_path)
    tool = _marching.this_tool()
    monkeypatch.setattr(_marching, "this_tool", lambda: type(tool)(tool.version, tool.digest, "0" * 40, True))
    found = mw.support.run(path, tmp_path / "out", ceiling="L0", ladder_only=True)
    assert any("working tree" in note for note in found.notes)
