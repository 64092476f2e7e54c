"""What a suite came to, run after run: a file of lines, and where the speed of a case changed its level."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from modelwright._json import dumps, loads
from modelwright.answers.watch._types import CaseHistory, HistoryPoint, WatchHistory, WatchResult
from modelwright.errors import InputError
from modelwright.judge import change_points

_KIND = "wright-watch-1"


def add_to_history(path: Path, result: WatchResult) -> None:
    """A line for each case, behind what is there. The old side is measured every time, so runs can be compared."""
    lines = "".join(json.dumps(loads(dumps(line))) + "\n" for line in _lines(result))
    _require_ours(path)
    try:
        cut = path.exists() and bool(path.stat().st_size) and not path.read_bytes().endswith(b"\n")
        with path.open("a", encoding="utf-8") as file:
            file.write(("\n" if cut else "") + lines)
    except OSError as error:
        raise _unwritable(path, str(error)) from error


def _require_ours(path: Path) -> None:
    """Nothing is added to a file of somebody else's."""
    if path.is_dir() or (path.exists() and path.stat().st_size and not read_history(path).cases):
        raise _unwritable(path, "what is there is no history of `watch`")


def _unwritable(path: Path, cause: str) -> InputError:
    return InputError(f"{path} cannot be written", cause=cause, fix="give another file as `history`")


def read_history(path: Path, alpha: float = 0.05) -> WatchHistory:
    """Series by case and old side. A line that was cut off is counted, and loses only itself."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read", cause=str(error), fix="give the file of `history`") from error
    series: dict[tuple[str, str, str], list[HistoryPoint]] = defaultdict(list)
    unread = 0
    for line in filter(None, lines):
        try:
            key, point = _point(loads(line.encode()))
        except (ValueError, KeyError, TypeError, AttributeError):
            unread += 1
            continue
        if point is not None:
            series[key].append(point)
    cases = tuple(_case(key, sorted(points, key=lambda one: one.made_at), alpha) for key, points in series.items())
    return WatchHistory(cases, unread)


def _lines(result: WatchResult) -> Iterator[dict[str, Any]]:
    for case in result.cases:
        yield {
            "kind": _KIND,
            "made_at": result.made_at,
            "suite": result.suite.name,
            "case": case.name,
            "old": case.old,
            "new": case.new,
            "passed": case.passed,
            "aspects": {row.aspect: row.passed for row in case.rows},
            "speed": case.speed,
            "memory": case.memory,
        }


def _point(line: Mapping[str, Any]) -> tuple[tuple[str, str, str], HistoryPoint | None]:
    if line["kind"] != _KIND:
        raise ValueError(line["kind"])
    key = (str(line["suite"]), str(line["case"]), str(line["old"]))
    effect = (line["speed"] or {}).get("effect")
    if effect is None:
        return key, None
    return key, HistoryPoint(str(line["made_at"]), str(line["new"]), float(effect), line["passed"])


def _case(key: tuple[str, str, str], points: list[HistoryPoint], alpha: float) -> CaseHistory:
    return CaseHistory(*key, tuple(points), change_points([point.effect for point in points], alpha))
