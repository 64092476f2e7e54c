"""Looking into data: in a child, whose imports are paid once for all that one command asks."""

import numpy as np
import pytest

from modelwright.data import DataSource, SampleHash, data_shapes, drawing, try_data
from modelwright.errors import InputError
from modelwright.vocabulary import Data
from modelwright.worker import _worker as worker


@pytest.fixture
def started(monkeypatch):
    found, real = [], worker.launch
    monkeypatch.setattr(worker, "launch", lambda python: found.append(python) or real(python))
    return found


def test_a_command_looks_into_all_its_data_with_one_child_and_alone_everybody_has_one(tmp_path, started):
    for name in "abc":
        np.savez(tmp_path / f"{name}.npz", x=np.zeros((2, 3), np.float32))
    sources = [DataSource(Data(str(tmp_path / f"{name}.npz"))) for name in "abc"]
    with drawing(tmp_path):
        for source in sources:
            try_data(source)
        assert data_shapes(sources[0].data, 1) == {"x": (3,)}
    assert len(started) == 1
    try_data(sources[0])
    assert len(started) == 2


def test_what_is_wrong_with_one_is_said_and_the_next_is_looked_into_all_the_same(tmp_path):
    np.savez(tmp_path / "good.npz", x=np.zeros((2, 3), np.float32))
    (tmp_path / "bad.npz").write_text("nonsense")
    with drawing(tmp_path):
        with pytest.raises(InputError):
            try_data(DataSource(Data(str(tmp_path / "bad.npz"))))
        try_data(DataSource(Data(str(tmp_path / "good.npz"))))


def test_texts_and_single_numbers_are_among_what_the_data_holds(tmp_path):
    np.savez(tmp_path / "d.npz", word=np.array(["a", "b"]), number=np.arange(2), x=np.zeros((2, 3)))
    assert data_shapes(Data(str(tmp_path / "d.npz")), 1) == {"word": (), "number": (), "x": (3,)}


def test_the_digest_of_texts_is_that_of_their_letters():
    def digest(*words):
        total = SampleHash()
        total.add({"word": np.array(["".join(list(word)) for word in words], object)})
        return total.hexdigest()

    assert digest("one", "two") == digest("one", "two") != digest("one", "six")
