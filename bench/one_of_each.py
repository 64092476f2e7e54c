"""What was there several times and is there once: how many there were, and the source lines of it before and now.

Before is the commit that the hallway was begun from. A line counts when there is code on it: no blank lines, no
comments, no docstrings. What is new stands beside it and is not taken off: the lines now are of all that it does now.
"""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGE = "src/modelwright/"
BEFORE = "ea64f04"
NEW_ROOMS = ("api", "evidence", "farm", "knowledge", "search", "support", "testing")
_SILENT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@dataclass(frozen=True)
class Thing:
    """`before` and `now` are ways to do it: modules, `module:names` of what is in them, or folders. Modules that work
    one after the other are one way. `does`: a unit of what they are for, and how many of it then and now."""

    name: str
    before: tuple[tuple[str, ...], ...]
    now: tuple[tuple[str, ...], ...]
    new: str
    does: tuple[str, int, int] | None = None


THINGS = (
    Thing(
        "model resolver",
        (
            ("sources/_resolve.py",),
            ("sources/_find.py",),
            ("measure/_subject.py",),
            ("cli/_subject.py",),
            ("quality/_eval.py:_side,_named",),
        ),
        (("models/_resolve.py", "api/_model.py"),),
        "a result of `build`, a Hugging Face source and a build folder are taken by every verb",
    ),
    Thing(
        "data reader",
        (
            (
                "sources/_calibration.py",
                "sources/_npz.py",
                "sources/_npz_rows.py",
                "sources/_drawn.py",
                "sources/_function.py",
            ),
            ("quality/_eval_data.py", "quality/_eval_feeds.py", "quality/_eval_prepare.py"),
            ("quality/_stream_data.py", "sources/_given.py"),
        ),
        (
            (
                "data/_arrays.py",
                "data/_bearable.py",
                "data/_drawn.py",
                "data/_feeds.py",
                "data/_function.py",
                "data/_given.py",
                "data/_hub.py",
                "data/_media.py",
                "data/_npz.py",
                "data/_open.py",
                "data/_prepare.py",
                "data/_rows.py",
                "data/_source.py",
                "data/_tables.py",
            ),
        ),
        "images, text, CSV, audio and `datasets` for build, perf, compare and debug; limits on what a file may hold",
        # Before: random, .npz, a folder of them and a function to build, quantize and debug; .npz and random to perf
        # and compare; folders of images, .npz, JSONL and `datasets` to eval. Now docs/data.md, for all six.
        ("form of data in a command that takes it", 21, 72),
    ),
    Thing(
        "progress type",
        (
            ("worker/_messages.py:Progress",),
            ("build/_stage.py:StageEvent",),
            ("measure/_compare_result.py:Progress", "cli/compare.py:_Progress"),
            ("measure/_perf.py:Note", "measure/_compare.py:Note", "measure/_lock.py:Note"),
        ),
        (("vocabulary/_progress.py",),),
        "nested stages, fractions and what is left",
    ),
    Thing(
        "stage runner",
        (("build/_stage.py",), ("quality/_fix_bench.py",)),
        (("plans/_model.py", "plans/_node.py", "plans/_result.py", "repairs/_nodes.py"),),
        "keys before anything ran, early cut-off, results with their types",
        # Build and the repair search; now analyze and tune too.
        ("verb that runs stages", 2, 4),
    ),
    Thing(
        "statistics engine",
        (
            ("judge",),
            ("quality/_paired.py",),
            ("quality/_fix_score.py:Powers,_graded,_grader,_top1", "quality/_eval_types.py:Allowance,parse_allowance"),
        ),
        (("judge",),),
        "sentinels for drift, contributions of single samples, one list of verdict words",
    ),
    Thing(
        "task table",
        (("sources/_task.py",), ("quality/tasks/_registry.py",)),
        (("vocabulary/_task.py", "models/_task.py", "evaluation/tasks/_registry.py"),),
        "tasks of other packages",
    ),
    Thing(
        "HTML writer",
        (
            ("report/debug_html.py", "report/debug_page.html"),
            ("report/trace_html.py", "report/trace_page.html"),
        ),
        (("report/html",),),
        "the graph, dark and narrow screens, sorting, the next command",
        # Trace and debug; now analyze, compare, eval, perf, repair, tune, sweep, matrix, its models, support, diagnose
        # and advise too, and five kinds of the site.
        ("page", 2, 19),
    ),
)


