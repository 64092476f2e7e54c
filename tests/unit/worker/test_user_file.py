"""The user's own Python: what runs is what lies there, and nothing is left beside it."""

import os
import py_compile
import sys

import pytest

from modelwright.worker import load_file, user_code


def written(path, text):
    """Always in the same second, as an editor or a script may."""
    path.write_text(text)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def names(folder):
    return sorted(path.name for path in folder.rglob("*"))


def test_a_file_of_the_same_size_and_second_is_read_anew(tmp_path):
    file = written(tmp_path / "metric.py", "SCORE = 1\n")
    assert load_file(file, "user_file_metric").SCORE == 1
    assert load_file(written(file, "SCORE = 2\n"), "user_file_metric").SCORE == 2
    assert names(tmp_path) == ["metric.py"]


def test_what_others_compiled_is_not_taken_for_it(tmp_path):
    file = written(tmp_path / "metric.py", "SCORE = 1\n")
    compiled = tmp_path / "__pycache__" / f"metric.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(str(file), str(compiled), doraise=True)
    assert load_file(written(file, "SCORE = 2\n"), "user_file_metric").SCORE == 2


def test_a_file_that_cannot_be_run_leaves_no_half_of_a_module(tmp_path):
    file = written(tmp_path / "broken.py", "HALF = 1\nraise ValueError\n")
    with pytest.raises(ValueError):
        load_file(file, "user_file_broken")
    assert "user_file_broken" not in sys.modules


def test_what_the_users_code_imports_leaves_nothing_beside_it(tmp_path, monkeypatch):
    (tmp_path / "user_file_neighbour.py").write_text("SCORE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    with user_code("the metric", "Repair it."):
        file = written(tmp_path / "metric.py", "from user_file_neighbour import SCORE\n")
        assert load_file(file, "user_file_metric").SCORE == 1
    assert names(tmp_path) == ["metric.py", "user_file_neighbour.py"]
    assert not sys.dont_write_bytecode
