"""What is said to be kept is held by a test that is there."""

import ast
from functools import cache
from pathlib import Path

import pytest

from modelwright.knowledge import shipped_findings

ROOT = Path(__file__).parents[3]
NOBODY = "no test enforces it"


@cache
def names_in(file):
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def is_there(name):
    file, _, test = name.partition("::")
    return (ROOT / file).is_file() and test.startswith("test_") and test in names_in(file)


def kept():
    return [
        one
        for one in shipped_findings()
        if one.tests or one.origin.startswith(("winml-cli pull request 935", "published"))
    ]


def test_every_lesson_about_adding_models_is_there():
    found = [one for one in shipped_findings() if one.id.startswith("support-")]
    assert [one.id for one in found] == [f"support-{number:03}" for number in range(1, 40)]
    assert all(one.kind == "lesson" and one.reason for one in found)


def test_every_lesson_names_its_test_or_says_that_there_is_none():
    wrong = [one.id for one in kept() if bool(one.tests) == (NOBODY in one.reason)]
    assert wrong == []
    assert [one.id for one in kept() if one.status == "adopted" and not one.tests] == []


def test_every_test_that_a_lesson_names_is_there():
    """A test that is deleted or renamed takes what it held with it: then this fails."""
    assert [(one.id, name) for one in kept() for name in one.tests if not is_there(name)] == []


@pytest.mark.parametrize("name", ["tests/unit/nowhere.py::test_it", "tests/unit/knowledge/test_lessons.py::test_gone"])
def test_a_test_that_is_gone_is_noticed(name):
    assert not is_there(name)


def test_a_family_finding_names_a_model_type():
    found = [one for one in shipped_findings() if one.origin.startswith("published")]
    assert len(found) >= 13
    assert all(one.family for one in found)


def test_every_trap_of_adding_models_names_its_test():
    lines = (ROOT / "docs/traps.md").read_text(encoding="utf-8").splitlines()
    rows = {line[2:6]: line.split("|")[3] for line in lines if line.startswith("| T-")}
    assert list(rows) == [f"T-{number:02}" for number in range(1, 61)]
    named = {name: [part for part in held.split("`") if "::" in part] for name, held in rows.items()}
    assert [name for name, tests in named.items() if not tests] == []
    assert [one for tests in named.values() for one in tests if not is_there(one)] == []
