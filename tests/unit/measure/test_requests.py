"""Impossible requests are refused before anything runs."""

import json

import numpy as np
import pytest

from modelwright.errors import InputError, UsageError
from modelwright.measure import CompareOptions, InputChoice, PerfOptions, compare, make_subject, perf
from modelwright.models import onnx_of
from modelwright.vocabulary import Data
from support import models


@pytest.fixture
def model(tmp_path):
    return models.save(models.mlp(), tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        PerfOptions(duration_s=float("nan")),
        PerfOptions(duration_s=float("inf")),
        PerfOptions(duration_s=0.0),
        PerfOptions(duration_s=-1.0),
        PerfOptions(iterations=0),
        PerfOptions(iterations=5, duration_s=1.0),
        PerfOptions(warmup=-1),
        PerfOptions(sessions=0),
        PerfOptions(threads=0),
        PerfOptions(timeout_s=float("nan")),
        PerfOptions(inputs=InputChoice(batch=0)),
        PerfOptions(inputs=InputChoice(dims={"batch": 0})),
    ],
    ids=repr,
)
def test_perf_refuses_numbers_that_mean_nothing(model, options):
    with pytest.raises(UsageError):
        perf(model, "cpu", options)


@pytest.mark.parametrize(
    "options",
    [
        CompareOptions(budget_s=float("inf")),
        CompareOptions(budget_s=0),
        CompareOptions(alpha=1.0),
        CompareOptions(min_effect=0),
        CompareOptions(threads=0),
    ],
    ids=repr,
)
def test_compare_refuses_numbers_that_mean_nothing(model, options):
    with pytest.raises(UsageError):
        compare([f"a={model}", f"b={model}"], options)


def test_a_build_folder_is_its_model(model, tmp_path):
    assert onnx_of(tmp_path) == model


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        make_subject(tmp_path / "absent.onnx", InputChoice())


def test_a_folder_of_parts_lists_them(tmp_path):
    models.save(models.mlp(), tmp_path, "encoder.onnx")
    with pytest.raises(InputError) as caught:
        onnx_of(tmp_path)
    assert "encoder.onnx" in caught.value.cause


def test_the_batch_is_the_one_really_used(model, tmp_path):
    assert make_subject(model, InputChoice()).batch == 1
    assert make_subject(model, InputChoice(batch=4)).batch == 4
    assert make_subject(model, InputChoice(dims={"batch": 3})).batch == 3
    np.savez(tmp_path / "x.npz", x=np.zeros((7, 4), np.float32))
    given = Data(str(tmp_path / "x.npz"))
    assert make_subject(model, InputChoice(given)).batch == 1
    assert make_subject(model, InputChoice(given, batch=7)).batch == 7
    with pytest.raises(InputError, match="8 rows"):
        make_subject(model, InputChoice(given, batch=8))


def test_a_fixed_batch_cannot_be_changed(tmp_path):
    fixed = models.save(models.conv_net(), tmp_path, "fixed.onnx")
    with pytest.raises(UsageError, match="batch of 8"):
        make_subject(fixed, InputChoice(batch=8))


def test_inputs_are_the_same_again_for_the_same_seed(model):
    first, second = (make_subject(model, InputChoice(Data(seed=3))).feeds["x"] for _ in range(2))
    assert (first == second).all()
    assert (first != make_subject(model, InputChoice(Data(seed=4))).feeds["x"]).any()


def test_npz_with_wrong_keys_is_refused_with_the_right_ones(model, tmp_path):
    np.savez(tmp_path / "x.npz", z=np.zeros((1, 4), np.float32))
    with pytest.raises(InputError) as caught:
        make_subject(model, InputChoice(Data(str(tmp_path / "x.npz"))))
    assert "x is missing" in caught.value.cause
    with pytest.raises(UsageError):
        make_subject(model, InputChoice(Data(str(tmp_path / "x.npz")), dims={"batch": 2}))


def test_a_hugging_face_folder_is_told_to_build_first(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "architectures": ["BertForMaskedLM"]}))
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(UsageError) as caught:
        onnx_of(tmp_path)
    assert "wright build" in caught.value.fix
