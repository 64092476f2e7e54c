"""One case on the ladder: built, looked at level by level, every row on record."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from modelwright._scratch import scratch
from modelwright.data import drawing
from modelwright.errors import InputError, StoreError, WrightError
from modelwright.support._above import LevelFound, portable_level, speed_level, task_level
from modelwright.support._case import BuildSurroundings, CaseAsked, CaseBuild, CasePart, climb_build, source_of, told
from modelwright.support._claim import ClaimedCase
from modelwright.support._climb import RETRIES, Climb
from modelwright.support._gate import BASE_TASK, WITH
from modelwright.support._levels import Hindrance, LevelJudgement, StructureSeen
from modelwright.support._march import CONTRIBUTION, WHOLE, WITHOUT, March
from modelwright.support._notebook import StepFound
from modelwright.support._statement import Statement, StatementAsked, StatementSeeds, StatementSubject, subject_of
from modelwright.support._types import LadderRow
from modelwright.support._words import BlockedBy, Level, RowWord, levels_to, worst_row
from modelwright.vocabulary import OnProgress, Progress, within
from modelwright.worker import ChildError


def climb_all(march: March, arm: str, cases: Sequence[ClaimedCase]) -> tuple[LadderRow, ...]:
    """Every case up to the ceiling; the last level looks at all of them together."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(drawing(march.store.root.parent))
        climbers = [_Climber(march, case, arm, stack) for case in cases]
        rows = [row for climber in climbers for row in climber.climb()]
        if march.claim.ceiling == "L5":
            rows += [row for climber in climbers for row in climber.portable(climbers, rows)]
    return tuple(rows)


