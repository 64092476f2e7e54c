"""A fault of ours is exit 70, three lines and a log; never a bare traceback, never 1."""

import errno
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import click
import pytest

from modelwright import home
from modelwright.cli import _app, _commands


@pytest.fixture
def failing(monkeypatch):
    """`wright fail …` raises what the test gives."""

    def use(error):
        @click.command("fail", context_settings={"ignore_unknown_options": True})
        @click.argument("words", nargs=-1)
        def command(words):
            raise error

        monkeypatch.setitem(sys.modules, "failing", SimpleNamespace(command=command))
        monkeypatch.setattr(_app, "find", lambda name: _commands.Command("fail", "failing", "Fail.", "Look"))

    return use


def labels(text):
    return [line.split(":")[0].strip() for line in text.splitlines()]


@pytest.mark.parametrize(
    "error",
    [KeyError("x"), RecursionError("deep"), MemoryError(), SystemExit(0), SystemExit(1), OSError("odd"), EOFError()],
    ids=repr,
)
def test_an_internal_error_is_three_lines_a_log_and_70(failing, capsys, error):
    failing(error)
    assert _app.run(["fail", "a\x1bb"]) == 70
    err = capsys.readouterr().err
    assert labels(err) == ["error", "why", "next"]
    assert f"internal error: {type(error).__name__}" in err
    (log,) = home.logs_dir().glob("*-internal-*.log")
    assert str(log) in err
    text = log.read_text("utf-8")
    assert "Traceback" in text
    assert "modelwright 0." in text
    assert "'fail', 'a\\x1bb'" in text


def test_json_mode_gets_the_error_document_too(failing, capsys):
    failing(ValueError("[/x]\n\x1b[2J"))
    assert _app.run(["fail", "--json"]) == 70
    told = capsys.readouterr()
    assert json.loads(told.out)["exit_code"] == 70
    assert "\x1b" not in told.err + told.out
    assert len(told.err.splitlines()) == 3


def test_vv_shows_the_traceback(failing, capsys):
    failing(KeyError("x"))
    _app.run(["fail", "-vv"])
    assert "Traceback" in capsys.readouterr().err


def test_the_log_goes_elsewhere_when_home_takes_none(failing, capsys, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    failing(KeyError("x"))
    assert _app.run(["fail"]) == 70
    (log,) = (tmp_path / "elsewhere").glob("*.log")
    assert str(log) in capsys.readouterr().err


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS])
def test_a_disk_without_room_is_5_wherever_it_is_met(failing, capsys, number):
    failing(OSError(number, "no room", "there/out.json"))
    assert _app.run(["fail"]) == 5
    assert "there/out.json" in capsys.readouterr().err


def test_a_folder_that_is_gone_is_said(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    Path(folder).rmdir()
    assert _app.run(["sys"]) == 2
    assert "the current folder is gone" in capsys.readouterr().err
