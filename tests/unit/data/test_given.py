"""Inputs a user brings as .npz: everything that does not fit is said at once."""

import os

import numpy as np
import pytest

from modelwright.data import check_inputs, read_npz
from modelwright.errors import InputError
from modelwright.graph import ValueSpec

SIGNATURE = (
    ValueSpec("input_ids", "int64", ("batch", "sequence")),
    ValueSpec("attention_mask", "int64", ("batch", "sequence")),
)


def arrays(ids=(1, 4), mask=(1, 4), dtype=np.int64):
    return {"input_ids": np.zeros(ids, dtype), "attention_mask": np.ones(mask, np.int64)}


def test_fitting_arrays_come_back(tmp_path):
    path = tmp_path / "in.npz"
    np.savez(path, **arrays())
    assert read_npz(path)["input_ids"].shape == (1, 4)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"input_ids": np.zeros((1, 4), np.int64)}, "attention_mask is missing"),
        ({**arrays(), "labels": np.zeros(1)}, "labels is not an input"),
        ({**arrays(), "input_id": np.zeros(1)}, "did you mean input_ids"),
        (arrays(dtype=np.int32), "input_ids is int32, not int64"),
        (arrays(ids=(4,)), "input_ids has 1 dimensions, not 2"),
        (arrays(mask=(1, 5)), "sequence is 4 in input_ids but 5 in attention_mask"),
    ],
)
def test_what_does_not_fit_is_named(given, complaint):
    with pytest.raises(InputError) as error:
        check_inputs(given, SIGNATURE)
    assert complaint in error.value.cause
    assert "input_ids: int64[batch, sequence]" in error.value.fix


def test_a_fixed_dimension_must_match():
    with pytest.raises(InputError, match="7 in dimension 1, not 8"):
        check_inputs({"x": np.zeros((1, 7), np.float32)}, (ValueSpec("x", "float32", (1, 8)),))


def test_all_complaints_come_together():
    with pytest.raises(InputError) as error:
        check_inputs({"input_ids": np.zeros((1, 4), np.float32)}, SIGNATURE)
    assert "missing" in error.value.cause
    assert "float32" in error.value.cause


def test_pickled_objects_are_never_loaded(tmp_path):
    path = tmp_path / "in.npz"
    np.savez(path, input_ids=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match="plain arrays"):
        read_npz(path)


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04broken"])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "in.npz"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_npz(path)


def test_a_missing_file_is_said_so(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_npz(tmp_path / "none.npz")


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.npz")
    with pytest.raises(InputError, match="is not a file"):
        read_npz(tmp_path / "x.npz")
