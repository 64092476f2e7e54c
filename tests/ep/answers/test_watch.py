"""A suite on real sessions, as a user types it."""

import json

import pytest

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
    assert list((tmp_path / "bugs").iterdir()) == []
    assert json.loads((tmp_path / "history.jsonl").read_text())["case"] == case["name"]
    assert wright("watch", "history", "history.jsonl").code == 0
    assert wright("show", answer.json["record_id"], "--markdown").code == 0


def test_a_model_that_was_changed_is_refused(wright, suite, tmp_path):
    save(mlp(hidden=4), tmp_path)
    answer = wright("watch", "run", "suite.toml")
    assert (answer.code, "another model" in answer.err) == (3, True)
