"""`find` shows a number only where the newest word of the evidence about this very build is "pass"."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from modelwright import recipes
from modelwright.overview import _find
from modelwright.support import read_evidence

FOLDER = recipes.own_folder() / "modelwright_fashion-cnn"
ENTRY = SimpleNamespace(folder=FOLDER, name=FOLDER.name)
ROW = SimpleNamespace(target="cpu", precision=None)


def accuracy(monkeypatch, edit):
    """What is shown when the last statement about L3 is followed by the same one, edited."""
    evidence = read_evidence(FOLDER)
    mine = [one for one in evidence.statements if one.asked.level == "L3" and one.asked.target == "cpu"]
    last = replace(mine[-1], id="forged", predicate=edit(mine[-1].predicate))
    forged = replace(evidence, statements=(*evidence.statements, last))
    monkeypatch.setattr(_find, "read_evidence", lambda folder: forged)
    return _find._measured(ENTRY, ROW).get("accuracy")


def measuring(predicate, **numbers):
    return replace(predicate, measured={**predicate.measured, **numbers})


def test_a_later_failure_takes_the_number_away(monkeypatch):
    before = accuracy(monkeypatch, lambda predicate: predicate)
    assert before.value > 0.9
    worse = accuracy(monkeypatch, lambda predicate: measuring(predicate, verdict="fail", candidate=0.1))
    assert worse is None


@pytest.mark.parametrize("change", [{"arm": "without"}, {"precision": "w4a16"}, {"target": "qnn-npu"}])
def test_what_is_about_something_else_is_not_shown(monkeypatch, change):
    def other(predicate):
        return replace(measuring(predicate, candidate=0.123), asked=replace(predicate.asked, **change))

    assert accuracy(monkeypatch, other).value > 0.9
