"""The text of a contribution, from its records alone: the same records give the same bytes, whoever asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from modelwright._dataclass import dataclass
from modelwright._output import is_sealed
from modelwright.errors import InputError
from modelwright.knowledge import shipped_findings
from modelwright.support._audit import row_name
from modelwright.support._claim import Claim
from modelwright.support._scope import allowed_files
from modelwright.support._statement import EVIDENCE, EvidenceFile, Statement
from modelwright.support._types import GateResult, LadderRow, SupportRun
from modelwright.support._words import levels_to
from modelwright.vocabulary import Data, Result


@dataclass(frozen=True)
class ReportFile:
    """A file that was built, by content."""

    target: str
    precision: str
    name: str
    sha256: str


@dataclass(frozen=True)
class ReportAttempt:
    """One line of evidence: what was asked, what came out, and where what was said meanwhile is."""

    statement: str
    asked: str
    attempt: int
    change: str | None
    word: str
    exit: int
    log: str | None
    seconds: float


@dataclass(frozen=True)
class SupportReport(Result):
    """Everything in it is a record or follows from records. `friction` is what was found of it, not what somebody said;
    `allowed` are the files that the effort allows to touch."""

    kind: ClassVar[str] = "support report"

    name: str
    claim: Claim
    claim_digest: str
    state: str
    reached: str | None
    recipe: Mapping[str, Any] | None
    rows: tuple[LadderRow, ...]
    base: tuple[LadderRow, ...]
    gate: GateResult | None
    gain: str | None
    files: tuple[ReportFile, ...]
    attempts: tuple[ReportAttempt, ...]
    tools: tuple[str, ...]
    libraries: Mapping[str, str]
    commands: tuple[str, ...]
    findings: tuple[str, ...]
    resolved: Mapping[str, Any] | None
    friction: tuple[str, ...]
    allowed: tuple[str, ...]


def make_report(run: SupportRun, evidence: EvidenceFile, folder: Path) -> SupportReport:
    """Refuses while a claimed row has no record, and where a line was touched."""
    evidence.require_whole(f"{folder}/{EVIDENCE}")
    _require_rows(run, evidence)
    statements = evidence.statements
    return SupportReport(
        name=folder.name,
        claim=run.claim,
        claim_digest=run.claim_digest,
        state=run.state,
        reached=run.reached,
        recipe=_recipe(statements),
        findings=tuple(_findings(run.claim)),
        resolved=_resolved(statements),
        rows=run.rows,
        base=run.base,
        gate=run.gate,
        gain=run.gain,
        files=tuple(_files(statements)),
        attempts=tuple(map(_attempt, statements)),
        tools=tuple(dict.fromkeys(_tool(one) for one in statements)),
        libraries=_libraries(statements),
        commands=tuple(dict.fromkeys(_command(one) for one in statements)),
        friction=tuple(_friction(run.claim, evidence, folder)),
        allowed=allowed_files(run.claim.effort, f"recipes/{folder.name}", run.claim.script_name),
    )


def _require_rows(run: SupportRun, evidence: EvidenceFile) -> None:
    """What was claimed is every case at every level up to the ceiling; `not-reached` follows from the level below."""
    ids = {one.id for one in evidence.statements}
    missing = []
    for case in run.claim.cases:
        mine = [row for row in run.rows if (row.target, row.precision) == (case.target, case.precision)]
        for level in levels_to(run.claim.ceiling):
            rows = [row for row in mine if row.level == level]
            if not rows or any(row.word != "not-reached" and not _shown(row, ids) for row in rows):
                missing.append(row_name(level, case.target, case.precision, None))
    if missing:
        raise InputError(
            f"there is no report yet: {missing[0]} has no record",
            cause=f"{len(missing)} of the claimed rows are without one",
            fix="`wright support run` goes on where it was",
        )


def _shown(row: LadderRow, ids: set[str]) -> bool:
    return bool(row.statements) and ids.issuperset(row.statements)


def _recipe(statements: Sequence[Statement]) -> Mapping[str, Any] | None:
    return next((one.predicate.recipe.given for one in statements if one.predicate.recipe.given is not None), None)


def _resolved(statements: Sequence[Statement]) -> Mapping[str, Any] | None:
    mine = [one for one in statements if one.asked.step != "gate" and one.asked.arm == "contribution"]
    return next((one.predicate.recipe.resolved for one in mine if one.predicate.recipe.resolved is not None), None)


def _findings(claim: Claim) -> Iterator[str]:
    """What is known about the family that is contributed to."""
    if claim.family is None:
        return
    name = Path(claim.family.name).stem
    for one in shipped_findings():
        if one.family is not None and "".join(letter for letter in one.family.lower() if letter.isalnum()) == name:
            yield f"{one.id}: {one.says}"


def _files(statements: Sequence[Statement]) -> Iterator[ReportFile]:
    seen = {}
    for one in statements:
        if one.asked.step != "gate" and one.asked.arm == "contribution":
            for subject in one.subject:
                kind, _, name = subject.name.partition(":")
                if kind == "file":
                    seen[(one.asked.target, one.asked.precision, name)] = subject.digest.get("sha256", "")
    yield from (ReportFile(*place, sha256) for place, sha256 in sorted(seen.items()))


def _attempt(one: Statement) -> ReportAttempt:
    asked, said = one.asked, one.predicate
    seed = "" if asked.seed is None else f" seed {asked.seed}"
    arm = "" if asked.arm == "contribution" else f" ({asked.arm})"
    name = row_name(asked.level or asked.step, asked.target, asked.precision, asked.component)
    return ReportAttempt(
        one.id, f"{name}{seed}{arm}", asked.attempt, asked.change, one.word, said.exit, said.log, said.seconds
    )


def _tool(one: Statement) -> str:
    tool = one.predicate.tool
    commit = f"commit {tool.commit[:12]}" if tool.commit else "no commit"
    return f"modelwright {tool.version}, {commit}{', with changes' if tool.dirty else ''}, digest {tool.digest[:12]}"


def _libraries(statements: Sequence[Statement]) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for one in statements:
        for name, version in one.predicate.environment.packages.items():
            found.setdefault(name, set()).add(version)
    return {name: " and ".join(sorted(versions)) for name, versions in sorted(found.items())}


def _command(one: Statement) -> str:
    return " ".join(one.predicate.argv)


def _friction(claim: Claim, evidence: EvidenceFile, folder: Path) -> Iterator[str]:
    """What was harder than it should be, found in the records."""
    again = [one for one in evidence.statements if one.asked.attempt]
    if again:
        changes = dict.fromkeys(one.asked.change or "the same" for one in again)
        yield f"{len(again)} retries: {', '.join(changes)}"
    ended = [one for one in evidence.statements if one.predicate.exit not in (0, 1)]
    if ended:
        yield f"{len(ended)} attempts ended with an error"
    if evidence.torn:
        yield "a run was killed while it wrote"
    if claim.recipe is not None and not _sealed(folder / claim.recipe.name):
        yield f"{claim.recipe.name} was written or edited by hand"
    if claim.data is not None and Data(claim.data.asked.source).function:
        yield f"the data needs a script: {claim.data.asked.source}"
    if claim.metric is not None and ".py:" in claim.metric:
        yield f"the metric needs a script: {claim.metric}"
    strange = dict.fromkeys(one.predicate.argv[0] for one in evidence.statements if _is_script(one))
    yield from (f"it was run by a script: {name}" for name in strange)
    if any(one.predicate.tool.dirty for one in evidence.statements):
        yield "the tool was changed while it was used"
    tools = {one.predicate.tool.digest for one in evidence.statements}
    if len(tools) > 1:
        yield f"{len(tools)} different tools made the records"


def _sealed(recipe: Path) -> bool:
    return recipe.is_file() and is_sealed(recipe.read_bytes())


def _is_script(one: Statement) -> bool:
    words = one.predicate.argv
    return bool(words) and Path(words[0]).stem not in ("wright",) and not words[0].startswith("modelwright.")
