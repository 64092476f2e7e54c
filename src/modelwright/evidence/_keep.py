"""Records in the store: kept, found by the beginning of an id, listed by what they are about."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright._json import loads
from modelwright._output import sealed
from modelwright.errors import InputError, UsageError
from modelwright.evidence._record import Payloads, Record, parse_record
from modelwright.models import model_files, onnx_of
from modelwright.store import Entry, Store

SHOWN = 12
"""Letters of an id that people are shown."""
_SHORTEST = 4


@dataclass(frozen=True)
class Wanted:
    """Which records to list. `model` is a file or folder (found by content, whatever it is called now) or part of a
    name; `target` is the beginning of one; `since` is a day or a moment."""

    model: str | None = None
    target: str | None = None
    kind: str | None = None
    since: datetime | None = None


@dataclass(frozen=True)
class RecordLine:
    """One line of the listing."""

    id: str
    kind: str
    made_at: str
    models: tuple[str, ...]
    targets: tuple[str, ...]
    verdict: str | None
    call: str | None
    size: int


def keep_record(store: Store, record: Record[Any]) -> None:
    """Raises StoreError where the store cannot be written; the record itself is none the worse."""
    tags = {
        "model": [model.name for model in record.models],
        "file": [file.sha256 for model in record.models for file in model.files],
        "target": record.targets,
        "verdict": [record.verdict.word] if record.verdict else [],
        "call": [" ".join(record.call)] if record.call else [],
    }
    label = ", ".join(dict.fromkeys(Path(model.name).name for model in record.models))
    store.keep_record(record.kind, record.id, sealed(record.text), label=label, tags=tags)


def list_records(store: Store, wanted: Wanted | None = None) -> tuple[RecordLine, ...]:
    """Newest first."""
    wanted = wanted or Wanted()
    since = wanted.since.timestamp() if wanted.since else 0.0
    tags = {**_model_tags(wanted.model), **({"target": f"{_literal(wanted.target)}%"} if wanted.target else {})}
    return tuple(_line(entry) for entry in store.records(wanted.kind, since=since, tags=tags))


def find_record(store: Store, text: str) -> Entry:
    """The record whose id begins so."""
    found = [entry for entry in store.records() if entry.key.digest.startswith(text)]
    if len(found) == 1 and len(text) >= _SHORTEST:
        return found[0]
    if found:
        some = ", ".join(f"{entry.key.digest[:SHOWN]} ({_line(entry).kind})" for entry in found[:5])
        raise UsageError(
            f"'{text}' names {len(found)} records",
            cause=f"they are {some}{', …' if len(found) > 5 else ''}",
            fix="give more of the id",
        )
    raise UsageError(
        f"there is no record '{text}'",
        cause="it is no file here, and no id of a record in the store begins so",
        fix="`wright show --list` lists them",
    )


def read_record(text: str | Path, store: Store, payloads: Payloads) -> Record[Any]:
    """A record by the name of its file, or by the beginning of its id."""
    path = record_file(text, store)
    name = str(text) if Path(text) == path else f"the record {text}"
    return parse_record(_bytes(path), name, payloads)


def record_ids(*found: Path | Record[Any] | None) -> tuple[str, ...]:
    """Of those that have one: a file from before there were records has none."""
    ids = (_id(one) if isinstance(one, Path) else one.id for one in found if one is not None)
    return tuple(one for one in ids if one is not None)


def _id(path: Path) -> str | None:
    try:
        return str(loads(_bytes(path))["record_id"])
    except (ValueError, TypeError, KeyError):
        return None


def record_file(text: str | Path, store: Store) -> Path:
    """Where a record is: the file of that name, or in the store the one whose id begins so."""
    path = Path(text)
    if path.exists():
        return path
    if isinstance(text, Path) or path.name != text or path.suffix:
        raise InputError(f"{text} does not exist", cause="no such file", fix="check the path")
    entry = find_record(store, text)
    found = store.record_path(entry)
    if found is None:
        raise InputError(
            f"the record {entry.key.digest[:SHOWN]} is damaged",
            cause="its content is not what its name says",
            fix="run the command again; `wright cache verify` looks for more damage",
        )
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read", cause=error.strerror or str(error), fix="check the path") from None


def _model_tags(model: str | None) -> dict[str, str]:
    if model is None:
        return {}
    if Path(model).exists():
        return {"file": model_files(onnx_of(model))[0].sha256}
    return {"model": f"%{_literal(model)}%"}


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _line(entry: Entry) -> RecordLine:
    def first(name: str) -> str | None:
        return next(iter(entry.tags.get(name, ())), None)

    return RecordLine(
        id=entry.key.digest,
        kind=entry.key.stage.partition(":")[2],
        made_at=datetime.fromtimestamp(entry.created, UTC).isoformat(timespec="seconds"),
        models=entry.tags.get("model", ()),
        targets=entry.tags.get("target", ()),
        verdict=first("verdict"),
        call=first("call"),
        size=entry.size,
    )
