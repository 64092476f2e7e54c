"""Records in the store: found again by what they are about, never lost to a prune, said when they cannot be kept."""

import errno
import os
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from modelwright.errors import InputError, StoreError, UsageError
from modelwright.evidence import (
    RecordedModel,
    RecordedVerdict,
    RecordHead,
    Wanted,
    find_record,
    keep_record,
    list_records,
    make_record,
    read_environment,
    read_record,
)
from modelwright.models import FileDigest
from modelwright.store import Store, _fs

PAYLOADS = {"perf": dict, "eval": dict}.get
ENVIRONMENT = read_environment()


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store") as opened:
        yield opened


def a_record(number=1, *, kind="perf", model="m.onnx", target="cpu", sha256="a" * 64):
    head = RecordHead(
        kind=kind,
        protocol=f"{kind}-1",
        made_at="2026-01-01T00:00:00+00:00",
        call=("wright", kind, model),
        models=(RecordedModel("model", model, (FileDigest(model, sha256, 1),)),),
        targets=(target,),
        data=(),
        parameters={},
        verdict=RecordedVerdict("pass", "paired-1") if kind == "eval" else None,
        environment=ENVIRONMENT,
    )
    return make_record(head, {"number": number})


def test_a_record_is_read_back_by_the_beginning_of_its_id(store):
    record = a_record()
    keep_record(store, record)
    assert read_record(record.id[:8], store, PAYLOADS) == record


def test_records_are_listed_newest_first_and_by_what_they_are_about(store):
    for number, words in enumerate([{}, {"model": "other.onnx"}, {"kind": "eval"}, {"target": "qnn-npu:soc=60"}]):
        keep_record(store, a_record(number, **words))

    def found(**wanted):
        return [(line.kind, line.models[0], line.targets[0]) for line in list_records(store, Wanted(**wanted))]

    assert found(target="qnn-npu") == [("perf", "m.onnx", "qnn-npu:soc=60")]
    assert found(kind="eval") == [("eval", "m.onnx", "cpu")]
    assert found(model="other") == [("perf", "other.onnx", "cpu")]
    assert found(model="_ther") == []
    assert [kind for kind, _, _ in found()] == ["perf", "eval", "perf", "perf"]
    assert found(since=datetime.now(UTC) + timedelta(hours=1)) == []
    assert list_records(store, Wanted(kind="eval"))[0].verdict == "pass"


def test_an_id_that_is_not_unique_or_not_there_is_an_error_with_names(store):
    records = [a_record(number) for number in range(40)]
    for record in records:
        keep_record(store, record)
    with pytest.raises(UsageError) as caught:
        find_record(store, records[0].id[:1])
    assert records[0].id[:12] in caught.value.cause or "…" in caught.value.cause
    with pytest.raises(UsageError, match="no record 'nothing'"):
        find_record(store, "nothing")


def test_prune_leaves_records_unless_they_are_asked_for(store):
    keep_record(store, a_record())
    report = store.gc(0, grace_s=-1)
    assert (report.records, report.removed) == (1, ())
    assert len(list_records(store)) == 1
    assert store.prune(older_than_s=-1, records=True).records == 0
    assert list_records(store) == ()
    assert store.verify().orphans == ()


def test_a_damaged_record_is_found_by_verify_and_refused(store):
    record = a_record()
    keep_record(store, record)
    entry = find_record(store, record.id)
    blob = store.get(entry.key).path("record")
    blob.chmod(0o600)
    blob.write_bytes(b"x" * entry.size)
    with pytest.raises(InputError, match="damaged"):
        read_record(record.id, store, PAYLOADS)
    keep_record(store, record)
    assert read_record(record.id, store, PAYLOADS) == record


def test_a_disk_that_fails_at_any_step_costs_the_record_and_nothing_else(tmp_path, monkeypatch):
    """`step` is where a kill or a full disk hits; after each the store is whole, with the record or without it."""
    failures = 0
    for number in range(1, 200):
        count = 0

        def hook(_, number=number):
            nonlocal count
            count += 1
            if count >= number:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        root = tmp_path / str(number)
        with Store(root) as store:
            monkeypatch.setattr(_fs, "hook", hook)
            try:
                keep_record(store, a_record())
            except StoreError:
                failures += 1
            monkeypatch.setattr(_fs, "hook", None)
        with Store(root) as store:
            assert store.verify().clean
            assert not store.verify().orphans
            kept = list_records(store)
            assert not kept or read_record(kept[0].id, store, PAYLOADS) == a_record()
        if count < number:
            break
    assert failures > 15
    assert kept


def test_tags_survive_a_journal_that_is_rebuilt(tmp_path):
    root = tmp_path / "store"
    with Store(root) as store:
        keep_record(store, a_record())
    (root / "journal.sqlite").write_bytes(b"not a database")
    with Store(root) as store:
        assert list_records(store, Wanted(model="m.onnx", target="cpu"))[0].id == a_record().id


def test_a_journal_of_the_version_before_is_upgraded(tmp_path):
    root = tmp_path / "store"
    with Store(root) as store:
        store.entries()
    journal = sqlite3.connect(root / "journal.sqlite")
    journal.execute("DROP TABLE tags")
    journal.execute("DROP INDEX entries_by_stage")
    journal.execute("PRAGMA user_version = 1")
    journal.commit()
    journal.close()
    with Store(root) as store:
        keep_record(store, a_record())
        assert len(list_records(store, Wanted(model="m.onnx"))) == 1
