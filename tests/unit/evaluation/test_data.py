"""Datasets as people have them, and what happens when they do not fit."""

import json
import sys

import numpy as np
import pytest

from modelwright.errors import InputError, UsageError
from modelwright.evaluation._dataset import open_dataset, selected
from modelwright.evaluation._feeds import Feeder, split
from modelwright.judge import Allowance, parse_allowance
from modelwright.targets import SessionTensor
from modelwright.vocabulary import Data


def opened(path, **more):
    return open_dataset(Data(str(path), **more))


def feeder(*specs, scale=None, shared=None, may_batch=True):
    return Feeder([SessionTensor(*spec) for spec in specs], shared or {}, scale, may_batch=may_batch)


def test_an_npz_has_its_samples_along_the_first_axis(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.arange(6).reshape(3, 2), label=[1, 0, 2], label_names=["a", "b", "c"])
    data = opened(tmp_path / "d.npz")
    assert (data.kind, data.count, data.label_names) == ("npz", 3, ("a", "b", "c"))
    assert data.row(2)["x"].tolist() == [4, 5]


def test_arrays_that_all_samples_share_are_kept_apart(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.zeros((4, 2)), **{"shared.class_embeds": np.eye(3)})
    data = opened(tmp_path / "d.npz")
    assert data.shared["class_embeds"].shape == (3, 3)
    assert set(data.row(0)) == {"x"}


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
    assert [data.row(i)["x"].tolist() for i in range(2)] == [[0, 1, 2], [3, 4, 5]]
    assert data.row(1)["text"] == "bye"


def test_a_broken_line_is_named(tmp_path):
    (tmp_path / "data.jsonl").write_text('{"label": 1}\n{"label": \n')
    with pytest.raises(InputError, match="line 2"):
        opened(tmp_path).row(1)


def test_folders_of_images_are_classes_in_the_order_of_labels_txt(tmp_path):
    for name in ("cat", "dog"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.png").write_bytes(b"")
    assert [opened(tmp_path).row(i)["label"] for i in range(2)] == [0, 1]
    (tmp_path / "labels.txt").write_text("dog\nbird\ncat\n")
    assert [opened(tmp_path).row(i)["label"] for i in range(2)] == [2, 0]
    (tmp_path / "labels.txt").write_text("dog\n")
    with pytest.raises(InputError, match="cat"):
        opened(tmp_path)


def test_a_column_is_found_under_the_name_it_has(tmp_path):
    np.savez(tmp_path / "d.npz", pixels=np.zeros((2, 3)), fine=[1, 0])
    data = opened(tmp_path / "d.npz", columns={"label": "fine", "x": "pixels"})
    assert data.row(0)["label"] == 1
    with pytest.raises(InputError, match="no column 'coarse'"):
        opened(tmp_path / "d.npz", columns={"label": "coarse"})


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
    assert parse_allowance("1.5pt") == Allowance(0.015, relative=False)
    for text in ("", "-1%", "one", "0", "1%%", "nan"):
        with pytest.raises(UsageError, match="allowed drop"):
            parse_allowance(text)


def test_a_name_that_is_no_path_is_explained_where_no_package_can_look_it_up(monkeypatch):
    for name in ("datasets", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match="nosuch does not exist") as error:
        open_dataset(Data("nosuch"))
    assert "modelwright[datasets]" in error.value.fix
