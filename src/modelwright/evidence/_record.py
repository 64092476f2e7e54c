"""A record: one answer, with everything somebody needs who reads it later and elsewhere.

Its file is the document that `--json` prints, with a head in front: who found it, about which files, in which
circumstances (and the answer itself, where the document shows only a part of it). The id is the digest of all that, so
a record that was changed is known.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from modelwright import __version__, _json
from modelwright._dataclass import dataclass
from modelwright._output import SEAL, is_sealed
from modelwright._typed import typed
from modelwright.errors import InputError
from modelwright.evidence._environment import Environment
from modelwright.models import FileDigest
from modelwright.vocabulary import Result

P = TypeVar("P")
Payloads = Callable[[str], type | None]
"""Of which type the answer of a kind is; None for a kind that is not known."""
SCHEMA_VERSION = 1
_HEAD = ("schema_version", "command", "tool_version", "record_id", "record", "seal")
_UPGRADE = "upgrade modelwright, or run the command again"


@dataclass(frozen=True)
class RecordedModel:
    """A model it is about: what it was in this answer (`base`, `reference`), as the user named it, by content."""

    role: str
    name: str
    files: tuple[FileDigest, ...]


@dataclass(frozen=True)
class RecordedData:
    """Samples it rests on. `digest` is None where there was nothing to hash: made-up inputs follow from their seed."""

    source: str
    digest: str | None


@dataclass(frozen=True)
class RecordedVerdict:
    """A word, and the version of the function that gave it."""

    word: str
    by: str


@dataclass(frozen=True, kw_only=True)
class RecordHead:
    """Everything but the answer. `protocol` goes up when the same numbers would have to be read differently; `call` is
    what was typed; `refs` are the ids of records that this one rests on; `on` is the machine of a cluster that found
    it, None where this one did."""

    kind: str
    protocol: str
    made_at: str
    call: tuple[str, ...]
    models: tuple[RecordedModel, ...]
    targets: tuple[str, ...]
    data: tuple[RecordedData, ...]
    parameters: Mapping[str, Any]
    verdict: RecordedVerdict | None
    environment: Environment
    refs: tuple[str, ...] = ()
    on: str | None = None


@dataclass(frozen=True, kw_only=True)
class Record(RecordHead, Generic[P]):
    """`payload` is the answer, with every sample. `text` is the whole as it is kept."""

    id: str
    payload: P
    text: str = field(repr=False, compare=False)


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def make_record(head: RecordHead, payload: P) -> Record[P]:
    shown, whole = _forms(payload)
    assert not set(_HEAD) & set(shown), "the answer has a field that the file needs"
    document = {
        "schema_version": SCHEMA_VERSION,
        "command": head.kind,
        "tool_version": __version__,
        "record": {**_json.plain(head), "payload": whole},
        **shown,
    }
    found, text = _text(document)
    return _record(head, found, payload, text)


def _forms(payload: object) -> tuple[dict[str, Any], Any]:
    """What `--json` shows of an answer, and the whole of it where that is more."""
    if not isinstance(payload, Result):
        return _json.plain(payload), None
    same = type(payload).content is Result.content
    return payload.content(), None if same else payload.whole()


def _text(document: Mapping[str, Any]) -> tuple[str, str]:
    """The id of a document, and the document with it."""
    body = _json.canonical(document)
    found = hashlib.sha256(body).hexdigest()
    return found, f'{{"record_id":"{found}","seal":"{SEAL}",{body.decode()[1:]}\n'


def parse_record(data: bytes, name: str, payloads: Payloads) -> Record[Any]:
    """The record in these bytes, typed."""
    try:
        if not is_sealed(data):
            raise ValueError("it was changed since it was written, or wright did not write it")
        document = _json.loads(data)
        if not isinstance(document, dict) or document.get("schema_version", 0) < 1:
            raise ValueError("it holds no record")
        _refuse_foreign(document, name, payloads)
        return _parsed(document, payloads)
    except (ValueError, TypeError, KeyError) as error:
        raise _unreadable(name, str(error).splitlines()[0]) from None


def _refuse_foreign(document: Mapping[str, Any], name: str, payloads: Payloads) -> None:
    """What another version wrote is no damage."""
    version, kind, writer = document["schema_version"], document.get("command"), document.get("tool_version")
    if version > SCHEMA_VERSION or payloads(str(kind)) is None:
        what = f"format {version}" if version > SCHEMA_VERSION else f"the answer of '{kind}'"
        raise InputError(
            f"{name} cannot be read by this modelwright",
            cause=f"{what} is unknown here (modelwright {writer} wrote it, this is {__version__})",
            fix=_UPGRADE,
        )
    if "record" not in document:
        raise InputError(
            f"{name} was saved before results were records",
            cause=f"modelwright {writer} wrote it without saying where and how it was found",
            fix=f"run `wright {kind}` again; compare can go on from it with `retry`",
        )


def _parsed(document: dict[str, Any], payloads: Payloads) -> Record[Any]:
    said = document.pop("record_id")
    document.pop("seal")
    found, text = _text(document)
    if said != found:
        raise ValueError("its content is not what its id says")
    head = typed(RecordHead, document["record"])
    shown = {name: value for name, value in document.items() if name not in _HEAD}
    answer = document["record"].get("payload") or shown
    return _record(head, found, restored_answer(payloads(head.kind) or dict, answer), text)


def restored_answer(kind: type, answer: Mapping[str, Any]) -> Any:
    """Of its whole, typed."""
    own = kind.restored(answer) if issubclass(kind, Result) else None
    return typed(kind, answer) if own is None else own


def _record(head: RecordHead, found: str, payload: P, text: str) -> Record[P]:
    known = {item.name: getattr(head, item.name) for item in fields(RecordHead)}
    return Record(**known, id=found, payload=payload, text=text)


def _unreadable(name: str, why: str) -> InputError:
    return InputError(f"{name} is no record that can be read", cause=why, fix=_UPGRADE)
