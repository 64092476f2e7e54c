"""Pipes, full disks, closed descriptors and old encodings: the answer arrives, or the exit code says it did not."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

SCRIPT = str(Path(sys.executable).with_name("wright"))
NAME = "[/x] \x1b[31m\x1b]0;title\x07 → 层 :smile:\nerror: forged \u202e\x9b2J"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture
def hostile_model(tmp_path):
    """Every name in it is markup, a control sequence, or both."""
    value = helper.make_tensor_value_info
    node = helper.make_node("Relu", [NAME], ["[bold]y"], name=NAME)
    inputs = [value(NAME, TensorProto.FLOAT, [1, "[d]\x1b"])]
    graph = helper.make_graph([node], NAME, inputs, [value("[bold]y", TensorProto.FLOAT, [1, 4])])
    model = helper.make_model(graph, producer_name=NAME, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "[red]m\x1b[7m.onnx")
    return tmp_path / "[red]m\x1b[7m.onnx"


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "idna"])
def test_names_out_of_a_model_are_shown_as_text_in_any_encoding(wright, hostile_model, encoding):
    done = subprocess.run(
        [SCRIPT, "inspect", str(hostile_model)],
        env={**os.environ, "PYTHONIOENCODING": encoding, "COLUMNS": "300"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    out = done.stdout.decode("ascii" if encoding == "idna" else encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert not OBEYED.search(out)
    assert "[/x] \\x1b[31m" in out
    assert "[bold]y" in out
    assert ("→" if encoding == "utf-8" else "->") in out


def test_json_stays_json_in_any_encoding(wright, hostile_model):
    done = wright("inspect", hostile_model, "--json", env={"PYTHONIOENCODING": "cp437"})
    assert done.json["inputs"][0]["name"] == NAME
    assert not OBEYED.search(done.out)
    assert done.out.isascii()


def test_a_recipe_on_stdout_is_utf8_in_any_encoding(wright, tmp_path):
    value = helper.make_tensor_value_info
    ends = [[value(name, TensorProto.FLOAT, ["größe → 层", 4])] for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", *ends)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    done = subprocess.run(
        [SCRIPT, "config", "-m", str(tmp_path / "m.onnx"), "--target", "qnn-npu"],
        env={**os.environ, "PYTHONIOENCODING": "cp1252"},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert tomllib.loads(done.stdout.decode("utf-8"))["optimize"]["fix_dims"] == [["größe → 层", 1]]


def test_an_error_shows_what_was_typed_as_text(wright):
    answer = wright("inspect", "no\x1b[31m[/x]\nerror: forged")
    assert answer.code == 3
    assert len(answer.err.splitlines()) == 3
    assert not OBEYED.search(answer.err)


def test_a_name_that_is_no_text_is_refused_by_every_command(wright):
    answer = wright("build", "-m", b"m\xff.onnx".decode("utf-8", "surrogateescape"), "--json")
    assert answer.code == answer.json["exit_code"] == 2
    assert "m\\udcff.onnx is not valid text" in answer.err
    assert "the home folder" in wright("sys", env={"MODELWRIGHT_HOME": "/tmp/\udcff"}).err


@pytest.mark.parametrize("words", ["--help", "optimize --list", "optimize --list --json"])
def test_a_reader_that_left_is_141_and_quiet(words):
    script = f"'{SCRIPT}' {words} | true; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.stderr) == ("141\n", "")


@pytest.mark.parametrize("where", [">/dev/full", ">&-"])
@pytest.mark.parametrize("words", ["--help", "optimize --list"])
def test_an_answer_that_cannot_be_written_is_5_with_three_lines(words, where):
    done = subprocess.run(
        ["bash", "-c", f"'{SCRIPT}' {words} {where}"], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 5
    assert [line.split(":")[0].strip() for line in done.stderr.splitlines()] == ["error", "why", "next"]


@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-", "0<&- 2>&-"])
def test_remarks_that_nobody_can_hear_change_nothing(where):
    script = f"'{SCRIPT}' completion bash {where}; echo $?; '{SCRIPT}' inspect absent.onnx --json {where}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, check=False)
    script, _, document = done.stdout.partition("0\n{")
    assert "_WRIGHT_COMPLETE" in script
    assert json.loads("{" + document)["exit_code"] == done.returncode == 3
