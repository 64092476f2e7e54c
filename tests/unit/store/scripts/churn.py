"""Random puts, hits, leases, links and collections for some seconds; every broken promise ends the script."""

import json
import logging
import random
import sys
import time
from collections import Counter
from pathlib import Path

from modelwright.errors import StoreError
from modelwright.store import Artifact, Key, Produced, Store, stage_key

root, seed, seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
dice, done, warnings = random.Random(seed), Counter(), []


class Keep(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        warnings.append(record.getMessage())


logging.getLogger("modelwright.store").addHandler(Keep())


def key(number: int) -> Key:
    return stage_key(stage="churn", version="1", libraries={}, inputs={}, params=number)


def files(number: int) -> dict[str, bytes]:
    """Neighbours share one file, so that content has several users."""
    return {"own": b"%d" % number * 300, "shared": b"%d" % (number // 2) * 500, "empty": b""}


def produce(folder: Path, number: int) -> Produced:
    for name, data in files(number).items():
        (folder / name).write_bytes(data)
    return Produced(dict.fromkeys(files(number), "data"))


def check(artifact: Artifact, number: int) -> None:
    for name, data in files(number).items():
        assert artifact.path_of(name).read_bytes() == data, f"wrong content in {name} of {number}"


def lease(store: Store, number: int) -> None:
    artifact = store.once(key(number), lambda folder: produce(folder, number)).artifact
    try:
        held = store.lease(artifact)
        held.__enter__()
    except StoreError:  # collected between the hit and the lease: allowed, and said
        done["too late"] += 1
        return
    for _ in range(3):
        check(artifact, number)
        found = store.get(key(number))
        assert found is not None, f"leased entry {number} is lost"
        time.sleep(dice.random() / 200)
    check(artifact, number)
    held.__exit__(None, None, None)


def link(store: Store, number: int) -> None:
    artifact = store.get(key(number))
    if artifact is None:
        return
    folder = root.parent / f"out {dice.randrange(3)}"
    try:
        store.materialize(artifact, folder, link=dice.random() < 0.5)
    except StoreError as error:
        if "damaged or was removed" not in error.cause:
            raise
        done["too late"] += 1


def collect(store: Store, number: int) -> None:
    store.gc(dice.choice([0, 5_000, 20_000]), grace_s=0)


def make(store: Store, number: int) -> None:
    store.once(key(number), lambda folder: produce(folder, number))


ACTIONS = {make: 5, lease: 4, link: 3, collect: 2}

with Store(root) as store:
    end = time.monotonic() + seconds
    # On a busy machine the seconds are over before much has happened: each kind four times at least.
    while time.monotonic() < end or min(done[action.__name__] for action in ACTIONS) < 4:
        action = dice.choices(list(ACTIONS), list(ACTIONS.values()))[0]
        action(store, dice.randrange(12))
        done[action.__name__] += 1
assert not warnings, warnings
print(json.dumps(done))
