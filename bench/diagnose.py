"""Whether `diagnose` names a planted fault first, whether the cure it offers holds, and whether healthy models are left
in peace. Faults that no rule was written with are counted apart."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import modelwright as mw
from bench.held_out_faults import FIRST_LOOK, HELD_OUT, NO_FAULTS, healthy_trained
from bench.planted_faults import FAULTS, Fault, healthy

SHARE = 0.9


@dataclass(frozen=True)
class Asked:
    """One model. `first` is the cause that was named first, `cured` whether a cure of it held; `open` are questions
    that the machine did not decide, `failed` what kept diagnose from any answer."""

    name: str
    planted: str
    first: str | None
    others: tuple[str, ...]
    cured: bool
    cure_wanted: bool
    open: tuple[str, ...]
    seconds: float
    failed: str | None = None

    @property
    def right(self) -> bool:
        return self.failed is None and self.first == (self.planted or None)


def asked(fault: Fault) -> Asked:
    given = dict(fault.asked)
    environment = given.pop("env", {})
    os.environ.update(environment)
    began = time.monotonic()
    try:
        found = mw.diagnose(str(fault.model), given.pop("target", "cpu"), **given)
    except mw.WrightError as error:
        return _failed(fault.name, fault.rule, error, fault.cured)
    finally:
        for name in environment:
            del os.environ[name]
    causes = [cause.rule for cause in found.causes]
    cured = bool(found.causes) and found.causes[0].cured
    took = time.monotonic() - began
    first = causes[0] if causes else None
    return Asked(fault.name, fault.rule, first, tuple(causes[1:]), cured, fault.cured, found.undecided, round(took, 1))


def _failed(name: str, rule: str, error: mw.WrightError, cure_wanted: bool = True) -> Asked:
    """What diagnose, or the build of the fault itself, did not come through: counted as not named."""
    why = f"{error.problem}: {error.cause}"
    return Asked(name, rule, None, (), cured=False, cure_wanted=cure_wanted, open=(), seconds=0.0, failed=why)


def planted(makers: Iterable[Callable[[Path], Fault]] = FAULTS) -> list[Asked]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for make in makers:
            place = Path(folder, make.__name__)
            place.mkdir()
            try:
                rows.append(asked(make(place)))
            except mw.WrightError as error:
                rows.append(_failed(make.__name__, "", error))
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def left_in_peace(makers: Callable[[Path], Iterable[Fault]] = healthy) -> list[Asked]:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for fault in makers(Path(folder)):
            rows.append(asked(fault))
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def held_out() -> dict[str, Any]:
    """`first_look` is how many were named before any rule was mended for them, `named_first` how many are now."""
    faults, none, trained = planted(HELD_OUT), planted(NO_FAULTS), left_in_peace(healthy_trained)
    curable = [row for row in faults if row.cure_wanted]
    return {
        "faults": [asdict(row) for row in faults],
        "no_faults_here": [asdict(row) for row in none],
        "healthy": [asdict(row) for row in trained],
        "first_look": f"{len(faults) - len(FIRST_LOOK)} of {len(faults)}",
        "missed_at_first": FIRST_LOOK,
        "named_first": f"{sum(row.right for row in faults)} of {len(faults)}",
        "cures_that_hold": f"{sum(row.cured for row in curable)} of {len(curable)}",
        "claims_about_what_is_no_fault": sum(row.first is not None for row in (*none, *trained)),
    }


def summed(faults: list[Asked], peaceful: list[Asked]) -> dict[str, Any]:
    named = sum(row.right for row in faults)
    curable = [row for row in faults if row.cure_wanted]
    return {
        "faults": [asdict(row) for row in faults],
        "healthy": [asdict(row) for row in peaceful],
        "named_first": f"{named} of {len(faults)}",
        "cures_that_hold": f"{sum(row.cured for row in curable)} of {len(curable)}",
        "claims_about_healthy_models": sum(row.first is not None for row in peaceful),
        "met": named >= SHARE * len(faults)
        and all(row.cured for row in curable if row.right)
        and not any(row.first or row.failed for row in peaceful)
        and len(faults) >= 25
        and len(peaceful) >= 25,
    }


def run() -> dict[str, Any]:
    return {**summed(planted(), left_in_peace()), "held_out": held_out()}