def run() -> dict[str, Any]:
    before, now = _tree_before(), _tree_now()
    if before is None:
        return {"met": None, "reason": f"this clone has no commit {BEFORE}"}
    things = {thing.name: _counted(thing, before, now) for thing in THINGS}
    twice = {"before": _used_twice(before), "now": _used_twice(now)}
    result: dict[str, Any] = {"commit_before": BEFORE, "things": things, "class_names_used_twice": twice}
    result["lines"] = {"before": _totals(before), "now": _totals(now)}
    shrunk = [name for name, found in things.items() if _fewer(found["lines"])]
    less_each = [name for name, found in things.items() if "for" in found and _fewer(found["lines_for_each"])]
    once = all(found["ways"]["now"] == 1 for found in things.values()) and not twice["now"]
    left = [name for name in things if name not in (*shrunk, *less_each)]
    words = {"fewer_lines": shrunk, "fewer_for_each": less_each, "not_fewer": left}
    return {**result, **words, "one_of_each": once, "met": once and not left}


def _fewer(lines: Mapping[str, int]) -> bool:
    return lines["now"] < lines["before"]


def _tree_now() -> dict[str, str]:
    return {
        path.relative_to(ROOT / PACKAGE).as_posix(): path.read_text(encoding="utf-8")
        for path in (ROOT / PACKAGE).rglob("*")
        if _ours(path.as_posix())
    }


def _tree_before() -> dict[str, str] | None:
    listed = _git("ls-tree", "-r", "--name-only", BEFORE, PACKAGE)
    if listed is None:
        return None
    return {
        name.removeprefix(PACKAGE): _git("show", f"{BEFORE}:{name}") or "" for name in filter(_ours, listed.split())
    }


def _ours(path: str) -> bool:
    return path.endswith((".py", ".html", ".js", ".css")) and "/vendor/" not in path


def _git(*words: str) -> str | None:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def _counted(thing: Thing, before: Mapping[str, str], now: Mapping[str, str]) -> dict[str, Any]:
    lines = {
        "before": sum(_lines(part, before) for way in thing.before for part in way),
        "now": sum(_lines(part, now) for way in thing.now for part in way),
    }
    found = {"ways": {"before": len(thing.before), "now": len(thing.now)}, "lines": lines, "new": thing.new}
    if thing.does is None:
        return found
    unit, then, today = thing.does
    each = {"before": round(lines["before"] / then), "now": round(lines["now"] / today)}
    return {**found, "for": {"unit": unit, "before": then, "now": today}, "lines_for_each": each}


def _lines(part: str, tree: Mapping[str, str]) -> int:
    name, _, words = part.partition(":")
    if not words:
        files = [name] if name in tree else [file for file in tree if file.startswith(f"{name}/")]
        if not files:
            raise ValueError(f"there is no {name}")
        return sum(len(_code(file, tree[file])) for file in files)
    wanted = set(words.split(","))
    spans = {word: lines for word, lines in _definitions(tree[name]) if word in wanted}
    if spans.keys() != wanted:
        raise ValueError(f"{name} has no {wanted - spans.keys()}")
    return len(_code(name, tree[name]) & set().union(*spans.values()))


def _definitions(text: str) -> Iterator[tuple[str, set[int]]]:
    for node in ast.parse(text).body:
        lines = set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name, lines
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, lines


def _code(name: str, text: str) -> set[int]:
    """The numbers of the lines with code on them; of a page, those that are not blank."""
    if not name.endswith(".py"):
        return {number for number, line in enumerate(text.splitlines(), 1) if line.strip()}
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _SILENT:
            found |= set(range(token.start[0], token.end[0] + 1))
    return found - _docstrings(text)


def _docstrings(text: str) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def _used_twice(tree: Mapping[str, str]) -> list[str]:
    names = Counter(
        name
        for file, text in tree.items()
        if file.endswith(".py")
        for name in re.findall(r"^class ([A-Za-z]\w*)", text, re.MULTILINE)
    )
    return sorted(name for name, count in names.items() if count > 1)


def _totals(tree: Mapping[str, str]) -> dict[str, Any]:
    """All of it, and how much of that is in rooms that there were none of before."""
    python = {file: len(_code(file, text)) for file, text in tree.items() if file.endswith(".py")}
    new = {room: sum(count for file, count in python.items() if file.startswith(f"{room}/")) for room in NEW_ROOMS}
    return {
        "files": len(python),
        "all": sum(text.count("\n") for file, text in tree.items() if file.endswith(".py")),
        "code": sum(python.values()),
        "code_in_new_rooms": {room: count for room, count in new.items() if count},
        "code_elsewhere": sum(python.values()) - sum(new.values()),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
