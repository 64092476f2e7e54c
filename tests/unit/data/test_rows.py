"""Datasets as people have them, and what happens when they do not fit."""

import json
import sys

import numpy as np
import pytest

from modelwright.data import Feeder, Rows, open_data, split
from modelwright.data._rows import selected
from modelwright.data._source import require_fitting
from modelwright.errors import InputError, UsageError
from modelwright.graph import ValueSpec
from modelwright.judge import Allowance, parse_allowance
from modelwright.vocabulary import Data


def opened(path, **more):
    return open_data(Data(str(path), **more))


def rows(path, **more):
    return list(opened(path, **more).read(None))


def feeder(*specs, shared=None, together=16, **how):
    return Feeder([ValueSpec(*spec) for spec in specs], Data("d.npz", **how), shared, together=together)


def test_an_npz_has_its_samples_along_the_first_axis(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.arange(6).reshape(3, 2), label=[1, 0, 2], label_names=["a", "b", "c"])
    data = opened(tmp_path / "d.npz")
    assert (data.kind, data.count, data.label_names) == ("npz", 3, ("a", "b", "c"))
    assert next(iter(data.read([2])))["x"].tolist() == [4, 5]


def test_arrays_that_all_samples_share_are_kept_apart(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.zeros((4, 2)), **{"shared.class_embeds": np.eye(3)})
    data = opened(tmp_path / "d.npz")
    assert data.shared["class_embeds"].shape == (3, 3)
    assert set(next(iter(data.read([0])))) == {"x"}


def test_arrays_of_different_lengths_are_refused(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.zeros((4, 2)), label=np.zeros(3))
    with pytest.raises(InputError, match="different numbers") as caught:
        opened(tmp_path / "d.npz")
    assert "x 4, label 3" in caught.value.cause


def test_pickled_objects_are_never_loaded(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError, match="plain arrays"):
        opened(tmp_path / "d.npz")


@pytest.mark.parametrize("name", ["d.npz", "nothing/here"])
def test_data_that_is_not_there_is_an_input_error(tmp_path, name, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(InputError, match="does not exist"):
        opened(tmp_path / name)


def test_an_empty_dataset_is_refused(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.zeros((0, 2)), label=np.zeros(0))
    with pytest.raises(InputError, match="is empty"):
        opened(tmp_path / "d.npz")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="not a dataset"):
        opened(tmp_path / "folder")


