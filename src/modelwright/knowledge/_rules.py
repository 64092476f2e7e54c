"""Rules: typed predicates over the graph and the target. They order a search, and leave out what is known to hurt."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright._json import digest
from modelwright._typed import MisfitError, typed
from modelwright.errors import InputError, did_you_mean
from modelwright.knowledge._base import KnowledgeBase
from modelwright.knowledge._standing import target_of
from modelwright.knowledge._types import Standing
from modelwright.knowledge._words import PASS_AXIS, Change, read_change
from modelwright.stages.optimize import passes as all_passes
from modelwright.targets import Target
from modelwright.vocabulary import Result

Does = Literal["drop", "last", "first"]
Did = Literal["dropped", "audited", "last", "first", "earlier", "later", "none", "absent"]
AUDIT = 20
"""One in so many of what would be left out runs all the same, to see how often leaving out is wrong."""
_ORDER = {"first": 0, "earlier": 1, "none": 2, "audited": 2, "later": 3, "last": 4, "dropped": 4, "absent": 4}


@dataclass(frozen=True)
class Rule:
    """`rules.toml` says what the fields mean. One without a row of its own comes from a finding: its very change, only
    in the classes where it was `seen`."""

    id: str
    finding: str
    does: Does
    axis: str
    value: str | None = None
    adds: str | None = None
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    seen: bool = False


@dataclass(frozen=True)
class GraphFacts:
    """What a rule may ask about: operators, the class, and which operators each pass would add, as trying it showed.
    `mark` is the graph by content; `cpu` are the features of the CPU here; `patterns` how often each is there."""

    operators: Mapping[str, int]
    family: str
    adds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    mark: str = ""
    cpu: tuple[str, ...] | None = None
    patterns: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Insight:
    """What was done about one change, and why: by a rule and the finding it stands on, or by how the graph looks (then
    there is no finding). `earlier` and `later` are places in the order; `absent` is what was seen to do nothing."""

    change: str
    did: Did
    rule: str | None
    finding: str | None
    status: str | None
    why: str


@dataclass(frozen=True)
class KbExplanation(Result):
    """What is known about one model on one target; `family` is the class of its architecture."""

    kind: ClassVar[str] = "kb explain"

    model: str
    target: str
    family: str
    insights: tuple[Insight, ...]


@dataclass(frozen=True)
class Advice:
    """`insights` in the order of the changes; a change that nothing is known about has none."""

    insights: tuple[Insight, ...] = ()

    def about(self, change: str) -> tuple[Insight, ...]:
        return tuple(one for one in self.insights if one.change == change)

    def dropped(self, change: str) -> Insight | None:
        return next((one for one in self.about(change) if one.did == "dropped"), None)

    def cited(self, change: str) -> Insight | None:
        """The finding that speaks about it, where one is in force."""
        return next((one for one in self.about(change) if one.finding is not None and one.did != "none"), None)

    def ordered(self, changes: Sequence[str]) -> list[str]:
        """First what is known to help, last what is known to hurt; else as they came."""
        return sorted(changes, key=lambda change: min((_ORDER[one.did] for one in self.about(change)), default=2))


def advise(
    base: KnowledgeBase, graph: GraphFacts, target: Target, changes: Sequence[str], *, asks: bool = False
) -> Advice:
    """What is known about each change. With `asks` the target's own partitioner will be asked about every graph, so a
    finding about placement only sets the order: the answer for this graph is better than a rule."""
    about = [rule for rule in rules(base) if _same_target(base, rule, target)]
    found = []
    for text in changes:
        change = read_change(text)
        for rule in about:
            if _speaks(rule, change, graph) and _in_scope(base, rule, graph):
                found.append(_insight(base.standing(rule.finding), rule, text, graph, asks=asks))
    return Advice(tuple(found))


def harmful(base: KnowledgeBase, graph: GraphFacts, target: Target, passes: Sequence[str]) -> dict[str, Insight]:
    """Passes that a confirmed finding says to hurt on this target. Whoever builds does not gamble: none is audited."""
    advice = advise(base, graph, target, [f"+{name}" for name in passes])
    return {one.change[1:]: one for one in advice.insights if one.did in ("dropped", "audited")}


def rules(base: KnowledgeBase) -> tuple[Rule, ...]:
    """Those with a row of their own, then those that findings are by themselves."""
    own = shipped_rules()
    written = {rule.finding for rule in own}
    return (*own, *(rule for name in base.findings if name not in written for rule in _plain(base, name)))


@functools.cache
def shipped_rules() -> tuple[Rule, ...]:
    text = Path(__file__).with_name("rules.toml").read_text(encoding="utf-8")
    return read_rules(text, "rules.toml")


def read_rules(text: str, where: str) -> tuple[Rule, ...]:
    """Strict: a key, an axis, a pass or an operator that nobody knows is an error."""
    try:
        found = tuple(typed(Rule, {"id": key, **row}, strict=True) for key, row in tomllib.loads(text).items())
    except MisfitError as error:
        near = did_you_mean(str(error.place[-1]), error.known) if error.known and error.place else None
        raise InputError(f"{where}: {error}", cause=error.why, fix=near or "see the head of rules.toml") from None
    for rule in found:
        _check(rule, where)
    return found


def _check(rule: Rule, where: str) -> None:
    if rule.value is not None:
        read_change(rule.value if rule.axis == PASS_AXIS else f"{rule.axis}={rule.value}")
    made = {operator for row in all_passes() for operator in row.produces}
    if rule.adds is not None and rule.adds not in made:
        raise InputError(
            f"{where}: {rule.id}: no pass adds '{rule.adds}'",
            cause="operators are those of `produces` in passes.toml",
            fix=did_you_mean(rule.adds, made) or "name the operator with its domain",
        )


def _plain(base: KnowledgeBase, name: str) -> Iterator[Rule]:
    """What a finding about one change is by itself."""
    finding = base.findings[name]
    if len(finding.changes) != 1 or finding.kind == "lesson" or finding.expects not in ("better", "worse"):
        return
    change = read_change(finding.changes[0])
    does: Does = "first" if finding.expects == "better" else "drop"
    yield Rule(name, name, does, change.axis, value=change.value, seen=True)


def _in_scope(base: KnowledgeBase, rule: Rule, graph: GraphFacts) -> bool:
    """Its records say where it was seen; one without any speaks about its change alone, and never prunes."""
    families = base.standing(rule.finding).scope.families if rule.seen else ()
    return not families or graph.family in families


def _same_target(base: KnowledgeBase, rule: Rule, target: Target) -> bool:
    wanted = target_of(base.findings[rule.finding]) if rule.finding in base.findings else None
    return wanted is not None and (wanted.ep, wanted.device) == (target.ep, target.device)


def _speaks(rule: Rule, change: Change, graph: GraphFacts) -> bool:
    if change.axis != rule.axis or (rule.value is not None and rule.value != change.value):
        return False
    if rule.adds is not None and rule.adds not in graph.adds.get(change.pass_name or "", ()):
        return False
    if rule.lacks and (graph.cpu is None or set(rule.lacks) & set(graph.cpu)):
        return False
    return set(rule.has) <= set(graph.operators)


def _insight(found: Standing, rule: Rule, change: str, graph: GraphFacts, *, asks: bool) -> Insight:
    did, why = _decided(found, rule, change, graph, asks=asks)
    said = f"{found.finding.says} ({found.status}, {found.rung})" if found.rung != "none" else found.finding.says
    return Insight(change, did, rule.id, found.finding.id, found.status, f"{said}; {why}" if why else said)


def _decided(found: Standing, rule: Rule, change: str, graph: GraphFacts, *, asks: bool) -> tuple[Did, str]:
    if not found.steers:
        return "none", f"{found.status}: {found.why}"
    if rule.does != "drop":
        return rule.does, ""
    if not found.prunes:
        return (
            "last",
            "contradicted, so it sets the order alone" if found.contradicting else "a draft sets the order alone",
        )
    if found.finding.measure == "placement" and asks:
        return "last", "the target is asked about this very graph"
    if found.finding.measure == "speed" and graph.cpu not in found.scope.cpus:
        return "last", "it was seen on other CPUs"
    if int(digest([graph.mark, change, rule.id])[:8], 16) % AUDIT == 0:
        return "audited", f"one in {AUDIT} of what is left out runs all the same"
    return "dropped", ""
