"""Streams, folders and limits that are not what a program hopes for, around the real `wright` script."""

import json
import os
import pty
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support import models

WRIGHT = str(Path(sys.executable).with_name("wright"))
ARROW = "→ ü 模"


@pytest.fixture
def model(tmp_path):
    """Its names need more than ASCII."""
    proto = models.mlp()
    proto.producer_name = ARROW
    return models.save(proto, tmp_path)


@pytest.fixture
def call(tmp_path):
    """The script in a child, with whatever is done to it; the answer must be decent whatever that is."""

    def run(*words, code, env=None, **kwargs):
        environment = {**os.environ, "MODELWRIGHT_HOME": str(tmp_path / "home"), **(env or {})}
        environment = {name: value for name, value in environment.items() if value is not None}
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kwargs}
        done = subprocess.run(
            [WRIGHT, *map(str, words)], env=environment, timeout=120, check=False, cwd=kwargs.pop("cwd", tmp_path),
            **{name: value for name, value in streams.items() if name != "cwd"},
        )  # fmt: skip
        err = (done.stderr or b"").decode(errors="replace")
        assert done.returncode == code, err
        assert "Traceback" not in err
        return (done.stdout or b""), err

    return run


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "utf-16", "latin-1"])
def test_any_encoding_of_the_console_works(call, model, encoding):
    out, _ = call("inspect", model, code=0, env={"PYTHONIOENCODING": encoding})
    assert "Fingerprint" in out.decode(encoding)


def test_the_plain_locale_works(call, model):
    call("inspect", model, code=0, env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})


def test_without_stdin(call, model):
    call("inspect", model, code=0, stdin=None, preexec_fn=lambda: os.close(0))


def test_without_stderr(call, model):
    call("inspect", model, code=0, stderr=None, preexec_fn=lambda: os.close(2))
    call("inspect", "absent.onnx", code=3, stderr=None, preexec_fn=lambda: os.close(2))


def test_without_stdout_the_answer_is_lost_and_that_is_said(call, model):
    _, err = call("inspect", model, code=5, stdout=None, preexec_fn=lambda: os.close(1))
    assert "error:" in err


def test_a_full_device_is_not_success(call, model):
    with Path("/dev/full").open("wb") as full:
        _, err = call("inspect", model, code=5, stdout=full)
    assert "error:" in err
    with Path("/dev/full").open("wb") as full:
        call("inspect", "absent.onnx", code=3, stderr=full)


def test_a_reader_that_goes_away_is_no_error(tmp_path, model):
    line = f"'{WRIGHT}' inspect {model} --json | head -c 1 > /dev/null; echo ${{PIPESTATUS[0]}}"
    env = {**os.environ, "MODELWRIGHT_HOME": str(tmp_path / "home")}
    done = subprocess.run(["bash", "-c", line], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() in ("0", "141")
    assert done.stderr == ""


@pytest.mark.parametrize(("columns", "kind"), [("1", "xterm"), ("0", "dumb"), ("100000", "vt100"), ("x", "")])
def test_odd_terminals(tmp_path, model, columns, kind):
    """A real terminal on stdout and stderr."""
    mine, theirs = pty.openpty()
    env = {**os.environ, "MODELWRIGHT_HOME": str(tmp_path / "home"), "COLUMNS": columns, "TERM": kind}
    done = subprocess.Popen([WRIGHT, "inspect", str(model)], env=env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    while True:
        try:
            part = os.read(mine, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(mine)
    assert done.wait(60) == 0
    assert b"Traceback" not in seen


def test_a_home_that_is_a_file(call, tmp_path, model):
    (tmp_path / "file").write_text("x")
    env = {"MODELWRIGHT_HOME": str(tmp_path / "file")}
    call("inspect", model, code=0, env=env)
    _, err = call("build", "-m", model, "-o", "out", code=5, env=env)
    assert "error:" in err
    assert not (tmp_path / "out").exists()


def test_a_home_on_a_read_only_file_system(call, tmp_path, model):
    """/proc takes no folders, from nobody."""
    env = {"MODELWRIGHT_HOME": "/proc/wright"}
    call("inspect", model, code=0, env=env)
    call("build", "-m", model, "-o", "out", code=5, env=env)
    assert not (tmp_path / "out").exists()


def test_no_home_at_all(call, model):
    call("inspect", model, code=0, env={"HOME": None, "MODELWRIGHT_HOME": None, "XDG_CACHE_HOME": None})


def test_a_working_folder_that_is_gone(tmp_path, model):
    gone = tmp_path / "gone"
    gone.mkdir()
    line = f"cd {gone} && rmdir {gone} && exec '{WRIGHT}' inspect {model}"
    env = {**os.environ, "MODELWRIGHT_HOME": str(tmp_path / "home")}
    done = subprocess.run(["bash", "-c", line], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "the current folder is gone" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("place", ["/", "/proc/x", "/dev/null"])
def test_a_place_where_nothing_can_be_written(call, model, place):
    _, err = call("build", "-m", model, "-o", place, "--passes", "none", code=5 if place == "/proc/x" else 2)
    assert "error:" in err


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_temporary_folder_that_is_none(call, tmp_path, model, folder):
    (tmp_path / "file").write_text("x")
    call("inspect", model, code=0, env={"TMPDIR": str(tmp_path / folder)})


def _limit(kind, amount):
    return lambda: resource.setrlimit(kind, (amount, amount))


def test_no_file_may_be_written(call, tmp_path, model):
    """What `ulimit -f 0` says; Python turns the signal into an error."""
    call("inspect", model, code=0, preexec_fn=_limit(resource.RLIMIT_FSIZE, 0))
    _, err = call("build", "-m", model, "-o", "out", code=5, preexec_fn=_limit(resource.RLIMIT_FSIZE, 0))
    assert "error:" in err
    assert not (tmp_path / "out").exists()


def test_few_open_files(call, model):
    call("inspect", model, code=0, preexec_fn=_limit(resource.RLIMIT_NOFILE, 16))


def test_little_memory(call, model):
    call("inspect", model, code=0, preexec_fn=_limit(resource.RLIMIT_AS, 1 << 30))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_during_a_build_leaves_nothing_half_written(tmp_path, model, number):
    env = {**os.environ, "MODELWRIGHT_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    words = [WRIGHT, "build", "-m", str(model), "-o", str(tmp_path / "out"), "--json"]
    done = subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while done.poll() is None and not (tmp_path / "home").exists():
        time.sleep(0.02)
    time.sleep(0.3)
    done.send_signal(number)
    _, err = done.communicate(timeout=60)
    assert done.returncode in (128 + number, 0)
    assert "Traceback" not in err
    if done.returncode:
        assert not (tmp_path / "out").exists()


def test_an_error_is_json_too_when_it_is_asked_for(call):
    out, _ = call("inspect", "absent.onnx", "--json", code=3)
    assert json.loads(out)["exit_code"] == 3
