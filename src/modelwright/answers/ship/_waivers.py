"""Waivers: what need not hold, why, and until which day. Every one of them ends."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelwright.answers.ship._types import GATES, GateRow, Waiver
from modelwright.errors import InputError, did_you_mean
from modelwright.targets import parse_target

_KEYS = ("gate", "target", "reason", "until")


def read_waivers(path: Path) -> tuple[Waiver, ...]:
    """`[[waiver]]` tables of a TOML file."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _unreadable(path, f"{type(error).__name__}: {error}") from error
    rows = document.get("waiver", [])
    if set(document) - {"waiver"} or not isinstance(rows, list):
        raise _unreadable(path, "it holds something else than [[waiver]] tables")
    return tuple(_waiver(path, row) for row in rows)


def _waiver(path: Path, row: Any) -> Waiver:
    if not isinstance(row, dict) or set(row) - set(_KEYS):
        raise _unreadable(path, f"a waiver has {', '.join(_KEYS)} and nothing else")
    gate, reason, until = row.get("gate"), row.get("reason"), row.get("until")
    if gate not in GATES:
        hint = did_you_mean(str(gate), GATES)
        raise _unreadable(path, f"there is no gate '{gate}'; {hint or 'they are ' + ', '.join(GATES)}")
    if not isinstance(reason, str) or not reason.strip():
        raise _unreadable(path, f"the waiver of {gate} has no reason")
    if isinstance(until, str):
        until = _day(path, until)
    if not isinstance(until, datetime.date) or isinstance(until, datetime.datetime):
        raise _unreadable(path, f"the waiver of {gate} has no end: until = 2027-01-31")
    target = row.get("target")
    return Waiver(gate, None if target is None else str(parse_target(str(target))), reason.strip(), until.isoformat())


def waive(rows: Sequence[GateRow], waivers: Iterable[Waiver], today: datetime.date) -> tuple[GateRow, ...]:
    """Rows that do not hold get the waiver that is about them; one that is over lets nothing pass."""
    found = tuple(waivers)
    return tuple(row if row.passed is True else _waived(row, found, today) for row in rows)


def idle(rows: Sequence[GateRow], waivers: Iterable[Waiver]) -> tuple[Waiver, ...]:
    """Those that nothing needs."""
    used = {row.waiver for row in rows}
    return tuple(waiver for waiver in waivers if waiver not in used)


def _waived(row: GateRow, waivers: tuple[Waiver, ...], today: datetime.date) -> GateRow:
    about = [one for one in waivers if one.gate == row.gate and one.target in (None, row.target)]
    if not about:
        return row
    last = max(about, key=lambda one: one.until)
    return replace(row, waiver=last, expired=datetime.date.fromisoformat(last.until) < today)


def _day(path: Path, text: str) -> datetime.date:
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        raise _unreadable(path, f"{text} is no day: until = 2027-01-31") from None


def _unreadable(path: Path, cause: str) -> InputError:
    return InputError(
        f"{path} cannot be read as waivers",
        cause=cause,
        fix='[[waiver]] gate = "speed", target = "qnn-npu", reason = "why", until = 2027-01-31',
    )
