"""Kill one operation before its 1st, 2nd, … step, until it ends alive; check the store each time."""

import json
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from modelwright.store import Produced, Store, _fs, _gc, stage_key

base, scenario = Path(sys.argv[1]), sys.argv[2]
root, out = base / "store", base / "out" / "model"
FILES = {
    "model.onnx": b"graph",
    "weights/model.data": os.urandom(3 << 20),
    "again.data": b"graph",
    "empty": b"",
}
OLD = {"old.onnx": b"older", "old.data": b"left over"}
KEY = stage_key(stage="export", version="1", libraries={}, inputs={}, params="new")
OLD_KEY = stage_key(stage="export", version="1", libraries={}, inputs={}, params="old")
logging.disable()


def write(folder: Path, files: dict[str, bytes]) -> Produced:
    for name, data in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(data)
    return Produced(dict.fromkeys(files, "file"))


def once(store: Store) -> None:
    artifact = store.once(KEY, lambda folder: write(folder, FILES)).artifact
    assert {f.name: artifact.path_of(f.name).read_bytes() for f in artifact.files} == FILES


def reuse(store: Store) -> None:
    whole = store.once(OLD_KEY, lambda folder: write(folder, FILES)).artifact
    kept = tuple(file for file in whole.files if file.name != "empty")

    def produce(folder: Path) -> Produced:
        return replace(write(folder, {"empty": b""}), reused=kept)

    artifact = store.once(KEY, produce).artifact
    assert {f.name: artifact.path_of(f.name).read_bytes() for f in artifact.files} == FILES


def put(store: Store) -> None:
    source = base / "source"
    if not source.exists():
        source.mkdir()
        write(source, FILES)
    store.put(source, key=KEY, roles=dict.fromkeys(FILES, "file"))


def record(store: Store) -> None:
    """A record that was kept before the kill is found whole by what it is about; it is never there in part."""
    for entry in store.records("perf", tags={"model": "m%"}):
        assert store.record_path(entry).read_bytes() == b"found"
    store.keep_record("perf", KEY.digest, b"found", label="m", tags={"model": ["m.onnx"], "target": ["cpu"]})
    assert [entry.tags["target"] for entry in store.records("perf", tags={"model": "m%"})] == [("cpu",)]


def gc(store: Store) -> None:
    """Each entry and each file in a transaction of its own: a kill comes between any two of them."""
    _gc._BATCH, _gc._TURN_S, _gc._PAUSE_S = 1, 0.0, 0.0
    store.gc(0, grace_s=0)


def materialize(store: Store, link: bool = False) -> None:
    artifact = store.get(KEY)
    assert artifact is not None
    store.materialize(artifact, out, link=link)


def link(store: Store) -> None:
    materialize(store, link=True)


def beside(store: Store) -> None:
    artifact = store.get(KEY)
    assert artifact is not None
    store.materialize(artifact, out, overwrite=True)


def discard(store: Store) -> None:
    assert store.get(KEY) is None


def nothing() -> None:
    pass


def with_entries() -> None:
    with Store(root) as store:
        once(store)
        store.once(OLD_KEY, lambda folder: write(folder, OLD))


def with_folder() -> None:
    with_entries()
    with Store(root) as store:
        store.materialize(store.once(OLD_KEY, lambda folder: write(folder, OLD)).artifact, out)


def with_theirs() -> None:
    with_folder()
    (out / "theirs").write_bytes(b"dear")


def with_damage() -> None:
    with_entries()
    with Store(root) as store:
        path = store.get(KEY).path_of("model.onnx")
        path.chmod(0o644)
        path.write_bytes(b"grAph")


def tree(folder: Path) -> dict[str, bytes]:
    found = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    found.pop(".wright-artifact.json", None)
    return found


SCENARIOS: dict[str, tuple[Callable[[], None], Callable[[Store], None]]] = {
    "once": (nothing, once),
    "reuse": (nothing, reuse),
    "put": (nothing, put),
    "record": (nothing, record),
    "gc": (with_entries, gc),
    "discard": (with_damage, discard),
    "materialize": (with_folder, materialize),
    "link": (with_folder, link),
    "beside": (with_theirs, beside),
}


def check_after_kill(store: Store) -> None:
    if scenario != "discard":
        report = store.verify()
        assert report.clean, report
        assert scenario == "gc" or not report.orphans, report
        found = store.get(KEY) if scenario != "record" else None
        assert found is None or {f.name: found.path_of(f.name).read_bytes() for f in found.files} == FILES
    assert not list((root / "tmp").iterdir()), "temp files of a dead process"
    if scenario in ("materialize", "link"):
        assert not out.exists() or tree(out) in (OLD, FILES), "a half-written folder is visible"
    if scenario == "beside":
        assert (out / "theirs").read_bytes() == b"dear"
        assert (out / ".wright-artifact.json").exists()


def check_at_end(store: Store) -> None:
    report = store.verify()
    assert report.clean, report
    assert scenario == "discard" or not report.orphans, report
    if scenario in ("materialize", "link"):
        assert tree(out) == FILES
        assert [path.name for path in out.parent.iterdir()] == ["model"], "something was left beside it"
    if scenario == "beside":
        assert tree(out) == {**FILES, "theirs": b"dear"}
    if scenario in ("once", "reuse", "put"):
        assert store.get(KEY) is not None
    if scenario == "gc":
        assert not store.entries()
        assert not list((root / "blobs").glob("*/*"))


def killed_at(number: int, act: Callable[[Store], None]) -> str | None:
    """Runs the operation in a fork; the name of the step before which it was killed, or None if it ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        left = [number]

        def hook(step: str) -> None:
            left[0] -= 1
            if left[0] == 0:
                os.write(writer, step.encode())
                os.kill(os.getpid(), signal.SIGKILL)

        _fs.hook = hook
        with Store(root) as store:
            act(store)
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reader) as pipe:
        step = pipe.read()
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return step
    assert os.WEXITSTATUS(status) == 0, f"the operation failed at step {number}"
    return None


prepare, act = SCENARIOS[scenario]
steps = []
while True:
    for folder in (root, base / "out"):
        shutil.rmtree(folder, ignore_errors=True)
    prepare()
    step = killed_at(len(steps) + 1, act)
    with Store(root) as store:
        check_after_kill(store)
        act(store)
        check_at_end(store)
    if step is None:
        break
    steps.append(step)
print(json.dumps(steps))
