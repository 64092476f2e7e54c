"""The ledger: nothing that happened is lost, and nobody takes work from the living."""

import os
import signal
import subprocess
import sys

import pytest

from modelwright.errors import StoreError
from modelwright.store import Store


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store") as opened:
        yield opened


def test_events_stay_in_order_and_the_last_one_of_each_item_is_known(store):
    ledger = store.ledger()
    ledger.append("a", "leased", {"attempt": 1})
    ledger.append_all([("b", "leased", {}), ("a", "failed", {"why": None})])
    assert [(event.item, event.state) for event in ledger.events()] == [
        ("a", "leased"),
        ("b", "leased"),
        ("a", "failed"),
    ]
    assert {item: event.state for item, event in ledger.latest().items()} == {"a": "failed", "b": "leased"}
    assert ledger.last("a").note == {"why": None}
    assert ledger.last("c") is None
    assert ledger.count("a", "leased") == 1
    assert [event.state for event in ledger.events("a", since=1)] == ["failed"]


def test_several_events_at_once_are_all_noted_or_none(store):
    ledger = store.ledger()
    with pytest.raises(ValueError):
        ledger.append_all([("a", "leased", {}), ("b", "leased", {"x": float("nan")})])
    assert ledger.events() == ()


def test_another_process_reads_what_was_written_and_writes_nothing(store):
    store.ledger().append("a", "leased")
    with Store(store.root, read_only=True) as reading:
        ledger = reading.ledger()
        assert ledger.last("a").state == "leased"
        with pytest.raises(StoreError):
            ledger.append("a", "failed")


def test_where_there_is_no_ledger_a_reader_sees_an_empty_one(tmp_path):
    with Store(tmp_path / "nowhere", read_only=True) as reading:
        assert reading.ledger().latest() == {}
    assert not (tmp_path / "nowhere").exists()


CLAIM = """
import sys
from pathlib import Path
from modelwright.store import Store
store = Store(Path(sys.argv[1]))
print(store.ledger().claim(["a", "b"]), flush=True)
sys.stdin.read()
"""


def test_what_a_living_process_claims_is_its_own_and_what_a_killed_one_had_is_free(store):
    ledger = store.ledger()
    words = [sys.executable, "-c", CLAIM, str(store.root)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ) as other:
        assert other.stdout.readline().strip() == "{}"
        taken = ledger.claim(["a", "c"])
        assert list(taken) == ["a"]
        assert taken["a"].endswith(f":{other.pid}")
        assert set(ledger.claimed()) == {"a", "b", "c"}
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert ledger.claim(["a", "b"]) == {}
    ledger.release(["a", "b", "c"])
    assert ledger.claimed() == {}
