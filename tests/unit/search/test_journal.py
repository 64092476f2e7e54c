"""What a search has written down survives whatever ends it."""

from modelwright.search._events import UnitTaken, VariantDropped, VariantMade, VariantRebuilt, VariantTried
from modelwright.search._journal import SearchJournal

EVENTS = [
    VariantMade("baseline", "id", 7, 1.5),
    VariantDropped("a", "gate", "why", 0.1),
    VariantTried("b", 3, 1, False, 0.2),
    UnitTaken(None, True, [[1.0, 2.0]], [[3.0]], False, 0.5),
    VariantRebuilt("b", "id"),
]


def journal(tmp_path):
    found = SearchJournal(tmp_path / "deep" / "search.jsonl")
    found.begin(5)
    for event in EVENTS:
        found.add(event)
    return found


def test_events_come_back_as_they_were(tmp_path):
    assert list(journal(tmp_path).events()) == EVENTS


def test_the_seed_is_that_of_the_first_call(tmp_path):
    assert journal(tmp_path).begin(99) == 5


def test_a_line_that_was_cut_is_not_there_and_the_next_one_is_whole(tmp_path):
    found, path = journal(tmp_path), tmp_path / "deep" / "search.jsonl"
    path.write_bytes(path.read_bytes()[:-4])
    assert list(found.events()) == EVENTS[:-1]
    assert found.begin(99) == 5
    found.add(EVENTS[-1])
    assert list(found.events()) == EVENTS


def test_a_journal_without_a_readable_beginning_starts_anew(tmp_path):
    found, path = journal(tmp_path), tmp_path / "deep" / "search.jsonl"
    path.write_bytes(b"\x00garbage\n" + path.read_bytes())
    assert found.begin(8) == 8
    assert list(found.events()) == []


def test_what_is_measured_again_no_longer_counts_and_is_kept(tmp_path):
    found, path = journal(tmp_path), tmp_path / "deep" / "search.jsonl"
    found.again(["b"])
    assert found.events() == [event for event in EVENTS if event.label != "b"]
    found.add(EVENTS[2])
    assert found.events()[-1] == EVENTS[2]
    found.again()
    assert found.events() == []
    assert len(path.read_bytes().splitlines()) == 1 + len(EVENTS) + 3
