"""The store: content-addressed files, tree manifests and a journal. See `Store`."""

from modelwright.store._digests import file_digest, remembers, unwritten
from modelwright.store._key import Key, stage_key
from modelwright.store._ledger import Ledger, LedgerEvent
from modelwright.store._names import MARKER as DELIVERY_NOTE
from modelwright.store._names import check_names
from modelwright.store._session import is_beside_content
from modelwright.store._store import Store
from modelwright.store._types import (
    Artifact,
    Damage,
    Entry,
    FileEntry,
    GcReport,
    JsonValue,
    OnceOutcome,
    Produced,
    StoreStats,
    VerifyReport,
    Waiting,
    content_at,
    content_place,
)

__all__ = [
    "DELIVERY_NOTE",
    "Artifact",
    "Damage",
    "Entry",
    "FileEntry",
    "GcReport",
    "JsonValue",
    "Key",
    "Ledger",
    "LedgerEvent",
    "OnceOutcome",
    "Produced",
    "Store",
    "StoreStats",
    "VerifyReport",
    "Waiting",
    "check_names",
    "content_at",
    "content_place",
    "file_digest",
    "is_beside_content",
    "remembers",
    "stage_key",
    "unwritten",
]
