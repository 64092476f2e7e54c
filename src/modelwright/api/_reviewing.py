"""`modelwright.support.report` and `modelwright.support.review`."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import recipes
from modelwright._lazy import lazy
from modelwright._output import write_output
from modelwright._scratch import scratch
from modelwright.api._afresh import SAME, AfreshJob, climb_afresh
from modelwright.errors import InputError, WrightError
from modelwright.recipes import IndexRow
from modelwright.support import (
    REPORT,
    CheckedOut,
    Claim,
    EvidenceFile,
    ReviewFinding,
    ReviewMode,
    SupportReport,
    SupportReview,
    SupportRun,
    audit,
    checked_out,
    compared_rows,
    decided,
    family_file_of,
    foreign_to_a_family,
    foreign_to_a_metric,
    gate_findings,
    hunt,
    is_that,
    make_report,
    marked,
    number_findings,
    outside_effort,
    read_claim,
    read_evidence,
    recorded_run,
    rules_touched,
    this_tool,
)
from modelwright.targets import parse_target
from modelwright.vocabulary import OnProgress, Progress, silent

if TYPE_CHECKING:
    from collections.abc import Callable

    from modelwright.report import support_report as pages

    Climb = Callable[[AfreshJob, OnProgress], None]
else:
    pages = lazy("modelwright.report.support_report")


def shown(*, family: str | None = None, target: str | None = None) -> tuple[IndexRow, ...]:
    """What the catalogue shows: family, target, precision, level and since when; of one family or target."""
    wanted = None if target is None else str(parse_target(target))
    rows = recipes.index_rows(recipes.own_folder())
    return tuple(row for row in rows if family in (None, row.family) and wanted in (None, row.target))


def report(folder: str | Path, *, write: bool = True) -> SupportReport:
    """The text of a contribution from its records alone, also as `report.md` in its folder. Refused while a claimed row
    has no record. Nothing is pushed anywhere."""
    place = Path(folder)
    evidence = read_evidence(place)
    found = make_report(recorded_run(read_claim(place), evidence, place.name), evidence, place)
    if write:
        write_output(place / REPORT, pages.markdown(found))
    return found


def review(
    folder: str | Path,
    *,
    ref: str | None = None,
    base: str | None = None,
    model: str | Path | None = None,
    data: str | Path | None = None,
    metric: str | Path | None = None,
    evidence_only: bool = False,
    seeds: int = 5,
    output: str | Path | None = None,
    on_progress: OnProgress | None = None,
    climb: Climb = climb_afresh,
) -> SupportReview:
    """Believe nothing of a contribution: clone `ref` (or copy the folder), read its records, build it again from an
    empty store with seeds that are drawn now, climb, and only then compare.

    `model` and `data` are where they lie here; both must be what the claim names by content. Before anything else the
    judge here has to find defects that are planted for it. Each arm of the gate is built with `seeds` seeds at least.
    `metric` is the file of the claim's metric, if it has one, as you have read it: a review cannot say whether a script
    scores what it should.
    """
    tell, planted = on_progress or silent, hunt()
    with scratch("review") as place:
        there = checked_out(Path(folder), ref, base, Path(place))
        try:
            with _by_its_own_name(there.folder, folder):
                claim = read_claim(there.folder)
        except InputError as error:
            return _refused(there, error, planted)
        with _by_its_own_name(there.folder, folder):
            evidence = read_evidence(there.folder)
        claimed = recorded_run(claim, evidence, there.folder.name)
        findings = [*audit(claim, evidence, there.folder, this_tool()), *_around(there, claim, claimed, evidence)]
        findings += [*_scripts(claim, there.folder, metric)]
        own, nonce = None, None
        if not evidence_only and not any(one.weight == "reject" for one in findings):
            nonce = secrets.token_hex(16)
            out = Path(output).absolute() if output is not None else Path(place, "own")
            own, more = _again(
                AfreshJob(str(there.folder), str(out), nonce, _said(model), _said(data), seeds), claim, climb, tell
            )
            findings += more
            if own is not None:
                findings += number_findings(evidence, read_evidence(out / SAME))
    findings += gate_findings(claim, claimed, own)
    rows = marked(compared_rows(claim, claimed.rows, own), findings)
    mode: ReviewMode = "evidence only" if own is None else "rerun"
    verdict, reasons = decided(rows, findings, mode)
    return SupportReview(
        folder=there.name,
        mode=mode,
        verdict=verdict,
        reasons=reasons,
        rows=rows,
        findings=tuple(dict.fromkeys(findings)),
        gate=(claimed.gate.word if claimed.gate else None, own.gate.word if own and own.gate else None),
        commit=there.commit,
        nonce=nonce,
        planted=planted,
        claim=claim.digest,
    )


def _said(path: str | Path | None) -> str | None:
    """As seen from here: the climb stands in another folder."""
    if path is None:
        return None
    there = Path(path).expanduser()
    return str(there.absolute()) if there.exists() else str(path)


@contextlib.contextmanager
def _by_its_own_name(copy: Path, folder: str | Path) -> Iterator[None]:
    """What is wrong with a copy is said of the folder that was given."""
    try:
        yield
    except WrightError as error:
        for part in ("problem", "cause", "fix"):
            setattr(error, part, getattr(error, part).replace(str(copy), str(folder)))
        raise


def _refused(there: CheckedOut, error: WrightError, planted: int) -> SupportReview:
    """A claim that cannot be read, or was changed since it was frozen: there is nothing to hold the records against."""
    why = f"{error.problem}: {error.cause}"
    finding = ReviewFinding("claim", None, "contradicted", "reject", why)
    return SupportReview(
        there.name, "evidence only", "reject", (why,), (), (finding,), (None, None), there.commit, None, planted, None
    )


def _around(there: CheckedOut, claim: Claim, run: SupportRun, evidence: EvidenceFile) -> Iterator[ReviewFinding]:
    """What lies beside the records: the report, the files that were touched, the code of a family."""
    yield from _reported(there.folder, run, evidence)
    if there.changed is not None:
        for name in outside_effort(there.changed, claim.effort, there.name, claim.script_name):
            why = f"{name} is touched, and effort `{claim.effort}` does not allow that"
            yield ReviewFinding("scope", None, "contradicted", "reject", why)
        for name in rules_touched(there.changed):
            yield ReviewFinding(
                "rules", None, "unverified", "changes", f"{name} judges contributions: a person decides"
            )
    elif there.commit is not None:
        why = "what the commit changes is not known: name a `base`"
        yield ReviewFinding("scope", None, "unverified", "changes", why)
    if claim.effort == "shared":
        why = "code that other models share is changed: a person has to read it"
        yield ReviewFinding("scope", None, "unverified", "changes", why)
    family = family_file_of(claim, there.folder)
    for line in () if family is None else foreign_to_a_family(family):
        yield ReviewFinding("family", None, "contradicted", "reject", f"{line}: a family has no need of that")
    named = {file.name for file in (claim.family, claim.script) if file is not None}
    for name in sorted({path.name for path in there.folder.glob("*.py")} - named):
        yield ReviewFinding("scope", None, "contradicted", "reject", f"{name} is code that the claim does not name")


def _scripts(claim: Claim, folder: Path, read: str | Path | None) -> Iterator[ReviewFinding]:
    """What gives rows or scores them by code: it can give any answer, and only a person can say that it is the right
    question. `read` is the file of the metric that somebody has read."""
    script = claim.script
    if script is not None and (folder / script.name).is_file():
        for line in foreign_to_a_metric(folder / script.name):
            yield ReviewFinding("metric", None, "contradicted", "reject", f"{line}: a metric has no need of that")
    if script is not None and (read is None or not is_that(script, Path(read))):
        which = f"{script.name} scores the rows" if read is None else f"{read} is not the claim's {script.name}"
        why = f"{which}: read the claim's file, and name it (`metric`)"
        yield ReviewFinding("metric", None, "unverified", "changes", why)
    data = claim.data
    if data is not None and data.digest is None and not data.asked.random:
        why = f"{data.asked.source} gives rows that are known by no digest: a person has to read where they come from"
        yield ReviewFinding("data", None, "unverified", "changes", why)


def _reported(folder: Path, run: SupportRun, evidence: EvidenceFile) -> Iterator[ReviewFinding]:
    """A report is what its records give, to the byte."""
    path = folder / REPORT
    if not path.is_file():
        return
    try:
        wanted = pages.rendered(make_report(run, evidence, folder))
    except WrightError as error:
        yield ReviewFinding("report", None, "contradicted", "reject", f"{error.problem}: {error.cause}")
        return
    if path.read_bytes().replace(b"\r\n", b"\n") != wanted:
        number = _first_difference(path.read_bytes(), wanted)
        why = f"{REPORT} is not what the records give, from line {number} on"
        yield ReviewFinding("report", None, "contradicted", "reject", why)


def _first_difference(one: bytes, other: bytes) -> int:
    pairs = zip(one.splitlines(), other.splitlines(), strict=False)
    same = next((number for number, (a, b) in enumerate(pairs, 1) if a != b), None)
    return same if same is not None else min(one.count(b"\n"), other.count(b"\n")) + 1


def _again(
    job: AfreshJob, claim: Claim, climb: Climb, tell: OnProgress
) -> tuple[SupportRun | None, list[ReviewFinding]]:
    """The climb here, and what it did to the tool; None where it could not be made."""
    before = this_tool.__wrapped__().digest
    tell(Progress("climbing again, with seeds that are drawn now"))
    try:
        climb(job, tell)
    except WrightError as error:
        why = f"it cannot be built again here: {error.problem}: {error.cause}"
        return None, [ReviewFinding("rerun", None, "unverified", "changes", why)]
    findings = []
    if this_tool.__wrapped__().digest != before:
        why = "files of modelwright were changed while it was built"
        findings.append(ReviewFinding("tool", None, "contradicted", "reject", why))
    out = Path(job.out)
    own = read_claim(out)
    if own.nonce != job.nonce:
        findings.append(ReviewFinding("seed", None, "contradicted", "reject", "other seeds were used than were drawn"))
    return recorded_run(own, read_evidence(out), out.name), findings
