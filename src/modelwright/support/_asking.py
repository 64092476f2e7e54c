"""The gate asks: every arm, with every seed, in a store that nobody has used, for every case of the claim."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from modelwright._scratch import scratch
from modelwright._typed import typed
from modelwright.errors import WrightError
from modelwright.models import OnnxSource
from modelwright.pipeline import Recipe, make_recipe
from modelwright.store import Store
from modelwright.support._case import CaseAsked, EmptyStore, changed_fields, gate_run, source_of
from modelwright.support._claim import Claim, ClaimedCase
from modelwright.support._gate import BASE, BASE_TASK, GATE, WITH, GateJudgement, GateRun, judge_gate, together
from modelwright.support._levels import FASTER
from modelwright.support._march import March
from modelwright.support._notebook import StepFound
from modelwright.support._statement import Statement, StatementAsked, StatementSeeds, subject_of
from modelwright.support._types import GateResult, LadderRow
from modelwright.vocabulary import OnProgress, Progress


def run_gate(march: March) -> GateResult:
    claim = march.claim
    statements: list[Statement] = []
    for arm in _arms(march):
        for number, seed in enumerate(claim.seeds("inputs", claim.gate_seeds)):
            march.tell(Progress(f"gate: {arm}, seed {number + 1} of {claim.gate_seeds}"))
            with _empty() as empty:
                asked = (CaseAsked(claim, case, march.given, arm, seed) for case in claim.cases)
                statements += [_gate_step(march, one, empty) for one in asked]
    return gate_on_record(claim, statements, str(march.notebook.folder))


@contextlib.contextmanager
def _empty() -> Iterator[EmptyStore]:
    """One seed of one arm: what its cases share is made once, and by nobody else."""
    with scratch("gate") as place, Store(Path(place, "store")) as store:
        yield EmptyStore(store)


def gate_on_record(claim: Claim, statements: Sequence[Statement], folder: str | None) -> GateResult:
    """The word for what the builds gave; of several cases each has one, and they have one together."""
    cases = {str(case): [one for one in statements if _case(one) == case] for case in claim.cases}
    judged = {name: _judged(claim, mine) for name, mine in cases.items() if mine}
    found = next(iter(judged.values())) if len(judged) == 1 else together(judged)
    differing = tuple(name for name, one in judged.items() if one.word == "delta")
    ids = tuple(one.id for one in statements)
    return GateResult(
        found.word, GATE, found.reasons, found.arms, found.differs, found.inert, ids, claim.digest, folder, differing
    )


def _case(statement: Statement) -> ClaimedCase:
    return ClaimedCase(statement.asked.target, statement.asked.precision)


def _judged(claim: Claim, statements: Sequence[Statement]) -> GateJudgement:
    runs = [typed(GateRun, one.predicate.measured) for one in statements]
    return judge_gate(runs, changed_on_record(statements), contributed=claim.contributed)


def _arms(march: March) -> tuple[str, ...]:
    """Without a task that is said, and with it, where that is another question."""
    claimed = march.claim.source
    try:
        bare = source_of(claimed, task=False)
        # The task of a graph says how rows are scored, and nothing about how it is built.
        same = isinstance(bare, OnnxSource) or bare == source_of(claimed)
    except WrightError:
        same = False
    base = (BASE,) if same else (BASE, BASE_TASK)
    return (*base, WITH) if march.contributed else base


def _gate_step(march: March, asked: CaseAsked, empty: EmptyStore) -> Statement:
    case = asked.case
    question = StatementAsked("gate", case.target, case.precision, arm=asked.arm, seed=asked.seed)

    def work(tell: OnProgress) -> StepFound:
        found, recipe, code = gate_run(asked, empty, tell)
        seeds = StatementSeeds(asked.claim.seed("weights"), (asked.seed or 0,))
        files = tuple(subject_of("graph", name, digest) for name, digest in found.contents.items())
        return StepFound(found, code, files, asked.forms(recipe), seeds)

    return march.notebook.build(question, work)


def changed_on_record(statements: Sequence[Statement]) -> tuple[str, ...]:
    """By the recipes of one seed, as they were resolved."""
    seeds = {one.asked.seed for one in statements}
    for seed in seeds:
        recipes = {one.asked.arm: _resolved(one) for one in statements if one.asked.seed == seed}
        base = recipes.get(BASE_TASK, recipes.get(BASE))
        if base is not None and recipes.get(WITH) is not None:
            return changed_fields(base, recipes[WITH])
    return ()


def _resolved(statement: Statement) -> Recipe | None:
    form = statement.predicate.recipe.resolved
    return None if form is None else make_recipe(dict(form), "the recipe on record")


def gain_of(gate: GateResult | None, rows: Sequence[LadderRow], base: Sequence[LadderRow]) -> str | None:
    """What the contribution does that the tool without it does not; None where nothing is shown."""
    if gate is None or gate.word != "delta":
        return None
    if "whether it is built" in gate.differs:
        return "it is built with every seed; without it it is not"
    mine = {(row.level, row.target, row.precision): row for row in rows if row.component is None}
    for row in base:
        other = mine.get((row.level, row.target, row.precision))
        if row.component is None and row.word == "fail" and other is not None and other.word == "pass":
            return f"{row.level} passes for {row.target} {row.precision}; without it: {'; '.join(row.reasons)}"
    raced = any(row.level == "L4" and row.word == "pass" and FASTER in row.reasons for row in rows)
    return FASTER if raced else None
