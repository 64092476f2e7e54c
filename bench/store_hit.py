"""What a hit costs: `get` and a link-materialise of an artifact of 1 GB, against the target of 20 ms."""

from __future__ import annotations

import hashlib
import os
import statistics
import tempfile
import time
from pathlib import Path

from modelwright import _json
from modelwright.store import Key, Produced, Store, stage_key

TARGET_MS = 20.0
FILES = 4
FILE_BYTES = 256 * 1024 * 1024
ROUNDS = 15


def produce(folder: Path) -> Produced:
    """Four files of real bytes (no holes), each different."""
    for number in range(FILES):
        block = os.urandom(1 << 20)
        with (folder / f"part {number}.data").open("wb") as stream:
            for _ in range(FILE_BYTES >> 20):
                stream.write(block)
    return Produced({f"part {number}.data": f"part{number}" for number in range(FILES)})


def run() -> dict[str, object]:
    """Times in milliseconds; `cold` is a new process's view (a new Store), `warm` the same Store again."""
    key = stage_key(stage="bench", version="1", libraries={}, inputs={}, params={"bytes": FILES * FILE_BYTES})
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".store_hit-") as place:
        root, out = Path(place) / "store", Path(place) / "out"
        with Store(root) as store:
            start = time.perf_counter()
            artifact = store.once(key, produce).artifact
            made_s = time.perf_counter() - start
            warm = [_hit(store, key, out) for _ in range(ROUNDS)]
        cold = [_cold_hit(root, key, out) for _ in range(ROUNDS)]
        start = time.perf_counter()
        for file in artifact.files:
            with artifact.path_of(file.name).open("rb") as stream:
                hashlib.file_digest(stream, "sha256")
        hash_s = time.perf_counter() - start
    return {
        "artifact_bytes": artifact.size,
        "warm_ms": round(statistics.median(warm), 2),
        "warm_max_ms": round(max(warm), 2),
        "cold_ms": round(statistics.median(cold), 2),
        "cold_max_ms": round(max(cold), 2),
        "rehash_ms": round(hash_s * 1000, 1),
        "produce_and_store_s": round(made_s, 2),
        "target_ms": TARGET_MS,
        "met": max(statistics.median(warm), statistics.median(cold)) < TARGET_MS,
    }


def _hit(store: Store, key: Key, out: Path) -> float:
    start = time.perf_counter()
    artifact = store.get(key)
    assert artifact is not None
    store.materialize(artifact, out, link=True)
    return (time.perf_counter() - start) * 1000


def _cold_hit(root: Path, key: Key, out: Path) -> float:
    start = time.perf_counter()
    with Store(root) as store:
        _hit(store, key, out)
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    print(_json.dumps(run()))
