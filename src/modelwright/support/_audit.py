"""What the records of a contribution say about themselves, before anything is built again: do they belong together, and
does every word follow from its numbers? A forger who hashes everything again gets past the ids, not past this."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright._typed import MisfitError
from modelwright.errors import WrightError
from modelwright.support._claim import Claim, ClaimedFile, SeedUse
from modelwright.support._gate import BASE, BASE_TASK, WITH
from modelwright.support._levels import judge_level, rule
from modelwright.support._statement import EvidenceFile, Statement, StatementTool
from modelwright.support._words import Level, levels_to

ReviewWord = Literal["reproduced", "contradicted", "stale", "unverified"]
Weight = Literal["reject", "changes"]


@dataclass(frozen=True)
class ReviewFinding:
    """Something that is not as it should be. `row` is what it is about, as the report calls it; `weight` is what it is
    reason enough for: what nobody can do by mistake is a reason to reject."""

    rule: str
    row: str | None
    word: ReviewWord
    weight: Weight
    reason: str


def bare_digest(identity: str) -> str:
    """A digest as in-toto has it; the commit of a Hub model is a name, and its digest is that of the name."""
    kind, _, digest = identity.partition(":")
    return digest if kind == "sha256" else hashlib.sha256(identity.encode()).hexdigest()


def row_name(level: str | None, target: str, precision: str, component: str | None) -> str:
    return " ".join(word for word in (level, target, precision, component) if word)


def name_of(statement: Statement) -> str:
    asked = statement.asked
    return row_name(asked.level or asked.step, asked.target, asked.precision, asked.component)


def audit(claim: Claim, evidence: EvidenceFile, folder: Path, tool: StatementTool) -> tuple[ReviewFinding, ...]:
    """Everything that is wrong with the records; `tool` is the one that reads them."""
    found = [*_lines(evidence), *_files(claim, folder)]
    if claim.nonce is not None:
        why = "the claim has a nonce: only a reviewer draws other seeds"
        found.append(ReviewFinding("seed", None, "contradicted", "reject", why))
    for one in evidence.statements:
        found += [*_claimed(one, claim), *_judged(one), *_seeded(one, claim), *_made(one, tool)]
    found += [
        *_artifacts(evidence),
        *_order(evidence),
        *_gate_whole(evidence, claim),
        *_blocked(evidence),
        *_mixed(evidence),
    ]
    return tuple(dict.fromkeys(found))


def _lines(evidence: EvidenceFile) -> Iterator[ReviewFinding]:
    for flaw in evidence.flaws:
        yield ReviewFinding("evidence", None, "contradicted", "reject", f"line {flaw.line}: {flaw.why}")
    if not evidence.statements:
        yield ReviewFinding("evidence", None, "unverified", "changes", "there is no evidence")


def _files(claim: Claim, folder: Path) -> Iterator[ReviewFinding]:
    """The files of the contribution are those that the claim names."""
    for what, file in (("recipe", claim.recipe), ("family", claim.family), ("metric", claim.script)):
        if file is not None and (why := _differs(file, folder)) is not None:
            yield ReviewFinding(what, None, "contradicted", "reject", why)


def _differs(file: ClaimedFile, folder: Path) -> str | None:
    path = folder / file.name
    if Path(file.name).name != file.name or not path.is_file():
        return f"{file.name}, which the claim names, is not beside it"
    if hashlib.sha256(path.read_bytes()).hexdigest() != file.digest:
        return f"{file.name} is not the file that the claim was made with"
    return None


def _claimed(one: Statement, claim: Claim) -> Iterator[ReviewFinding]:
    if one.predicate.claim != claim.digest:
        why = f"it was made for another claim ({one.predicate.claim[:12]})"
        yield ReviewFinding("claim", name_of(one), "contradicted", "reject", why)
    for subject in one.subject:
        kind, _, _ = subject.name.partition(":")
        digest = subject.digest.get("sha256")
        if kind == "source" and digest != bare_digest(claim.source.digest):
            why = f"it is about another source ({str(digest)[:12]})"
            yield ReviewFinding("source", name_of(one), "contradicted", "reject", why)
        own = {"recipe": claim.recipe, "family": claim.family, "metric": claim.script}.get(kind)
        if own is not None and digest != own.digest:
            why = f"it was made with another {kind} ({str(digest)[:12]})"
            yield ReviewFinding(kind, name_of(one), "contradicted", "reject", why)
        whole = claim.data is not None and subject.name == f"data:{claim.data.asked.source}"
        if whole and claim.data is not None and claim.data.digest not in (None, digest):
            why = f"it was measured on other data ({str(digest)[:12]})"
            yield ReviewFinding("data", name_of(one), "contradicted", "reject", why)
    case = (one.asked.target, one.asked.precision)
    if case not in {(each.target, each.precision) for each in claim.cases}:
        yield ReviewFinding("claim", name_of(one), "contradicted", "reject", "nothing of the kind is claimed")


def _judged(one: Statement) -> Iterator[ReviewFinding]:
    """The word follows from the numbers, by the function that is named."""
    asked, said = one.asked, one.predicate.verdict
    if asked.step != "ladder" or asked.level is None:
        return
    if said.by != rule(asked.level):
        yield ReviewFinding(
            "verdict", name_of(one), "stale", "changes", f"{said.by} gave the word, here {rule(asked.level)} does"
        )
        return
    try:
        found = judge_level(asked.level, one.predicate.measured)
    except (WrightError, MisfitError, TypeError, ValueError) as error:
        yield ReviewFinding(
            "verdict", name_of(one), "contradicted", "reject", f"its numbers are none that {said.by} reads: {error}"
        )
        return
    if found.word != said.word or tuple(found.reasons) != tuple(one.predicate.reasons):
        why = f"it says {said.word}, and its numbers say {found.word}"
        if found.word == said.word:
            why = "its reasons are not those that its numbers give"
        yield ReviewFinding("verdict", name_of(one), "contradicted", "reject", why)


def _seeded(one: Statement, claim: Claim) -> Iterator[ReviewFinding]:
    """Nobody picks a seed: those of the claim are taken in their order, and none is left out."""
    seeds, asked = one.predicate.seeds, one.asked
    wrong: list[object] = [] if seeds.weights in (None, claim.seed("weights")) else [seeds.weights]
    wrong += [] if seeds.data in (None, claim.seed("data")) else [seeds.data]
    if asked.step == "gate":
        known = claim.seeds("inputs", claim.gate_seeds)
        wrong += [] if asked.seed in known and seeds.inputs == (asked.seed,) else [asked.seed]
    elif seeds.inputs not in [claim.seeds(use, len(seeds.inputs)) for use in _DRAWN]:
        wrong += [f"among {', '.join(map(str, seeds.inputs))}"]
    measured = one.predicate.measured.get("seeds")
    if measured is not None and tuple(measured) != seeds.inputs:
        wrong.append("of what was measured")
    if wrong:
        why = f"seed {wrong[0]} does not follow from the claim"
        yield ReviewFinding("seed", name_of(one), "contradicted", "reject", why)


_DRAWN: tuple[SeedUse, ...] = ("inputs", "data")


def _made(one: Statement, tool: StatementTool) -> Iterator[ReviewFinding]:
    """By which tool. Another one may have been right: its rows have to be made again."""
    made = one.predicate.tool
    if made.dirty:
        yield ReviewFinding("tool", name_of(one), "stale", "changes", "a tool that is no commit made it")
    if made.digest != tool.digest:
        which = f"commit {made.commit[:12]}" if made.commit else f"version {made.version}"
        why = f"another modelwright made it ({which}, digest {made.digest[:12]}; here {tool.digest[:12]})"
        yield ReviewFinding("tool", name_of(one), "stale", "changes", why)


def _artifacts(evidence: EvidenceFile) -> Iterator[ReviewFinding]:
    """What was measured is what was built."""
    built: dict[tuple[str, str], set[tuple[str, str | None]]] = {}
    for one in evidence.statements:
        files = {
            (subject.name, subject.digest.get("sha256")) for subject in one.subject if subject.name.startswith("file:")
        }
        case = (one.asked.target, one.asked.precision)
        if one.asked.step == "build" and one.asked.arm == "contribution":
            built.setdefault(case, set()).update(files)
        elif one.asked.step == "ladder" and one.asked.arm == "contribution" and files - built.get(case, files):
            name, _ = min(files - built[case])
            why = f"{name.removeprefix('file:')} that was measured is not the one that was built"
            yield ReviewFinding("artifact", name_of(one), "contradicted", "reject", why)


def _order(evidence: EvidenceFile) -> Iterator[ReviewFinding]:
    """A level that fails ends the climb: nothing above it passes, for its case and component or for the whole."""
    last: dict[tuple[str, str, str | None], dict[Level, Statement]] = {}
    for one in evidence.statements:
        asked = one.asked
        if asked.step == "ladder" and asked.level is not None and asked.arm == "contribution":
            last.setdefault((asked.target, asked.precision, asked.component), {})[asked.level] = one
    for rows in last.values():
        failed: Level | None = None
        for level in levels_to("L5"):
            row = rows.get(level)
            if row is None:
                continue
            if failed is not None and row.word in ("pass", "inconclusive", "blocked"):
                why = f"it says {row.word} above {failed}, which failed"
                yield ReviewFinding("order", name_of(row), "contradicted", "reject", why)
            if row.word == "fail" and failed is None:
                failed = level


def _gate_whole(evidence: EvidenceFile, claim: Claim) -> Iterator[ReviewFinding]:
    """Every arm was built with every seed: one that is left out may be the one that failed."""
    asked = [one.asked for one in evidence.statements if one.asked.step == "gate"]
    for case in claim.cases if asked else ():
        arms: dict[str, set[int | None]] = {}
        for one in asked:
            if (one.target, one.precision) == (case.target, case.precision):
                arms.setdefault(one.arm, set()).add(one.seed)
        yield from _arms_whole(arms, claim, "gate" if len(claim.cases) == 1 else f"gate {case}")


def _arms_whole(arms: Mapping[str, set[int | None]], claim: Claim, row: str) -> Iterator[ReviewFinding]:
    seeds = set(claim.seeds("inputs", claim.gate_seeds))
    missing = [WITH] if claim.contributed and WITH not in arms else []
    missing += [] if arms.keys() & {BASE, BASE_TASK} else [BASE]
    for arm in missing:
        yield ReviewFinding("gate", row, "unverified", "changes", f"the arm '{arm}' has no record")
    for arm, found in sorted(arms.items()):
        if found != seeds:
            why = f"the arm '{arm}' was built with {len(found & seeds)} of its {len(seeds)} seeds"
            yield ReviewFinding("gate", row, "contradicted", "reject", why)


def _blocked(evidence: EvidenceFile) -> Iterator[ReviewFinding]:
    """What an EP refuses is tried otherwise before it is blocked, and each try is a record."""
    tries: dict[str, list[Statement]] = {}
    for one in evidence.statements:
        if one.asked.step == "ladder" and one.asked.arm == "contribution":
            tries.setdefault(name_of(one), []).append(one)
    for name, found in tries.items():
        last = found[-1]
        hindrance = last.predicate.measured.get("hindrance")
        by = hindrance.get("by") if isinstance(hindrance, Mapping) else None
        if last.word == "blocked" and by == "host" and last.asked.level == "L1" and len(found) < 2:
            yield ReviewFinding(
                "blocked", name, "contradicted", "reject", "it is blocked, and nothing was tried on record"
            )


def _mixed(evidence: EvidenceFile) -> Iterator[ReviewFinding]:
    """One run is made by one tool with one set of libraries."""
    for what, seen in (
        ("tools", {one.predicate.tool.digest for one in evidence.statements}),
        (
            "sets of libraries",
            {tuple(sorted(one.predicate.environment.packages.items())) for one in evidence.statements},
        ),
    ):
        if len(seen) > 1:
            yield ReviewFinding("tool", None, "stale", "changes", f"{len(seen)} {what} made the records of one run")
