"""The worker's side of `on`: a verb of this modelwright for somebody else, on files that came along and no others."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import modelwright as mw
from modelwright import evidence, measure
from modelwright._json import plain
from modelwright._typed import MisfitError, typed
from modelwright.api._on import HERE, KINDS_OF_VERBS, RECEIVED, renamed
from modelwright.errors import WrightError
from modelwright.farm import cluster
from modelwright.farm.cluster import Loan, VerbAnswer
from modelwright.judge import Allowance
from modelwright.vocabulary import Data, Result

_FILES = ("model", "reference", "retry", "against")


def answer_verb(loan: Loan) -> tuple[VerbAnswer | None, WrightError | None]:
    """What the verb says; with an error, what was measured until then."""
    if loan.verb not in KINDS_OF_VERBS:
        raise cluster.forged(f"{loan.verb} is no verb that is lent")
    given = _given(loan)
    try:
        result = getattr(mw, loan.verb)(**given, store=loan.store, on_progress=loan.tell)
    except WrightError as error:
        partial = getattr(error, "partial", None)
        return (None if partial is None else _answer(loan, partial)), error
    return _answer(loan, result), None


def _answer(loan: Loan, result: Result) -> VerbAnswer:
    environment = getattr(result, "environment", None) or evidence.read_environment()
    folders = {str(path): f"{RECEIVED}/{slot}" for slot, path in loan.folders.items()}

    def foreign(text: str) -> str:
        for path, word in folders.items():
            if path in text:
                text = text.replace(path, word).replace("\\", "/")
        return text

    return VerbAnswer(renamed(plain(result.whole()), foreign), plain(environment))


def _given(loan: Loan) -> dict[str, Any]:
    known = inspect.signature(getattr(mw, loan.verb)).parameters
    for name in loan.given:
        if name not in known or name in HERE:
            raise cluster.forged(f"{loan.verb} takes no {name}")
    try:
        found = {name: _value(loan, name, form) for name, form in loan.given.items() if form is not None}
    except MisfitError as error:
        raise cluster.forged(f"{loan.verb}: {error}") from None
    return found | ({} if loan.data is None else {"data": loan.data.data})


def _value(loan: Loan, name: str, form: Any) -> Any:
    if name in _FILES:
        return _here(loan, form)
    if name == "arms":
        return [_arm(loan, arm) for arm in form]
    if name == "metric":
        return _function(loan, str(form)) if ":" in str(form) else form
    if name == "data":
        return _samples(loan, form)
    if name == "max_drop" and isinstance(form, dict):
        return typed(Allowance, form, strict=True)
    if name in ("output", "trace_chrome") or (name == "recipe" and "data" in form):
        raise cluster.forged(f"{name} would name a file of this machine")
    return form


def _samples(loan: Loan, form: Any) -> Data:
    """A function whose file came along; any other source would be one of this machine."""
    data = typed(Data, form, strict=True)
    if not data.function or data.labels is not None or data.processor is not None:
        raise cluster.forged("data would name a file of this machine")
    return replace(data, source=_function(loan, data.source))


def _function(loan: Loan, word: str) -> str:
    file, _, function = word.rpartition(":")
    return f"{_here(loan, file)}:{function}"


def _arm(loan: Loan, form: Mapping[str, Any]) -> measure.Arm:
    arm = typed(measure.Arm, form, strict=True)
    return typed(measure.Arm, {**form, "model": str(_here(loan, arm.model))})


def _here(loan: Loan, word: Any) -> Path:
    """Where a file that came along lies; a word that means any other file is refused."""
    head, _, rest = str(word).removeprefix(f"{RECEIVED}/").partition("/")
    place = loan.folders.get(head)
    if not str(word).startswith(f"{RECEIVED}/") or place is None or ".." in Path(rest).parts:
        raise cluster.forged(f"it names {word!r}, which did not come along")
    return place / rest
