"""The library speaks of parameters; only the command line knows options."""

import ast
import re
from pathlib import Path

import pytest

import modelwright

ROOT = Path(modelwright.__file__).parent
# The command line and what it prints; what venv, pip, az and git are started with; what a suggestion adds to a build;
# the command that a model which was found is built with.
ELSEWHERE = (
    *("cli/", "report/", "testing/", "worker/_create.py", "farm/feeds/_azure.py", "pipeline/_analyze.py"),
    *("support/_checkout.py", "support/_statement.py", "overview/_find.py"),
)
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
WHOLE_COMMAND = re.compile(r"`wright[^`]*(`|$)")


def said(tree):
    """Every text of a module that is no docstring."""
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node


@pytest.mark.parametrize("flag", ["--save it", "use --max-drop 1%"])
def test_an_option_is_seen_by_this_test(flag):
    assert FLAG.search(flag)


def test_no_message_of_the_library_names_an_option():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        if name.startswith(ELSEWHERE):
            continue
        for node in said(ast.parse(path.read_text(encoding="utf-8"))):
            if FLAG.search(WHOLE_COMMAND.sub("", node.value)):
                wrong.append(f"{name}:{node.lineno}: {node.value}")
    assert not wrong