def test_lines_of_json_hold_numbers_texts_and_names_of_files(tmp_path):
    np.save(tmp_path / "one.npy", np.arange(3))
    lines = [{"x": "one.npy", "label": 1, "text": "hello"}, {"x": [3, 4, 5], "label": 0, "text": "bye"}]
    (tmp_path / "data.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    data = opened(tmp_path)
    assert [row["x"].tolist() for row in data.read(None)] == [[0, 1, 2], [3, 4, 5]]
    assert next(iter(data.read([1])))["text"] == "bye"


def test_a_broken_line_is_named(tmp_path):
    (tmp_path / "data.jsonl").write_text('{"label": 1}\n{"label": \n')
    with pytest.raises(InputError, match="line 2"):
        rows(tmp_path)


def test_folders_of_images_are_classes_in_the_order_of_labels_txt(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(b"")
    assert [row["label"] for row in rows(tmp_path)] == [0, 1]
    (tmp_path / "labels.txt").write_text("dog\nbird\ncat\n")
    assert [row["label"] for row in rows(tmp_path)] == [2, 0]
    (tmp_path / "labels.txt").write_text("dog\n")
    with pytest.raises(InputError, match="cat"):
        opened(tmp_path)


def test_a_column_is_found_under_the_name_it_has(tmp_path):
    np.savez(tmp_path / "d.npz", pixels=np.zeros((2, 3)), fine=[1, 0])
    data = opened(tmp_path / "d.npz", columns={"label": "fine", "x": "pixels"})
    assert next(iter(data.read([0])))["label"] == 1
    with pytest.raises(InputError, match="no column 'coarse'"):
        rows(tmp_path / "d.npz", columns={"label": "coarse"})


def test_the_same_seed_draws_the_same_samples_and_another_one_others():
    assert selected(1000, 50, 7) == selected(1000, 50, 7)
    assert selected(1000, 50, 7) != selected(1000, 50, 8)
    assert selected(10, 50, 7) == list(range(10))
    assert len(set(selected(1000, 50, 7))) == 50


def test_rows_become_batches_and_outputs_become_rows_again():
    one = feeder(("x", "float32", ("batch", 2)))
    rows = [{"x": np.array([i, i], np.float32)} for i in range(20)]
    chunks = list(one.chunks(rows))
    assert [len(chunk) for chunk in chunks] == [16, 4]
    feeds = one.feeds([rows[i] for i in chunks[1]])
    assert feeds["x"].shape == (4, 2)
    assert [row["y"].tolist() for row in split({"y": feeds["x"]}, 4, 4)] == [[i, i] for i in range(16, 20)]


def test_a_fixed_batch_is_filled_up_and_nothing_is_dropped():
    one = feeder(("x", "float32", (4, 2)))
    rows = [{"x": np.full(2, i, np.float32)} for i in range(6)]
    assert [len(chunk) for chunk in one.chunks(rows)] == [4, 2]
    assert one.feeds(rows[4:])["x"][:, 0].tolist() == [4, 5, 5, 5]
    assert len(split({"y": np.zeros((4, 3))}, 2, 4)) == 2


def test_rows_of_different_lengths_are_not_mixed():
    one = feeder(("x", "int64", ("batch", "tokens")))
    rows = [{"x": np.zeros(n, np.int64)} for n in (3, 3, 5)]
    assert list(one.chunks(rows)) == [[0, 1], [2]]


def test_a_row_with_its_batch_axis_is_as_good_as_one_without():
    one = feeder(("x", "float32", (1, 3)))
    assert one.feeds([{"x": np.zeros((1, 3), np.float32)}])["x"].shape == (1, 3)
    assert one.feeds([{"x": np.zeros(3, np.float32)}])["x"].shape == (1, 3)


def test_pixels_are_scaled_only_when_it_was_said():
    pixels = {"x": np.array([0, 255], np.uint8)}
    with pytest.raises(InputError, match="uint8") as caught:
        feeder(("x", "float32", ("n", 2))).feeds([pixels])
    assert "`scale`" in caught.value.fix
    scaled = feeder(("x", "float32", ("n", 2)), scale=1 / 255).feeds([pixels])["x"]
    assert scaled.tolist() == [[0.0, 1.0]]


def test_numbers_that_would_change_are_refused():
    ids = {"x": np.array([1, 2**40])}
    with pytest.raises(InputError, match="takes int32"):
        feeder(("x", "int32", ("n", 2))).feeds([ids])
    assert feeder(("x", "int32", ("n", 2))).feeds([{"x": np.array([1, 2])}])["x"].dtype == np.int32
    with pytest.raises(InputError, match="takes int64"):
        feeder(("x", "int64", ("n", 2))).feeds([{"x": np.array([1.5, 2])}])


def test_wrong_names_and_shapes_say_what_the_model_takes():
    with pytest.raises(InputError, match="no array for the input 'pixel_values'") as caught:
        feeder(("pixel_values", "float32", ("n", 3))).feeds([{"pixels": np.zeros(3), "label": 1}])
    assert "rows hold label, pixels" in caught.value.cause
    with pytest.raises(InputError, match="does not fit") as caught:
        feeder(("x", "float32", ("n", 3))).feeds([{"x": np.zeros(4, np.float32)}])
    assert "[1, 4]" in caught.value.cause


def test_the_allowed_drop_is_relative_with_a_percent_sign_and_absolute_without():
    assert parse_allowance("1%") == Allowance(0.01, relative=True)
    assert parse_allowance("0.02") == Allowance(0.02, relative=False)
    assert parse_allowance("1.5pt") == Allowance(0.015, relative=False, points=True)
    for text in ("", "-1%", "one", "0", "1%%", "nan"):
        with pytest.raises(UsageError, match="allowed drop"):
            parse_allowance(text)


def test_a_name_that_is_no_path_is_explained_where_no_package_can_look_it_up(monkeypatch):
    for name in ("datasets", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match="nosuch does not exist") as error:
        open_data(Data("nosuch"))
    assert "modelwright[datasets]" in error.value.fix


def test_an_npz_is_read_at_the_rows_that_are_asked_for(tmp_path):
    numbers = np.arange(12).reshape(6, 2)
    for name, write, array in (
        ("plain", np.savez, numbers),
        ("packed", np.savez_compressed, numbers),
        ("fortran", np.savez, np.asfortranarray(numbers)),
        ("swapped", np.savez, numbers.astype(">i8")),
    ):
        write(tmp_path / f"{name}.npz", x=array, text=np.array(list("abcdef")))
        found = list(opened(tmp_path / f"{name}.npz").read([1, 4, 5]))
        assert [(row["x"].tolist(), row["text"]) for row in found] == [([2, 3], "b"), ([8, 9], "e"), ([10, 11], "f")]
        assert all(row["x"].dtype.isnative for row in found)


def test_tables_and_texts_are_rows(tmp_path):
    (tmp_path / "d.csv").write_text('text,label\n"good, really",1\nbad,0\n')
    assert rows(tmp_path / "d.csv") == [{"text": "good, really", "label": 1}, {"text": "bad", "label": 0}]
    (tmp_path / "d.txt").write_text("one\n\ntwo\n")
    assert rows(tmp_path / "d.txt") == [{"text": "one"}, {"text": "two"}]
    (tmp_path / "d.jsonl").write_text('{"text": "one"}\n')
    assert rows(tmp_path / "d.jsonl") == [{"text": "one"}]
    (tmp_path / "bad.csv").write_text("a,b\n1\n")
    with pytest.raises(InputError, match="not a table"):
        rows(tmp_path / "bad.csv")


def test_labels_may_lie_in_a_file_of_their_own(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    np.save(tmp_path / "y.npy", np.array([4, 5]))
    assert [row["label"] for row in rows(tmp_path / "x.npy", labels=str(tmp_path / "y.npy"))] == [4, 5]
    (tmp_path / "y.txt").write_text("7\n8\n9\n")
    with pytest.raises(InputError, match="3 labels for 2 samples"):
        rows(tmp_path / "x.npy", labels=str(tmp_path / "y.txt"))


def test_a_folder_of_arrays_images_or_sounds_needs_no_labels(tmp_path):
    for folder, name in (("arrays", "1.npz"), ("photos", "1.png"), ("sounds", "1.wav")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_bytes(b"")
    np.savez(tmp_path / "arrays" / "1.npz", x=np.zeros(2), label=3)
    assert rows(tmp_path / "arrays")[0]["label"] == 3
    assert rows(tmp_path / "photos") == [{"image": tmp_path / "photos" / "1.png"}]
    assert rows(tmp_path / "sounds") == [{"audio": tmp_path / "sounds" / "1.wav"}]


def test_a_function_gives_rows_until_it_ends_and_only_so_many_are_asked_for(tmp_path):
    (tmp_path / "mine.py").write_text(
        "import itertools\ndef read():\n    yield from ({'x': i} for i in itertools.count())\n"
    )
    data = Data(f"{tmp_path / 'mine.py'}:read", samples=3)
    found = open_data(data)
    assert found.count is None
    assert [(number, int(row["x"])) for number, row in found.chosen(data)] == [(0, 0), (1, 1), (2, 2)]


def test_what_a_header_tells_is_said_before_anything_is_unpacked(tmp_path, monkeypatch):
    np.savez(tmp_path / "d.npz", x=np.zeros((1, 5), np.float32))
    monkeypatch.setattr("modelwright.data._arrays.np.frombuffer", lambda *_, **__: pytest.fail("unpacked"))
    found = opened(tmp_path / "d.npz")
    for shape, name, words in (((1, 4), "x", r"x is \[5\] in a sample"), ((1, 5), "y", "y is missing")):
        with pytest.raises(InputError, match=words):
            require_fitting(found, [ValueSpec(name, "float32", shape)], Data("d.npz"))
    require_fitting(found, [ValueSpec("x", "float32", ("n", 5))], Data("d.npz"))


def test_pixels_are_normalized_by_channel_wherever_the_channels_are():
    first = {"x": np.full((3, 2, 2), 255, np.uint8)}
    how = {"scale": 1 / 255, "mean": (0.0, 0.5, 1.0), "std": (1.0, 0.5, 2.0)}
    made = feeder(("x", "float32", ("n", 3, 2, 2)), **how).feeds([first])["x"]
    assert made[0, :, 0, 0].tolist() == [1.0, 1.0, 0.0]
    last = {"x": np.moveaxis(first["x"], 0, -1)}
    made = feeder(("x", "float32", ("n", 2, 2, 3)), **how).feeds([last])["x"]
    assert made[0, 0, 0].tolist() == [1.0, 1.0, 0.0]
    with pytest.raises(InputError, match="2 numbers"):
        feeder(("x", "float32", ("n", 3, 2, 2)), mean=(0.0, 1.0)).feeds([first])


def test_a_row_that_brings_its_batch_is_a_run_of_its_own():
    one = feeder(("x", "float32", (3, 2)))
    rows = [{"x": np.full((3, 2), i, np.float32)} for i in range(2)]
    assert list(one.chunks(rows)) == [[0], [1]]
    assert one.feeds(rows[1:])["x"].tolist() == [[1, 1]] * 3


@pytest.mark.parametrize("count", [40, 100, None])
def test_rows_that_went_elsewhere_come_last(count):
    there = count or 50
    rows = Rows("npz", count, lambda numbers: [{"x": n} for n in (range(there) if numbers is None else numbers)])
    data = Data("a.npz", seed=3)
    used = {number for number, _ in rows.chosen(data, 32)}
    judged = [number for number, _ in rows.chosen(data, 32, after=32)]
    assert len(set(judged)) == 32
    assert judged == sorted(judged) or count is None
    fresh = rows.fresh(data, 32, 32)
    assert fresh == min(32, there - 32) == len(set(judged) - used)
    assert {number for number, _ in rows.others(data, 32)} == set(range(there)) - used
    assert all(row["x"] == number for number, row in rows.chosen(data, 32, after=32))


def test_where_all_rows_went_elsewhere_they_are_taken_again():
    rows = Rows("npz", 8, lambda numbers: [{"x": n} for n in (range(8) if numbers is None else numbers)])
    assert [number for number, _ in rows.chosen(Data("a.npz"), 32, after=32)] == list(range(8))
    assert rows.fresh(Data("a.npz"), 32, 32) == 0
    assert list(rows.others(Data("a.npz"), 32)) == []
