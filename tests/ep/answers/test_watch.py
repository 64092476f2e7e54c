"""A suite on real sessions, as a user types it."""

import json
import re

import numpy as np
import pytest
from onnx import TensorProto, helper

import modelwright as mw
from modelwright.answers.watch import content_of
from support.models import mlp, save


@pytest.fixture
def suite(tmp_path):
    model = save(mlp(), tmp_path)
    head = "[watch]\nbudget_s = 4\nmax_slowdown = 0.5\nmax_growth = 0.5\n"
    (tmp_path / "suite.toml").write_text(
        f'{head}[[case]]\nmodel = "model.onnx"\nsha256 = "{content_of(model)}"\nthreads = 1\n'
    )
    return tmp_path / "suite.toml"


def test_a_suite_against_itself_is_never_red_and_too_little_time_is_never_green(wright, suite, tmp_path):
    words = ("--junit", "junit.xml", "--markdown", "pr.md", "--bugs", "bugs", "--history", "history.jsonl")
    answer = wright("watch", "run", "suite.toml", "--json", *words)
    (case,) = answer.json["cases"]
    rows = {row["aspect"]: row["passed"] for row in case["rows"]}
    assert (rows["runs"], rows["accuracy"], rows["placement"]) == (True, True, True)
    assert False not in rows.values()
    assert answer.code == (0 if all(rows.values()) else 6), answer.err
    assert [row["aspect"] for row in case["rows"] if row["fix"]] == [name for name in rows if rows[name] is None]
    assert list((tmp_path / "bugs").iterdir()) == []
    assert json.loads((tmp_path / "history.jsonl").read_text())["case"] == case["name"]
    assert wright("watch", "history", "history.jsonl").code == 0
    assert wright("show", answer.json["record_id"], "--markdown").code == 0


def test_a_model_that_was_changed_is_refused(wright, suite, tmp_path):
    save(mlp(hidden=4), tmp_path)
    answer = wright("watch", "run", "suite.toml")
    assert (answer.code, "another model" in answer.err) == (3, True)


def test_what_a_case_cannot_be_fed_with_is_told_before_anything_is_measured(wright, suite, tmp_path):
    blind = save(forged_integers(), tmp_path, "blind.onnx")
    with suite.open("a") as file:
        file.write(f'[[case]]\nmodel = "blind.onnx"\nsha256 = "{content_of(blind)}"\n')
    answer = wright("watch", "run", "suite.toml")
    assert answer.code == 3
    assert "blind: input x takes integers of an unknown range" in answer.err
    assert "timing" not in answer.err


def test_a_file_that_becomes_another_one_meanwhile_has_no_answer(suite, tmp_path):
    def swap(progress):
        if "memory" in progress.message:
            save(mlp(hidden=4), tmp_path)

    found = mw.watch(suite, budget_s=0.5, on_progress=swap)
    (row,) = found.cases[0].rows
    assert (found.passed, row.sentence) == (None, "its file was changed while it was watched")
    assert found.cases[0].speed is None


def test_an_undecided_suite_names_the_flag_that_decides_it(wright, suite):
    answer = wright("watch", "run", "suite.toml", "--budget", "0.2")
    assert answer.code == 6
    assert re.search(r"next: \w+ \(speed\): give [0-9,]+ s or more as --budget, or", answer.out)


def forged_integers():
    """Integers that index nothing here: no range can be guessed."""
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)]
    sides = [
        helper.make_tensor_value_info(name, kind, [1, 8])
        for name, kind in (("x", TensorProto.INT32), ("y", TensorProto.FLOAT))
    ]
    graph = helper.make_graph(nodes, "g", sides[:1], sides[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def test_answers_that_are_no_numbers_on_both_sides_are_not_called_the_same(suite, tmp_path):
    np.savez(tmp_path / "nan.npz", x=np.full((4, 4), np.nan, np.float32))
    with suite.open("a") as file:
        file.write('data = "nan.npz"\n')
    rows = {row.aspect: row for row in mw.watch(suite, budget_s=0.2).cases[0].rows}
    assert (rows["accuracy"].passed, "NaN" in rows["accuracy"].sentence) == (None, True)
