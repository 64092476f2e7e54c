"""What the user keeps is never destroyed, and a full or read-only disk is called by its name."""

import json

import pytest

from support import models


@pytest.fixture(autouse=True)
def model(tmp_path):
    return models.save(models.mlp(), tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ("perf", "model.onnx", "--output"),
        ("perf", "model.onnx", "--trace-html"),
        ("perf", "model.onnx", "--trace-chrome"),
        ("compare", "model.onnx", "model.onnx", "--output"),
        ("config", "-m", "model.onnx", "--target", "cpu", "-o"),
        ("debug", "--float", "model.onnx", "--quant", "model.onnx", "--html"),
    ],
    ids=lambda words: f"{words[0]} {words[-1]}",
)
def test_a_file_that_wright_did_not_write_is_not_replaced(wright, tmp_path, words):
    (tmp_path / "thesis.txt").write_text("ten years of work")
    answer = wright(*words, "thesis.txt")
    assert answer.code == 2, answer.err
    assert "thesis.txt stays as it is" in answer.err
    assert (tmp_path / "thesis.txt").read_text() == "ten years of work"


@pytest.mark.parametrize("name", ["recipe.toml", "recipe.json"])
def test_a_recipe_is_written_again_until_it_is_edited(wright, tmp_path, name):
    write = ("config", "-m", "model.onnx", "--target", "cpu", "-o", name)
    assert wright(*write).code == 0
    assert wright(*write).code == 0
    assert wright("build", "-m", "model.onnx", "--target", "cpu", "-r", name, "--plan").code == 0
    (tmp_path / name).write_text((tmp_path / name).read_text().replace("fp32", "fp16"))
    assert wright(*write).code == 2


def test_a_device_is_written_to_as_it_is(wright, tmp_path):
    answer = wright("perf", "model.onnx", "--iterations", 5, "--warmup", 1, "--quiet", "--output", "/dev/stdout")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out.splitlines()[0])["command"] == "perf"