class _Climber:
    """One case. A level that fails ends its march; a blocked one does not."""

    def __init__(self, march: March, case: ClaimedCase, arm: str, stack: contextlib.ExitStack) -> None:
        self.march, self.case, self.arm = march, case, arm
        self.asked = CaseAsked(march.claim, case, march.given, arm)
        self.place = Path(stack.enter_context(scratch("climb")))
        self.rows: list[LadderRow] = []
        self.tell = within(march.tell, "climb", str(case))
        self._climb: Climb | None = None
        self._error: WrightError | None = None

    def climb(self) -> list[LadderRow]:
        for level in levels_to(self.march.claim.ceiling):
            if level == "L5":
                break
            if any(row.word == "fail" for row in self.rows):
                self._not_reached(level)
                continue
            self.march.tell(Progress(f"{level} for {self.case}"))
            self.rows += self._level(level)
        return self.rows

    def portable(self, everyone: Sequence[_Climber], rows: Sequence[LadderRow]) -> list[LadderRow]:
        if any(row.word == "fail" for row in self.rows) or self._broken() is not None:
            self._not_reached("L5")
            return self.rows[-1:]
        cpu = [row.word for row in rows if row.level == "L2" and row.component is None and row.target == "cpu"]

        def measure() -> LevelFound:
            others = {str(one.case): one.built for one in everyone if one is not self and one._broken() is None}
            return portable_level(self.built, others, worst_row(cpu) if cpu else None)

        return [self._row("L5", None, measure)]

    def _level(self, level: Level) -> list[LadderRow]:
        error = self._broken()
        if error is not None:
            return [self._unbuilt(level, error)]
        parts: list[CasePart | None] = list(self.parts) if len(self.parts) > 1 else []
        match level:
            case "L0":
                return [self._row(level, part, self._structure(part)) for part in (*parts, None)]
            case "L1":
                return self._together(level, [self._runs(part) for part in self.parts])
            case "L2":
                return self._parity()
            case "L3":
                return [self._row(level, None, lambda: task_level(self.built, self.march.verbs))]
            case _:
                return self._together(level, [self._speed(part) for part in self.parts])

    # what is built

    @property
    def built(self) -> Climb:
        assert self._climb is not None, "asked after it was built"
        return self._climb

    @property
    def parts(self) -> tuple[CasePart, ...]:
        return self.built.built.parts

    def _broken(self) -> WrightError | None:
        """Builds it, the first time; on record is whether it came to an end."""
        if self._climb is None and self._error is None:
            before = BuildSurroundings.of(source_of(self.march.claim.source))
            try:
                built = climb_build(self.asked, self.march.notebook.folder, self.march.store, self.tell)
                self._climb = Climb(built, self.place, before, self.tell)
            except StoreError:
                raise
            except WrightError as error:
                self._error = error
            known = self.march.notebook.build(self._question("build"), lambda _: self._build_found())
            self._require_same(known)
        return self._error

    def _require_same(self, known: Statement) -> None:
        """What is on record is about files: other ones are another artifact."""
        files = () if self._error is not None else self._files(self.built.built)
        before = [one for one in known.subject if one.name.startswith("file:")]
        if sorted(map(str, files)) != sorted(map(str, before)):
            raise InputError(
                f"the build for {self.case} is another one than is on record",
                cause="its files have other digests than when the run began",
                fix="run it into a new folder; the gate tells whether seeds decide what is built",
            )

    def _build_found(self) -> StepFound:
        seeds = StatementSeeds(self.march.claim.seed("weights"), (self.march.claim.seed("inputs"),))
        if self._error is not None:
            return StepFound({"failure": told(self._error)}, self._error.exit_code, (), self.asked.forms(None), seeds)
        built = self.built.built
        measured = {"failure": None, "passed": built.result.passed, "seconds": built.result.seconds}
        return StepFound(measured, 0, self._files(built), self.asked.forms(built.recipe), seeds)

    def _files(self, built: CaseBuild) -> tuple[StatementSubject, ...]:
        files = ((part.name, file) for part in built.result.components for file in part.final.files)
        return tuple(subject_of("file", f"{name}/{Path(file.name).name}", file.digest) for name, file in files)

    def _unbuilt(self, level: Level, error: WrightError) -> LadderRow:
        """A build that came to no end: whose fault it is follows from how it ended."""
        late = isinstance(error, ChildError) and error.kind in ("timeout", "stalled")
        absent = "has no class for" in error.problem
        by: BlockedBy | None = "timeout" if late else "upstream" if absent else None
        seen = StructureSeen(failure=told(error)) if by is None else StructureSeen(hindrance=Hindrance(by, told(error)))
        row = self._row(level, None, lambda: LevelFound(seen), built=False) if level == "L0" else None
        if row is not None:
            return row
        first = next(row for row in self.rows if row.level == "L0")
        return replace(first, level=level)

    # rows

    def _row(
        self, level: Level, part: CasePart | None, measure: Callable[[], LevelFound], *, built: bool = True
    ) -> LadderRow:
        return self._asked(self._question("ladder", level, part), measure, built=built)[0]

    def _asked(
        self, question: StatementAsked, measure: Callable[[], LevelFound], *, built: bool = True
    ) -> tuple[LadderRow, LevelJudgement]:
        def work(_: OnProgress) -> StepFound:
            found = measure()
            files = (*(self._files(self.built.built) if built else ()), *_rows_fed(found.seen))
            seeds = StatementSeeds(self.march.claim.seed("weights"), tuple(getattr(found.seen, "seeds", ())))
            recipe = self.asked.forms(self.built.built.recipe if built else None)
            return StepFound(found.seen, 0, files, recipe, seeds, found.records)

        statement, judged = self.march.notebook.level(question, work)
        level = question.level
        assert level is not None, "a level was asked about"
        row = LadderRow(
            level,
            self.case.target,
            self.case.precision,
            question.component,
            judged.word,
            statement.predicate.verdict.by,
            judged.reasons,
            (statement.id,),
            judged.blocked_by,
        )
        return row, judged

    def _question(self, step: str, level: Level | None = None, part: CasePart | None = None) -> StatementAsked:
        several = self._climb is not None and len(self.parts) > 1
        name = part.name if part is not None and several else None
        arm = WITHOUT if self.arm != WITH and self.march.contributed else CONTRIBUTION
        return StatementAsked(step, self.case.target, self.case.precision, name, level, arm)  # type: ignore[arg-type]

    def _runs(self, part: CasePart) -> LadderRow:
        """As it is, then otherwise where the target refuses; what was tried is all on record."""
        question = self._question("ladder", "L1", part)
        row, judged = self._asked(question, lambda: LevelFound(self.built.runs(part)))
        ids, tried = row.statements, []
        for number, retry in enumerate(RETRIES, 1):
            if judged.word in ("pass", "inconclusive") or self.case.target == "cpu":
                break
            tried.append(retry.change)
            again = replace(question, attempt=number, change=retry.change)
            self.built.otherwise(part, retry)
            row, judged = self._asked(again, lambda: LevelFound(self.built.runs(part)))
            ids = (*ids, *row.statements)
        said = (f"tried: {', '.join(tried)}",) if tried else ()
        return replace(row, statements=ids, reasons=(*row.reasons, *said))

    def _structure(self, part: CasePart | None) -> Callable[[], LevelFound]:
        return lambda: LevelFound(self.built.structure(part))

    def _parity(self) -> list[LadderRow]:
        if len(self.parts) == 1:
            return [self._row("L2", None, lambda: LevelFound(self.built.parity(self.parts[0])))]
        if not self.built.writes:
            return self._together("L2", [self._part_parity(part) for part in self.parts])
        whole = self._row("L2", None, lambda: LevelFound(self.built.written()))
        first = self.built.arrangement.first if self.built.arrangement is not None else ""
        rows = []
        for part in self.parts:
            alone = (
                part.name == first and self.built.arrangement is not None and "encoder" in self.built.arrangement.kind
            )
            row = self._part_parity(part) if alone else replace(whole, component=part.name, by=WHOLE)
            rows.append(row)
        return [*rows, whole]

    def _part_parity(self, part: CasePart) -> LadderRow:
        return self._row("L2", part, lambda: LevelFound(self.built.parity(part)))

    def _speed(self, part: CasePart) -> LadderRow:
        return self._row("L4", part, lambda: speed_level(self.built, part, self.march.verbs, self._base_file(part)))

    def _base_file(self, part: CasePart) -> Path | None:
        """The same part without the contribution, where it is claimed to be slower."""
        if not self.march.claim.tolerances.faster or not self.march.contributed or self.arm != WITH:
            return None
        asked = replace(self.asked, arm=BASE_TASK)
        built = climb_build(asked, self.march.notebook.folder, self.march.store, self.tell)
        return next((one.artifact for one in built.parts if one.name == part.name), None)

    def _together(self, level: Level, rows: list[LadderRow]) -> list[LadderRow]:
        """The whole is as good as its worst part."""
        if len(rows) == 1:
            return rows
        word: RowWord = worst_row(row.word for row in rows)
        worst = [row for row in rows if row.word == word]
        reasons = tuple(f"{row.component}: {'; '.join(row.reasons)}" for row in worst)
        ids = tuple(one for row in rows for one in row.statements)
        whole = LadderRow(
            level, self.case.target, self.case.precision, None, word, WHOLE, reasons, ids, worst[0].blocked_by
        )
        return [*rows, whole]

    def _not_reached(self, level: Level) -> None:
        below = next((row.level for row in self.rows if row.word == "fail"), "L0")
        why = (f"{below} fails",)
        self.rows.append(LadderRow(level, self.case.target, self.case.precision, None, "not-reached", WHOLE, why))


def _rows_fed(seen: object) -> tuple[StatementSubject, ...]:
    """The samples that a level rests on, by content."""
    named = (("inputs", getattr(seen, "fed", None)), ("rows", getattr(seen, "data", None)))
    return tuple(subject_of("data", name, digest) for name, digest in named if isinstance(digest, str))
