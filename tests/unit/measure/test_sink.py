"""Samples survive whoever took them."""

import numpy as np
import pytest

from modelwright.measure import SampleSink, read_samples


def put(sink, values):
    while values:
        room = sink.room()
        part = values[: len(room)]
        room[: len(part)] = part
        sink.advance(len(part))
        values = values[len(part) :]


@pytest.mark.parametrize("in_file", [True, False])
def test_warm_up_and_measured_samples_stay_apart(tmp_path, in_file):
    sink = SampleSink(str(tmp_path / "samples") if in_file else None)
    put(sink, list(range(1, 8)))
    sink.warmed()
    put(sink, list(range(100, 10_100)))
    warmup, samples = sink.samples()
    assert warmup.tolist() == list(range(1, 8))
    assert samples.tolist() == list(range(100, 10_100))


def test_another_process_reads_what_is_there_so_far(tmp_path):
    path = tmp_path / "samples"
    sink = SampleSink(str(path))
    put(sink, [5, 6])
    assert [part.tolist() for part in read_samples(path)] == [[5, 6], []]
    sink.warmed()
    put(sink, [7])
    assert [part.tolist() for part in read_samples(path)] == [[5, 6], [7]]


def test_room_that_was_not_used_is_no_sample(tmp_path):
    path = tmp_path / "samples"
    sink = SampleSink(str(path))
    sink.warmed()
    sink.room()[:3] = [1, 2, 3]
    assert read_samples(path)[1].tolist() == [1, 2, 3]  # a crash before advance() loses nothing


def test_a_file_nobody_wrote_has_no_samples(tmp_path):
    assert [len(part) for part in read_samples(tmp_path / "absent")] == [0, 0]
    (tmp_path / "empty").write_bytes(b"")
    assert all(isinstance(part, np.ndarray) and not len(part) for part in read_samples(tmp_path / "empty"))
