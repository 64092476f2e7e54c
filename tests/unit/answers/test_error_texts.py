"""The catalogue of error texts: what it says about real ones, and that it says nothing about what it does not know."""

import re
import string
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from modelwright.answers import Diagnosis, error_texts, read_lines, read_log
from modelwright.report.diagnose import headline

HERE = Path(__file__).parent
TEXTS = tomllib.loads((HERE / "error_texts.toml").read_text("utf-8"))["text"]

UNKNOWN = tomllib.loads((HERE / "unknown_texts.toml").read_text("utf-8"))["text"]


def first(line):
    causes = read_lines([line]).causes
    return causes[0].id if causes else None


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text['is']} {text['from'].partition('.com/')[2]}")
def test_a_real_error_text_is_classified(text):
    assert first(text["line"]) == text["is"]


def test_there_are_enough_of_them():
    assert len({text["line"] for text in TEXTS}) >= 150
    assert all(text["from"].startswith("https://github.com/") for text in TEXTS)


@pytest.mark.parametrize("text", UNKNOWN, ids=lambda text: text["from"].partition(".com/")[2])
def test_a_text_whose_cause_is_not_known_is_said_to_be_unknown(text):
    found = read_lines([text["line"]])
    assert found.causes == ()
    assert len(found.unknown) == 1


def test_every_entry_says_what_the_pattern_can_name_and_where_it_is_known_from():
    for entry in error_texts():
        groups = set(re.compile(entry.pattern).groupindex)
        wanted = {
            name for text in (entry.cause, entry.next) for _, name, _, _ in string.Formatter().parse(text) if name
        }
        assert wanted <= groups, entry.id
        assert entry.sources, entry.id
        assert all(source.startswith("https://") for source in entry.sources), entry.id
    ids = [entry.id for entry in error_texts()]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(
    "line",
    [
        "epoch 3 finished, loss 0.21",
        "2024-01-01 [I:onnxruntime:, inference_session.cc:1787 Initialize] Session successfully initialized.",
        "0 errors were found by the linter of another tool",
    ],
)
def test_what_is_no_error_of_a_runtime_has_no_cause(line):
    assert read_lines([line]).causes == ()


def test_an_error_that_is_not_known_is_said_to_be_unknown():
    found = read_lines(
        ["all is well", "FrobnicationError: the flux failed at 12", "FrobnicationError: the flux failed at 13"]
    )
    assert found.causes == ()
    assert [(line.line, line.times) for line in found.unknown] == [(2, 2)]


def test_what_explains_comes_before_what_only_says_where():
    found = read_lines(
        [
            "Failed to finalize QNN graph. at location qnn_model.cc:181",
            "QnnDsp <E> Failed to finalize graph (id: 1) with err 1002",
        ]
    )
    assert [cause.id for cause in found.causes] == ["qnn-out-of-memory", "qnn-finalize-failed"]
    assert found.explained


def test_a_wrapper_alone_explains_nothing():
    assert not read_lines(["Failed to finalize QNN graph. at location qnn_model.cc:181"]).explained


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_a_log_is_read_in_the_encoding_that_its_system_wrote(tmp_path, encoding):
    path = tmp_path / "run.log"
    path.write_text(
        "\x1b[31mok\n[E] Unsupported model IR version: 10, max supported IR version: 9\n", encoding=encoding
    )
    found = read_log(path)
    assert [(cause.id, cause.line) for cause in found.causes] == [("ir-version", 2)]
    assert "up to 9" in found.causes[0].cause


def test_a_line_of_a_megabyte_is_read_in_no_time():
    assert read_lines(["Exception while " * 100_000]).lines == 1


def test_a_log_of_two_errors_is_not_told_as_one():
    lines = [
        "Could not find an implementation for Erf(13) node with name e",
        "QNN_COMMON_ERROR_MEM_ALLOC failed",
        "Error: something nobody has seen",
    ]
    found = Diagnosis(None, None, None, (), (), (), log=read_lines(lines))
    assert headline(found).endswith("(and 2 other errors in the log, below)")
    assert "other" not in headline(replace(found, log=read_lines(lines[:1])))
