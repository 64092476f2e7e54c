"""A record comes back as what it was, or is refused in words."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwright._output import SEAL, sealed, write_output
from modelwright.errors import InputError
from modelwright.evidence import (
    RecordedData,
    RecordedModel,
    RecordedVerdict,
    RecordHead,
    make_record,
    parse_record,
    read_environment,
)
from modelwright.models import FileDigest

ENVIRONMENT = read_environment()


class Word(Enum):
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True)
class Sample:
    times_ns: tuple[int, ...]
    share: float | None


@dataclass(frozen=True)
class Answer:
    word: Word
    samples: tuple[Sample, ...]
    notes: Mapping[str, str]


PAYLOADS = {"answer": Answer}.get
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.floats(allow_nan=False, allow_infinity=False)
samples = st.builds(Sample, st.lists(st.integers(), max_size=4).map(tuple), st.none() | numbers)
answers = st.builds(
    Answer, st.sampled_from(Word), st.lists(samples, max_size=3).map(tuple), st.dictionaries(texts, texts)
)
models = st.builds(RecordedModel, texts, texts, st.tuples(st.builds(FileDigest, texts, texts, st.integers(0))))
heads = st.builds(
    RecordHead,
    kind=st.just("answer"),
    protocol=texts,
    made_at=texts,
    call=st.lists(texts, max_size=3).map(tuple),
    models=st.lists(models, max_size=2).map(tuple),
    targets=st.lists(texts, max_size=2).map(tuple),
    data=st.lists(st.builds(RecordedData, texts, st.none() | texts), max_size=1).map(tuple),
    parameters=st.dictionaries(texts, st.none() | texts | st.integers() | numbers),
    verdict=st.none() | st.builds(RecordedVerdict, texts, texts),
    environment=st.just(ENVIRONMENT),
    refs=st.lists(texts, max_size=2).map(tuple),
)


@given(heads, answers)
def test_a_record_comes_back_as_it_was(head, answer):
    record = make_record(head, answer)
    back = parse_record(sealed(record.text), "r.json", PAYLOADS)
    assert back == record
    assert back.text == record.text
    assert isinstance(back.payload, Answer)


def a_record(**changes):
    head = RecordHead(
        kind="answer",
        protocol="answer-1",
        made_at="2026-01-01T00:00:00+00:00",
        call=("wright", "answer"),
        models=(),
        targets=("cpu",),
        data=(),
        parameters={},
        verdict=None,
        environment=ENVIRONMENT,
    )
    return make_record(replace(head, **changes), Answer(Word.GOOD, (), {}))


def test_the_id_follows_from_the_content_alone():
    assert a_record().id == a_record().id
    assert len({a_record().id, a_record(targets=("qnn-npu",)).id, a_record(made_at="later").id}) == 3


def test_a_saved_record_is_the_file_that_is_read(tmp_path):
    write_output(tmp_path / "r.json", a_record().text)
    assert parse_record((tmp_path / "r.json").read_bytes(), "r.json", PAYLOADS) == a_record()
    assert json.loads(a_record().text)["record_id"] == a_record().id


def forged(**changes) -> bytes:
    document = json.loads(a_record().text) | changes
    return sealed(json.dumps({name: value for name, value in document.items() if value is not ...}))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "wright did not write it"),
        (sealed(a_record().text).replace(b"good", b"bad!"), "changed since"),
        (forged(word="bad"), "not what its id says"),
        (forged(schema_version=2), "format 2 is unknown"),
        (forged(command="oracle"), "the answer of 'oracle' is unknown"),
        (forged(record=...), "without saying where and how"),
        (forged(record_id=...), "record_id"),
        (sealed(f'["{SEAL}"]'), "holds no record"),
    ],
)
def test_what_is_damaged_or_of_another_version_is_refused_in_words(data, says):
    with pytest.raises(InputError) as caught:
        parse_record(data, "r.json", PAYLOADS)
    assert says in caught.value.cause
    assert "r.json" in caught.value.problem
    assert caught.value.fix


def test_an_answer_that_does_not_fit_its_type_is_refused():
    @dataclass(frozen=True)
    class Other:
        needed: int

    with pytest.raises(InputError, match="no record that can be read"):
        parse_record(sealed(a_record().text), "r.json", {"answer": Other}.get)
