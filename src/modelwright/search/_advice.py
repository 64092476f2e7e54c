"""What is known before a search begins: one look at the knowledge base, remembered with the search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from modelwright import _json
from modelwright._output import write_new
from modelwright._typed import typed
from modelwright.knowledge import PATTERNS, Advice, Did, GraphFacts, Insight, KnowledgeBase, advise, patterns_for
from modelwright.search._types import TuneRow
from modelwright.search._variant import Variant
from modelwright.store import Store
from modelwright.targets import Target

_PUT_OUT = "placement"


def advice_for(variants: Sequence[Variant], graph: GraphFacts, target: Target, store: Store) -> Advice:
    """What is known about each, else how the graph looks; and passes for which it looks right that change nothing.

    A target beside the CPU is asked where each graph goes, so what is known about placement only sets the order.
    """
    labels = [variant.label for variant in variants]
    known = advise(KnowledgeBase(store), graph, target, labels, asks=target.device != "cpu")
    found = [one for label in labels for one in (*known.about(label), *_looks(label, known, graph))]
    return Advice((*found, *_idle(labels, graph)))


def _looks(label: str, known: Advice, graph: GraphFacts) -> tuple[Insight, ...]:
    """What a finding speaks about needs no guess."""
    if known.cited(label) is not None:
        return ()
    if not label.startswith("+"):
        return () if known.about(label) else (_insight(label, "none", "nothing is known: in the order of the axes"),)
    patterns = patterns_for(label[1:])
    seen = [f"{graph.patterns[one.name]} times {one.says}" for one in patterns if one.name in graph.patterns]
    if seen:
        return (_insight(label, "earlier", f"the graph has {seen[0]}", patterns[0].name),)
    if patterns:
        return (_insight(label, "later", f"it changes the graph, which has no {patterns[0].says}", patterns[0].name),)
    return (_insight(label, "none", "it changes the graph; no pattern tells how much"),)


def _idle(labels: Sequence[str], graph: GraphFacts) -> Iterator[Insight]:
    """A pattern is no pass that fires: those that were tried and left the graph as it was are no candidates."""
    for pattern in PATTERNS:
        count = graph.patterns.get(pattern.name, 0)
        for name in pattern.passes if count else ():
            if name not in graph.adds and f"+{name}" not in labels:
                why = f"the graph has {count} times {pattern.says}, and the pass left it as it was"
                yield _insight(f"+{name}", "absent", why, pattern.name)


def _insight(label: str, did: Did, why: str, rule: str | None = None) -> Insight:
    return Insight(label, did, rule, None, None, why)


def remembered(file: Path, found: Advice, *, again: bool) -> Advice:
    """As it was when this search began: what it writes down itself must not change its own course."""
    if file.exists() and not again:
        return typed(Advice, _json.loads(file.read_bytes()))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    write_new(file, _json.dumps(found))
    return found


def spared(advice: Advice) -> Advice:
    """What somebody names is tried, whatever is known about it."""
    named = "; it was asked for by name, and is tried"
    return Advice(
        tuple(
            replace(one, did="last", why=f"{one.why}{named}") if one.did == "dropped" else one
            for one in advice.insights
        )
    )


def ordered(variants: Sequence[Variant], advice: Advice) -> tuple[Variant, ...]:
    """Nothing is left out here, whatever the graph looks like."""
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
