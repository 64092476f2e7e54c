"""What the user keeps is never destroyed, and a full or read-only disk is called by its name."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support import models


@pytest.fixture(autouse=True)
def model(tmp_path):
    return models.save(models.mlp(), tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ("perf", "model.onnx", "--save"),
        ("perf", "model.onnx", "--trace-html"),
        ("perf", "model.onnx", "--trace-chrome"),
        ("compare", "model.onnx", "model.onnx", "--save"),
        ("config", "-m", "model.onnx", "--target", "cpu", "--save"),
        ("analyze", "model.onnx", "--html"),
        ("debug", "model.onnx", "--reference", "model.onnx", "--html"),
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
    write = ("config", "-m", "model.onnx", "--target", "cpu", "--save", name)
    assert wright(*write).code == 0
    assert wright(*write).code == 0
    assert wright("build", "-m", "model.onnx", "--target", "cpu", "-r", name, "--plan").code == 0
    (tmp_path / name).write_text((tmp_path / name).read_text().replace("fp32", "fp16"))
    assert wright(*write).code == 2


def test_a_device_is_written_to_as_it_is(wright, tmp_path):
    answer = wright("perf", "model.onnx", "--iterations", 5, "--warmup", 1, "--quiet", "--save", "/dev/stdout")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out.splitlines()[0])["command"] == "perf"


OPTIMIZE = ("optimize", "model.onnx", "--opset", "20")


@pytest.mark.parametrize("place", [".", "/", "..", "repository"])
def test_dash_o_destroys_nothing(wright, tmp_path, place):
    """Every place is refused before anything is built."""
    here = tmp_path / "here"
    here.mkdir()
    models.save(models.mlp(), here)
    for name in ("repository/.git/HEAD", "repository/model.onnx"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / name).write_bytes(b"dear")
    before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
    answer = wright(*OPTIMIZE, "-o", place, "--overwrite", cwd=here)
    assert answer.code == 2, answer.err
    assert "Will not replace" in answer.err or "is the model's own folder" in answer.err
    assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before
    assert not list((tmp_path / "home" / "store" / "blobs").glob("*/*"))


def test_a_second_build_keeps_an_edited_file(wright, tmp_path):
    assert wright(*OPTIMIZE, "-o", "out").code == 0
    (tmp_path / "out" / "model.onnx").write_bytes(b"edited by hand")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    answer = wright(*OPTIMIZE, "-o", "out", "--overwrite")
    assert answer.code == 2
    assert "model.onnx in it was changed since modelwright wrote it" in answer.err
    (tmp_path / "out" / "model.onnx").unlink()
    assert wright(*OPTIMIZE, "-o", "out", "--overwrite").code == 0
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"
    assert (tmp_path / "out" / "model.onnx").stat().st_size > 100


@pytest.fixture
def read_only_home(tmp_path):
    """A home on a disk that cannot be written; needs the right to mount."""
    home = tmp_path / "read-only"
    home.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", str(home)]
    if os.name == "nt" or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this user cannot mount a read-only disk")
    yield home
    subprocess.run(["umount", "-l", str(home)], check=True)


def test_a_home_that_cannot_be_written_keeps_nobody_from_measuring(wright, read_only_home):
    def answer(*words):
        return wright(*words, env={"MODELWRIGHT_HOME": str(read_only_home / "home")})

    for words in (
        ("cache", "ls"),
        ("perf", "model.onnx", "--iterations", 5, "--warmup", 1),
        ("build", "-m", "model.onnx", "--target", "cpu", "--plan"),
    ):
        assert answer(*words).code == 0, (words, answer(*words).err)
    refused = answer("optimize", "model.onnx")
    assert refused.code == 5
    assert "cannot be written" in refused.err


@pytest.mark.skipif(os.name == "nt", reason="no limit on the size of files")
def test_a_limit_on_the_size_of_files_is_called_that(tmp_path):
    script = shlex.quote(str(Path(sys.executable).with_name("wright")))
    words = f"ulimit -f 8; exec {script} optimize model.onnx"
    done = subprocess.run(["bash", "-c", words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 5, done.stderr
    assert "ulimit -f" in done.stderr


def test_a_changed_build_is_refused_by_every_command_and_verify_lists_it(wright, tmp_path):
    cal = tmp_path / "far" / "cal.npz"
    cal.parent.mkdir()
    np.savez(cal, x=np.random.default_rng(0).random((8, 4), np.float32))
    made = wright("quantize", "model.onnx", "-p", "w8a16", "--data", cal, "-o", "build", cwd=tmp_path)
    assert made.code == 0, made.err
    assert wright("verify", "build").code == 0
    assert str(tmp_path) not in (tmp_path / "build" / "wright.json").read_text()
    right = json.loads((tmp_path / "build" / "wright.json").read_text())["components"][0]["files"][0]
    perf = wright("perf", "build", "--iterations", 5, "--warmup", 1, "--json").json
    assert perf["files"] == [right]

    (tmp_path / "build" / "model.onnx").write_bytes((tmp_path / "model.onnx").read_bytes())
    answer = wright("verify", "build", "--json")
    assert (answer.code, answer.json["whole"], answer.json["changed"]) == (1, False, ["model.onnx"])
    for words in (
        ("perf", "build"),
        ("compare", "model.onnx", "build"),
        ("analyze", "build", "--target", "cpu"),
        ("eval", "build", "--reference", "model.onnx", "--data", "random", "--samples", 2, "--outputs"),
        ("debug", "build", "--reference", "model.onnx"),
    ):
        answer = wright(*words)
        assert answer.code == 3, (words, answer.err)
        assert "is not what was built" in answer.err
    assert wright("verify", tmp_path).code == 3
