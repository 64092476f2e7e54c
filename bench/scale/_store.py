"""A store of many entries."""

from __future__ import annotations

import hashlib
import os
import random
import time
from pathlib import Path

from bench.scale._places import Place, Row, place
from modelwright.store import Entry, FileEntry, Key, Produced, Store, stage_key
from modelwright.store._manifest import make_manifest

_LOOKUPS = 1000
_AT_ONCE = 5000


def store(most: int = 100_000) -> Row:
    """The same questions to a tenth of the entries and to all of them, as CPU time; lookups in one process."""
    sizes = {count: _asked(count) for count in (most // 10, most)}
    few, many = sizes[most // 10], sizes[most]
    growth = {f"{name}_growth": round(many[f"{name}_cpu_s"] / few[f"{name}_cpu_s"], 1) for name in ("verify", "prune")}
    return {
        **{str(count): row for count, row in sizes.items()},
        "lookup_ms": many["lookup_ms"], "ls_cpu_s": many["ls_cpu_s"], **growth, "lock_files": many["lock_files"],
        "limits": {"lookup_ms": 1.0, "ls_cpu_s": 2.0, "verify_growth": 12, "prune_growth": 12, "lock_files": 0},
    }  # fmt: skip


def _asked(count: int) -> Row:
    with place() as here:
        root = here.folder / "home" / "store"
        keys = _filled(root, count)
        _worked(root, here.folder / "out")
        # A file that never reached the disk is removed for a sixth of the CPU time that one on it takes, and of a small
        # store none would have reached it: as a store of yesterday, both are there.
        os.sync()
        return {
            "lookup_ms": _lookup_ms(root, random.Random(0).sample(keys, _LOOKUPS)),
            "ls_cpu_s": round(here.wright("cache", "ls").cpu_s, 2),
            "verify_cpu_s": round(here.wright("cache", "verify").cpu_s, 2),
            "prune_cpu_s": round(_pruned(here), 2),
            "lock_files": sum(1 for path in (root / "locks").rglob("*.lock") if path.name != "journal.lock"),
        }


def _filled(root: Path, count: int) -> list[Key]:
    """As `Store.put` would have done it, in a few transactions: its own care for power cuts takes an hour."""
    keys = [stage_key(stage="made", version="1", libraries={}, inputs={}, params={"n": n}) for n in range(count)]
    with Store(root) as opened:
        session = opened._session()
        for start in range(0, count, _AT_ONCE):
            with session.journal.write("fill"):
                for number in range(start, min(start + _AT_ONCE, count)):
                    file = _blob(session.blobs.path, b"%d" % number)
                    entry = FileEntry("model.onnx", "model", *file)
                    top = _blob(session.blobs.path, make_manifest([entry], {"number": number}).encode())
                    now = time.time() - 40 * 86400
                    found = Entry(keys[number], f"made {number}", top[0], file[1], now, now, ("model",), {})
                    session.journal.add_entry(found, dict([file, top]))
    return keys


def _blob(path_of, data: bytes) -> tuple[str, int]:  # type: ignore[no-untyped-def]
    digest = hashlib.sha256(data).hexdigest()
    path_of(digest).parent.mkdir(parents=True, exist_ok=True)
    path_of(digest).write_bytes(data)
    return digest, len(data)


def _worked(root: Path, out: Path) -> None:
    """Stages that were run and delivered: each took a lock, and each folder another."""
    with Store(root) as opened:
        for number in range(20):
            key = stage_key(stage="worked", version="1", libraries={}, inputs={}, params={"n": number})
            opened.materialize(opened.once(key, _produced).artifact, out / str(number))


def _produced(folder: Path) -> Produced:
    (folder / "model.onnx").write_bytes(os.urandom(8))
    return Produced({"model.onnx": "model"})


def _lookup_ms(root: Path, keys: list[Key]) -> float:
    """A hit as a build has it: found, its manifest and its content checked."""
    with Store(root) as opened:
        opened.get(keys[0])
        began = time.process_time()
        assert all(opened.get(key) is not None for key in keys)
        took = time.process_time() - began
    return round(1000 * took / len(keys), 3)


def _pruned(here: Place) -> float:
    """Everything goes: nothing was used for forty days."""
    marks = here.folder / "home" / "store" / "marks"
    for path in marks.iterdir():
        os.utime(path, (0, 0))
    return here.wright("cache", "prune", "--older-than", "30d").cpu_s
