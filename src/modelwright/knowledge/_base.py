"""The knowledge base: findings that came with the package, and the user's own, written down event by event."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from modelwright import _json
from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright._typed import MisfitError, typed
from modelwright.errors import InputError, UsageError, did_you_mean
from modelwright.evidence import now
from modelwright.home import findings_file
from modelwright.knowledge._observe import Evidence
from modelwright.knowledge._specimens import SPECIMENS
from modelwright.knowledge._standing import standing
from modelwright.knowledge._types import KbFinding, Standing, Status
from modelwright.knowledge._words import misspelt
from modelwright.store import Store

if TYPE_CHECKING:
    import filelock
else:
    filelock = lazy("filelock")

SHIPPED = ("ours.toml", "imported.toml", "lessons.toml", "support.toml", "families.toml")


@dataclass(frozen=True)
class KbEvent:
    """One line of the user's journal. `added` brings a finding, `observed` a record about one, `decided` a status with
    who decided and why. Nothing is ever taken back: what was wrong is retracted."""

    event: Literal["added", "observed", "decided"]
    at: str
    id: str
    finding: KbFinding | None = None
    record: str | None = None
    status: Status | None = None
    by: str | None = None
    reason: str | None = None


class KnowledgeBase:
    """`store` has the records of the user's own evidence; `folder` is where the journal is."""

    def __init__(
        self, store: Store | None = None, *, folder: Path | None = None, evidence: Evidence | None = None
    ) -> None:
        self._journal = folder / findings_file().name if folder is not None else findings_file()
        self.evidence = evidence or Evidence(store)
        self.shipped = {one.id: one for one in shipped_findings()}
        self.findings: dict[str, KbFinding] = dict(self.shipped)
        for event in self.events():
            self._take(event)

    def standings(self) -> tuple[Standing, ...]:
        return tuple(self.standing(name) for name in self.findings)

    def standing(self, name: str) -> Standing:
        found = self.findings.get(name)
        if found is None:
            raise UsageError(
                f"there is no finding '{name}'",
                cause=f"the knowledge base has {len(self.findings)} others",
                fix=did_you_mean(name, self.findings) or "`wright kb list` shows them",
            )
        return standing(found, self.evidence, shipped=name in self.shipped)

    def add(self, finding: KbFinding) -> None:
        """A new finding, spelt right; one that is there already is not replaced."""
        if wrong := misspelt(finding, None, SPECIMENS):
            raise UsageError(f"the finding '{finding.id}' cannot be kept", cause=wrong[0], fix="spell it right")
        if finding.id in self.findings:
            raise UsageError(
                f"there is a finding '{finding.id}' already",
                cause=self.findings[finding.id].says,
                fix="`wright kb verify` adds evidence to it; another claim needs another id",
            )
        self._append(KbEvent("added", now(), finding.id, finding=finding))

    def observe(self, name: str, record: str) -> None:
        if record not in self.standing(name).finding.evidence:
            self._append(KbEvent("observed", now(), name, record=record))

    def decide(self, name: str, status: Status, by: str, reason: str) -> None:
        """A decision that nobody took, or for no reason, is none."""
        self.standing(name)
        for what, said in (("by", by), ("reason", reason)):
            if not said.strip():
                raise UsageError(
                    f"`{what}` is empty", cause="who decided and why is kept with a decision", fix=f"say `{what}`"
                )
        self._append(KbEvent("decided", now(), name, status=status, by=by, reason=reason))

    def events(self) -> Iterator[KbEvent]:
        """A line that a kill cut short is not there; any other line that cannot be read is an error."""
        if not self._journal.is_file():
            return
        for number, line in enumerate(self._journal.read_bytes().splitlines(keepends=True), 1):
            if line.endswith(b"\n"):
                yield _event(line, f"{self._journal.name} line {number}")

    def history(self, name: str) -> tuple[KbEvent, ...]:
        return tuple(event for event in self.events() if event.id == name)

    def _take(self, event: KbEvent) -> None:
        before = self.findings.get(event.id)
        if event.finding is not None:
            self.findings.setdefault(event.id, event.finding)
        elif before is not None and event.record is not None:
            known = (*before.evidence, event.record)
            self.findings[event.id] = replace(before, evidence=tuple(dict.fromkeys(known)))
        elif before is not None and event.status is not None:
            self.findings[event.id] = replace(before, status=event.status, reason=f"{event.reason} ({event.by})")

    def _append(self, event: KbEvent) -> None:
        self._journal.parent.mkdir(parents=True, exist_ok=True)
        said = {key: value for key, value in _json.plain(event).items() if value is not None}
        line = json.dumps(said, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode() + b"\n"
        # Without the lock a line that another process is writing would be taken for one that a kill cut short.
        with filelock.FileLock(f"{self._journal}.lock"), self._journal.open("ab") as file:
            file.truncate(_whole(self._journal))
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._take(event)


def _whole(path: Path) -> int:
    """Bytes of whole lines: what a kill left of one must not become the beginning of the next."""
    return path.read_bytes().rfind(b"\n") + 1


@functools.cache
def shipped_findings() -> tuple[KbFinding, ...]:
    return tuple(one for name in SHIPPED for one in _table(name))


def _table(name: str) -> Iterator[KbFinding]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    table = tomllib.loads(text)
    origin = table.pop("origin")
    for key, row in table.items():
        yield read_finding({"id": key, "origin": origin, **row}, f"{name}: {key}")


def read_finding(form: Mapping[str, Any], where: str) -> KbFinding:
    """Strict: a key that nobody knows is an error, not a remark."""
    with _explained(where):
        return typed(KbFinding, form, strict=True)


def _event(line: bytes, where: str) -> KbEvent:
    with _explained(where):
        return typed(KbEvent, _json.loads(line), strict=True)


@contextlib.contextmanager
def _explained(where: str) -> Iterator[None]:
    try:
        yield
    except MisfitError as error:
        last: Sequence[str | int] = error.place[-1:]
        raise InputError(
            f"{where}: {error}",
            cause=f"known keys are {', '.join(error.known)}" if error.known else error.why,
            fix=(did_you_mean(str(last[0]), error.known) if last and error.known else None) or "write it otherwise",
        ) from None
    except ValueError as error:
        raise InputError(f"{where} cannot be read", cause=str(error), fix="mend or remove the line") from None
