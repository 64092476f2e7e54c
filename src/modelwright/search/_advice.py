"""What is known before a search begins: one look at the knowledge base, remembered with the search."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from modelwright import _json
from modelwright._output import write_new
from modelwright._typed import typed
from modelwright.knowledge import Advice, GraphFacts, KnowledgeBase, advise
from modelwright.search._types import TuneRow
from modelwright.search._variant import Variant
from modelwright.store import Store
from modelwright.targets import Target

_PUT_OUT = "placement"


def advice_for(variants: Sequence[Variant], graph: GraphFacts, target: Target, store: Store) -> Advice:
    """A target beside the CPU is asked where each graph goes, so what is known about placement only sets the order."""
    labels = [variant.label for variant in variants]
    return advise(KnowledgeBase(store), graph, target, labels, asks=target.device != "cpu")


def remembered(file: Path, found: Advice, *, again: bool) -> Advice:
    """As it was when this search began: what it writes down itself must not change its own course."""
    if file.exists() and not again:
        return typed(Advice, _json.loads(file.read_bytes()))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    write_new(file, _json.dumps(found))
    return found


def ordered(variants: Sequence[Variant], advice: Advice) -> tuple[Variant, ...]:
    by_label = {variant.label: variant for variant in variants}
    return tuple(by_label[label] for label in advice.ordered(list(by_label)))


def cited(rows: Iterable[TuneRow], advice: Advice) -> tuple[TuneRow, ...]:
    """What placement put out, with the finding that says the same."""
    return tuple(_cited(row, advice) for row in rows)


def _cited(row: TuneRow, advice: Advice) -> TuneRow:
    found = advice.cited(row.label) if row.word == _PUT_OUT else None
    if found is None:
        return row
    return replace(row, reason=f"{row.reason}; as finding {found.finding} ({found.status}) says")
