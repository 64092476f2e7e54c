"""Evidence: one in-toto Statement a line, for every attempt, also those that failed.

The id of a statement is the SHA-256 of its canonical form without the id, and each names the one before it: a line that
was changed, taken out or put in between is found. What a kill left of a last line is not there, and is told.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from modelwright import __version__, _json
from modelwright._dataclass import dataclass
from modelwright._disk import disk_errors
from modelwright._typed import typed
from modelwright.errors import InputError
from modelwright.evidence import Environment, RecordedVerdict
from modelwright.support._words import Level

EVIDENCE = "evidence.jsonl"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:modelwright:support-evidence:1"
_LONGEST_LINE = 32 << 20
_MOST_BYTES, _MOST_FLAWS = 256 << 20, 1000
_PACKAGE = Path(__file__).parents[1]
_ENTRIES = _PACKAGE / "recipes"
_SHIPPED = (".py", ".toml", ".json", ".typed")


@dataclass(frozen=True)
class StatementSubject:
    """What it is about, by content. `name` begins with what it is: `source:`, `file:`, `data:`, `recipe:`."""

    name: str
    digest: Mapping[str, str]


@dataclass(frozen=True)
class StatementAsked:
    """What was asked: one run of the gate (`arm`, `seed`), or one level for one case and component (None: the whole).

    `attempt` counts what was tried anew for the same, from 0; `change` is what was done otherwise then."""

    step: Literal["gate", "build", "ladder"]
    target: str
    precision: str
    component: str | None = None
    level: Level | None = None
    arm: str = "contribution"
    seed: int | None = None
    attempt: int = 0
    change: str | None = None


@dataclass(frozen=True)
class StatementRecipe:
    """As somebody gave it, and what it was resolved to; null where there was none, or it came to none."""

    given: Mapping[str, Any] | None = field(hash=False, default=None)
    resolved: Mapping[str, Any] | None = field(hash=False, default=None)


@dataclass(frozen=True)
class StatementTool:
    """Which modelwright: its version, the digest of every file of it, and its commit where it runs from one. `dirty` is
    a tree that is not that commit."""

    version: str
    digest: str
    commit: str | None
    dirty: bool | None


@dataclass(frozen=True)
class StatementSeeds:
    weights: int | None = None
    inputs: tuple[int, ...] = ()
    data: int | None = None


@dataclass(frozen=True, kw_only=True)
class SupportPredicate:
    """`measured` is all that the verdict follows from, by the function that `verdict.by` names.

    - `exit`: what a command that asked this alone would have ended with
    - `records`: the ids of answers that were kept on the way
    - `log`: the SHA-256 of what was said meanwhile, in `logs/` beside the evidence
    - `seconds`: since it was asked; what several levels need is asked by the first of them
    """

    schema_version: Literal[1] = 1
    claim: str
    previous: str | None
    asked: StatementAsked
    recipe: StatementRecipe
    tool: StatementTool
    environment: Environment
    seeds: StatementSeeds
    argv: tuple[str, ...]
    exit: int
    log: str | None
    measured: Mapping[str, Any] = field(hash=False)
    verdict: RecordedVerdict
    reasons: tuple[str, ...] = ()
    records: tuple[str, ...] = ()
    made_at: str
    seconds: float


@dataclass(frozen=True)
class Statement:
    id: str
    subject: tuple[StatementSubject, ...]
    predicate: SupportPredicate

    @property
    def asked(self) -> StatementAsked:
        return self.predicate.asked

    @property
    def word(self) -> str:
        return self.predicate.verdict.word


@dataclass(frozen=True)
class EvidenceFlaw:
    """A line that is not what was written: from 1, and why."""

    line: int
    why: str


@dataclass(frozen=True)
class EvidenceFile:
    """Every statement that can be read. `torn` is a last line that was cut short; `flaws` are lines that were touched,
    of which statements may be among those read."""

    statements: tuple[Statement, ...]
    torn: bool
    flaws: tuple[EvidenceFlaw, ...]

    def require_whole(self, name: str) -> None:
        """Raises where a line was touched; a torn last line is no such thing."""
        if self.flaws:
            first = self.flaws[0]
            raise InputError(
                f"{name} is not what was written",
                cause=f"line {first.line}: {first.why}"
                + (f", and {len(self.flaws) - 1} more" if len(self.flaws) > 1 else ""),
                fix="evidence is only ever added to: run it again into a new folder",
            )

    def last(self) -> str | None:
        return self.statements[-1].id if self.statements else None

    def find(self, asked: StatementAsked) -> Statement | None:
        """The newest that answers the same question."""
        return next((one for one in reversed(self.statements) if one.asked == asked), None)


def make_statement(subject: Sequence[StatementSubject], predicate: SupportPredicate) -> Statement:
    return Statement(_id(_form(subject, predicate)), tuple(subject), predicate)


def subject_of(kind: str, name: str, sha256: str) -> StatementSubject:
    return StatementSubject(f"{kind}:{name}", {"sha256": sha256})


def statement_line(statement: Statement) -> bytes:
    """As it stands in the file, without the end of the line."""
    form = _form(statement.subject, statement.predicate)
    return _json.canonical({**form, "id": statement.id})


def parse_statement(line: bytes) -> Statement:
    """Raises ValueError where it is none, or not what its id says."""
    document = _json.loads(line)
    if not isinstance(document, dict) or document.get("_type") != STATEMENT_TYPE:
        raise ValueError("it is no in-toto Statement")
    if document.get("predicateType") != PREDICATE_TYPE:
        raise ValueError(f"its predicate is {document.get('predicateType')!r}, and not one of support")
    said = document.pop("id", None)
    if said != _id(document):
        raise ValueError("its content is not what its id says")
    subject = typed(tuple[StatementSubject, ...], document["subject"])
    found = Statement(str(said), subject, typed(SupportPredicate, document["predicate"], strict=True))
    if _id(_form(found.subject, found.predicate)) != said:
        raise ValueError("it holds what no statement of this version holds")
    return found


def read_evidence(folder: Path) -> EvidenceFile:
    """Line by line: a large file takes the room of what it says, and a line without end is not read to it."""
    statements: list[Statement] = []
    flaws: list[EvidenceFlaw] = []
    torn, previous, seen = False, None, set[str]()
    _require_readable(folder / EVIDENCE)
    for number, line in enumerate(_lines(folder / EVIDENCE), 1):
        if len(flaws) >= _MOST_FLAWS:
            break  # nobody reads more of them, and a file of nothing else would fill the memory
        if not line.endswith(b"\n") and len(line) < _LONGEST_LINE:
            torn = True
            continue
        try:
            found = parse_statement(line)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            flaws.append(EvidenceFlaw(number, (str(error).splitlines() or ["it cannot be read"])[0][:200]))
            previous = None
            continue
        if found.predicate.previous != previous and not (flaws and previous is None):
            flaws.append(EvidenceFlaw(number, "the line before it is not the one it was written after"))
        if found.id in seen:
            flaws.append(EvidenceFlaw(number, "it is there twice"))
        seen.add(found.id)
        previous = found.id
        statements.append(found)
    return EvidenceFile(tuple(statements), torn, tuple(flaws))


class EvidenceLog:
    """The file, open for adding. One process writes it; what a kill cut short is taken off first."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / EVIDENCE
        found = read_evidence(folder)
        found.require_whole(str(self._path))
        if found.torn:
            self._cut(found)
        self._found = found

    @property
    def evidence(self) -> EvidenceFile:
        return self._found

    @property
    def was_torn(self) -> bool:
        return self._found.torn

    def add(self, subject: Sequence[StatementSubject], predicate: SupportPredicate) -> Statement:
        """Written whole before it counts. `previous` is set here."""
        predicate = dataclasses.replace(predicate, previous=self._found.last())
        # As it will be read back: numbers of another kind would have another id.
        predicate = typed(SupportPredicate, _json.plain(predicate), strict=True)
        statement = make_statement(subject, predicate)
        with disk_errors(self._path.parent, "add evidence"), self._path.open("ab") as file:
            file.write(statement_line(statement) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._found = dataclasses.replace(self._found, statements=(*self._found.statements, statement))
        return statement

    def _cut(self, found: EvidenceFile) -> None:
        whole = b"".join(statement_line(one) + b"\n" for one in found.statements)
        part = self._path.with_suffix(".part")
        with disk_errors(self._path.parent, "mend the evidence"):
            part.write_bytes(whole)
            part.replace(self._path)


@functools.cache
def this_tool() -> StatementTool:
    """What runs here, by content: a version says nothing about a file that was edited."""
    files = (path for path in sorted(_PACKAGE.rglob("*")) if path.suffix in _SHIPPED and path.is_file())
    # An entry of the catalogue is what the tool is used for, no part of it: adding one leaves the tool what it was.
    files = (path for path in files if _ENTRIES not in path.parents[1:])
    digests = {path.relative_to(_PACKAGE).as_posix(): _sha256(path) for path in files}
    commit = _git("rev-parse", "HEAD")
    changed = (
        None
        if commit is None
        else bool(_git("status", "--porcelain", "--", str(_PACKAGE), f":(exclude,top,glob)**/{_ENTRIES.name}/*/**"))
    )
    return StatementTool(__version__, _json.digest(digests), commit, changed)


def _git(*words: str) -> str | None:
    """None where the package is not part of a working tree."""
    try:
        found = subprocess.run(
            ["git", "-C", str(_PACKAGE), *words], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() if found.returncode == 0 else None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _form(subject: Sequence[StatementSubject], predicate: SupportPredicate) -> dict[str, Any]:
    return {
        "_type": STATEMENT_TYPE,
        "subject": _json.plain(tuple(subject)),
        "predicateType": PREDICATE_TYPE,
        "predicate": _json.plain(predicate),
    }


def _id(form: Mapping[str, Any]) -> str:
    return _json.digest({name: value for name, value in form.items() if name != "id"})


def _require_readable(path: Path) -> None:
    try:
        size = path.stat().st_size
    except OSError:
        return  # whoever opens it says why
    if size > _MOST_BYTES:
        raise InputError(
            f"{path} is too large to be evidence",
            cause=f"it has {size / 1e6:,.0f} MB, and a statement takes some kilobytes",
            fix="run it into a new folder",
        )


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while line := file.readline(_LONGEST_LINE):
                yield line
    except FileNotFoundError:
        return
    except OSError as error:
        raise InputError(f"{path} cannot be read", cause=error.strerror or str(error), fix="check the path") from None
