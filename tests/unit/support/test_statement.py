"""Evidence: added to, never changed, and whatever was touched is found."""

import json

import pytest

from modelwright import _json
from modelwright.errors import InputError
from modelwright.evidence import RecordedVerdict, read_environment
from modelwright.support import (
    EVIDENCE,
    EvidenceLog,
    StatementAsked,
    StatementRecipe,
    StatementSeeds,
    SupportPredicate,
    read_evidence,
    subject_of,
    this_tool,
)

_SHA = "cd" * 32


@pytest.fixture(scope="module")
def environment():
    return read_environment()


def _predicate(environment, number=0, **changes):
    given = {
        "claim": _SHA,
        "previous": None,
        "asked": StatementAsked("gate", "cpu", "fp32", seed=number),
        "recipe": StatementRecipe({"precision": "fp32"}, None),
        "tool": this_tool(),
        "environment": environment,
        "seeds": StatementSeeds(1, (2, 3)),
        "argv": ("wright", "support", "run"),
        "exit": 0,
        "log": None,
        "measured": {"cosine": 1.0, "count": 8, "names": ["a", "b"]},
        "verdict": RecordedVerdict("pass", "L2-1"),
        "made_at": "2026-11-17T00:00:00+00:00",
        "seconds": 1,
        **changes,
    }
    return SupportPredicate(**given)


@pytest.fixture
def three(tmp_path, environment):
    log = EvidenceLog(tmp_path)
    for number in range(3):
        log.add((subject_of("source", "tiny", _SHA),), _predicate(environment, number))
    return tmp_path


def _lines(folder):
    return (folder / EVIDENCE).read_bytes().splitlines(keepends=True)


def _write(folder, lines):
    (folder / EVIDENCE).write_bytes(b"".join(lines))


def test_every_line_is_an_in_toto_statement(three):
    for line in _lines(three):
        document = json.loads(line)
        assert document["_type"] == "https://in-toto.io/Statement/v1"
        assert document["subject"] == [{"name": "source:tiny", "digest": {"sha256": _SHA}}]
        without = {name: value for name, value in document.items() if name != "id"}
        assert document["id"] == _json.digest(without)


def test_statements_read_back_typed_and_in_order(three):
    found = read_evidence(three)
    assert [one.asked.seed for one in found.statements] == [0, 1, 2]
    assert not found.torn
    assert not found.flaws
    assert found.statements[0].predicate.measured["cosine"] == 1.0
    assert found.find(StatementAsked("gate", "cpu", "fp32", seed=1)) == found.statements[1]
    assert found.find(StatementAsked("gate", "cpu", "fp32", seed=9)) is None


@pytest.mark.parametrize("cut", [1, 40, 400])
def test_a_torn_last_line_is_told_and_costs_nothing_else(three, environment, cut):
    _write(three, [*_lines(three)[:2], _lines(three)[2][:-cut]])
    found = read_evidence(three)
    assert found.torn
    assert not found.flaws
    assert len(found.statements) == 2
    log = EvidenceLog(three)
    assert log.was_torn
    log.add((), _predicate(environment, 2))
    again = read_evidence(three)
    assert [one.asked.seed for one in again.statements] == [0, 1, 2]
    assert not again.torn
    assert not again.flaws


def test_an_edited_number_is_found_by_line(three):
    first, second, third = _lines(three)
    _write(three, [first, second.replace(b'"cosine":1.0', b'"cosine":0.9'), third])
    found = read_evidence(three)
    assert [(flaw.line, flaw.why) for flaw in found.flaws] == [(2, "its content is not what its id says")]
    with pytest.raises(InputError, match="not what was written"):
        EvidenceLog(three)


def test_an_edited_line_whose_id_was_made_again_breaks_the_chain(three):
    first, second, third = _lines(three)
    document = json.loads(second)
    document["predicate"]["measured"]["cosine"] = 0.9
    del document["id"]
    document["id"] = _json.digest(document)
    _write(three, [first, _json.canonical(document) + b"\n", third])
    assert [flaw.line for flaw in read_evidence(three).flaws] == [3]


def test_a_line_taken_out_or_put_in_twice_or_swapped_is_found(three):
    first, second, third = _lines(three)
    for lines in ([first, third], [second, third], [first, second, second, third], [first, third, second]):
        _write(three, lines)
        assert read_evidence(three).flaws, lines


def test_a_line_that_is_something_else_is_a_flaw_and_not_a_crash(three):
    first, second, third = _lines(three)
    for strange in (b"hello\n", b"[]\n", b"{}\n", b'{"_type":1}\n', b"[" * 100_000 + b"\n", b"\xff\xfe\n"):
        _write(three, [first, strange, second, third])
        assert read_evidence(three).flaws[0].line == 2


def test_a_field_that_nobody_knows_is_no_statement_of_this_version(three):
    document = json.loads(_lines(three)[0])
    document["predicate"]["waiver"] = "trust me"
    del document["id"]
    document["id"] = _json.digest(document)
    _write(three, [_json.canonical(document) + b"\n"])
    assert "waiver" in read_evidence(three).flaws[0].why


def test_no_file_is_no_evidence(tmp_path):
    assert read_evidence(tmp_path).statements == ()


def test_the_tool_is_known_by_content_and_not_by_its_version():
    assert len(this_tool().digest) == 64
    assert this_tool().digest == this_tool().digest


def test_a_gigabyte_is_no_evidence_and_is_not_read(tmp_path):
    with (tmp_path / EVIDENCE).open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(InputError, match="too large to be evidence") as found:
        read_evidence(tmp_path)
    assert "1,074 MB" in found.value.cause


def test_a_file_of_nothing_but_flaws_takes_no_more_room_than_a_thousand_of_them(tmp_path):
    (tmp_path / EVIDENCE).write_bytes(b"{}\n" * 100_000)
    assert len(read_evidence(tmp_path).flaws) == 1000
