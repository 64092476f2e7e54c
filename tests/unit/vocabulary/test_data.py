"""The one value that says which samples are used."""

import pickle

import pytest

from modelwright._json import dumps
from modelwright.errors import UsageError
from modelwright.vocabulary import Data, as_data


def test_a_word_is_a_source_and_nothing_is_made_up():
    assert as_data("test.npz") == Data("test.npz")
    assert as_data(None).random
    assert as_data(Data("test.npz", samples=3)).samples == 3


def test_it_goes_to_a_child_and_into_a_document_as_it_is():
    data = Data("photos", samples=8, size=(224, 224), mean=(0.5,), std=(0.5,), layout="nchw", columns={"x": "image"})
    assert pickle.loads(pickle.dumps(data)) == data
    assert '"photos"' in dumps(data)


@pytest.mark.parametrize("wrong", [{"samples": 0}, {"seed": -1}, {"scale": 0.0}, {"std": (0.0,)}, {"size": (0, 1)}])
def test_what_can_be_no_data_is_refused_where_it_is_written(wrong):
    with pytest.raises(UsageError):
        Data("test.npz", **wrong)


def test_only_a_python_file_and_a_name_are_a_function():
    assert Data("mine.py:rows").function
    assert not Data("glue:sst2").function
