"""Everything that is tried is written down, once: a step that is on record is not done again."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from modelwright import _json
from modelwright._call import spoken
from modelwright._dataclass import dataclass
from modelwright._disk import disk_errors
from modelwright._filenames import near
from modelwright.errors import InputError
from modelwright.evidence import Environment, RecordedVerdict, now, read_environment
from modelwright.support._claim import Claim
from modelwright.support._levels import LevelJudgement, judge_level, rule
from modelwright.support._statement import (
    EvidenceLog,
    Statement,
    StatementAsked,
    StatementRecipe,
    StatementSeeds,
    StatementSubject,
    SupportPredicate,
    subject_of,
    this_tool,
)
from modelwright.support._words import Level
from modelwright.vocabulary import OnProgress, Progress

LOGS = "logs"
_EXITS: Mapping[str, int] = {"pass": 0, "fail": 1, "inconclusive": 6, "blocked": 6}
BUILD = "build-1"
"""What says whether a build came to an end."""


@dataclass(frozen=True)
class StepFound:
    """What a step came to. `measured` is all that its word follows from."""

    measured: Any
    exit: int = 0
    subjects: tuple[StatementSubject, ...] = ()
    recipe: StatementRecipe = field(default_factory=StatementRecipe)
    seeds: StatementSeeds = field(default_factory=StatementSeeds)
    records: tuple[str, ...] = ()


Work = Callable[[OnProgress], StepFound]


class Notebook:
    """The evidence of one claim."""

    def __init__(self, claim: Claim, folder: Path, tell: OnProgress) -> None:
        self.claim, self.folder, self.tell = claim, folder, tell
        self._log = EvidenceLog(folder)
        self._environment: Environment | None = None
        self._require_ours()

    @property
    def was_torn(self) -> bool:
        return self._log.was_torn

    @property
    def statements(self) -> tuple[Statement, ...]:
        return self._log.evidence.statements

    def level(self, asked: StatementAsked, work: Work) -> tuple[Statement, LevelJudgement]:
        """One level: measured now, or on record already."""
        level = asked.level
        assert level is not None, "a level is asked about"

        def ended(tell: OnProgress) -> StepFound:
            found = work(tell)
            word = judge_level(level, _json.plain(found.measured)).word
            return replace(found, exit=_EXITS.get(word, found.exit))

        statement = self._once(asked, ended, lambda found: self._judged(level, found))
        judged = judge_level(level, statement.predicate.measured)
        return statement, judged

    def build(self, asked: StatementAsked, work: Work) -> Statement:
        def word(found: StepFound) -> tuple[RecordedVerdict, tuple[str, ...]]:
            failure = _json.plain(found.measured).get("failure")
            return RecordedVerdict("failed" if failure else "built", BUILD), (failure,) if failure else ()

        return self._once(asked, work, word)

    def _judged(self, level: Level, found: StepFound) -> tuple[RecordedVerdict, tuple[str, ...]]:
        judged = judge_level(level, _json.plain(found.measured))
        return RecordedVerdict(judged.word, rule(level)), judged.reasons

    def _once(
        self, asked: StatementAsked, work: Work, word: Callable[[StepFound], tuple[RecordedVerdict, tuple[str, ...]]]
    ) -> Statement:
        known = self._log.evidence.find(asked)
        if known is not None:
            return known
        said: list[str] = []

        def hear(progress: Progress) -> None:
            said.append(progress.message)
            self.tell(progress)

        began, made_at = time.monotonic(), now()
        found = work(hear)
        verdict, reasons = word(found)
        source = subject_of("source", self.claim.source.name, _bare(self.claim.source.digest))
        predicate = SupportPredicate(
            claim=self.claim.digest,
            previous=None,
            asked=asked,
            recipe=found.recipe,
            tool=this_tool(),
            environment=self._circumstances(),
            seeds=found.seeds,
            argv=("wright", *map(near, spoken.get())) if spoken.get() else (),
            exit=found.exit,
            log=self._keep_log(said),
            measured=_json.plain(found.measured),
            verdict=verdict,
            reasons=reasons,
            records=found.records,
            made_at=made_at,
            seconds=round(time.monotonic() - began, 3),
        )
        return self._log.add((source, *self._contribution(), *found.subjects), predicate)

    def _contribution(self) -> Sequence[StatementSubject]:
        named = (("recipe", self.claim.recipe), ("family", self.claim.family), ("metric", self.claim.script))
        files = [subject_of(kind, file.name, file.digest) for kind, file in named if file is not None]
        data = self.claim.data
        if data is not None and data.digest is not None:
            files.append(subject_of("data", data.asked.source, data.digest))
        return files

    def _circumstances(self) -> Environment:
        if self._environment is None:
            self._environment = read_environment()
        return self._environment

    def _keep_log(self, said: list[str]) -> str | None:
        if not said:
            return None
        text = "\n".join(said) + "\n"
        name = hashlib.sha256(text.encode()).hexdigest()
        folder = self.folder / LOGS
        with disk_errors(self.folder, "keep what was said"):
            folder.mkdir(exist_ok=True)
            part = folder / f".{name}.part"
            part.write_text(text, encoding="utf-8")
            part.replace(folder / f"{name}.txt")
        return name

    def _require_ours(self) -> None:
        """Evidence of another claim, or of another tool, does not go on here."""
        for one in self.statements:
            other = one.predicate
            for is_other, what in (
                (other.claim != self.claim.digest, "it is about another claim"),
                (other.tool.digest != this_tool().digest, "another version of modelwright began it"),
            ):
                if is_other:
                    raise InputError(
                        f"the evidence in {self.folder} cannot be gone on with", cause=what, fix="use a new folder"
                    )


def _bare(identity: str) -> str:
    """A digest as in-toto has it; the commit of a Hub model is a name, and its digest is that of the name."""
    kind, _, digest = identity.partition(":")
    return digest if kind == "sha256" else hashlib.sha256(identity.encode()).hexdigest()
