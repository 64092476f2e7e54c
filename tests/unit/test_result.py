"""Every answer can be kept, sent and looked at."""

import json
from dataclasses import dataclass
from typing import ClassVar

import pytest

from modelwright._output import is_sealed
from modelwright.errors import UsageError
from modelwright.vocabulary import Result


@dataclass(frozen=True)
class Weight(Result):
    kind: ClassVar[str] = "weigh"

    grams: int


def test_a_result_is_the_document_that_json_prints():
    assert Weight(3).to_dict() == {
        "schema_version": 1,
        "command": "weigh",
        "tool_version": Weight(3).to_dict()["tool_version"],
        "grams": 3,
    }


def test_a_saved_result_is_sealed_and_replaces_only_what_was_saved(tmp_path):
    saved = Weight(3).save(tmp_path / "r.json")
    assert json.loads(saved.read_text())["grams"] == 3
    assert is_sealed(saved.read_bytes())
    Weight(4).save(saved)
    saved.write_text("mine")
    with pytest.raises(UsageError, match="stays as it is"):
        Weight(5).save(saved)


def test_nothing_is_drawn_until_somebody_can_draw(monkeypatch):
    monkeypatch.setattr(Result, "html", None)
    assert Weight(3)._repr_html_() is None
    monkeypatch.setattr(Result, "html", staticmethod(lambda result: f"<b>{result.grams}</b>"))
    assert Weight(3)._repr_html_() == "<b>3</b>"
