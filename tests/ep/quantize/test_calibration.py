"""Ranges equal onnxruntime's own, memory stays flat, and data that does not fit stops the stage."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod
from onnxruntime.quantization.calibrate import create_calibrator

from ep.quantize.graphs import Builder, conv_net, image, saved, tokens, transformer
from modelwright.data import DataSource, samples
from modelwright.errors import InputError
from modelwright.graph import load
from modelwright.stages.quantize import QuantizeParams, run_quantize
from modelwright.stages.quantize._histogram import histograms, mse_range, percentile_range
from modelwright.stages.quantize._model import prepare
from modelwright.stages.quantize._ranges import Range, Watch, observe
from modelwright.stages.quantize._session import open_session
from modelwright.stages.quantize._static import _watched
from modelwright.vocabulary import Data

OPERATORS = ("Add", "Conv", "Gemm", "MatMul", "Relu", "Softmax")


class Reader(CalibrationDataReader):
    def __init__(self, drawn):
        self.drawn = iter(drawn)

    def get_next(self):
        return next(self.drawn, None)


@pytest.fixture(params=["conv", "transformer"])
def case(request, tmp_path):
    """A model on disk, our view of it, and the samples as a list."""
    model = conv_net() if request.param == "conv" else transformer()
    path = saved(model, tmp_path)
    graph = load(path)
    drawn = samples(DataSource(Data(seed=3)), graph, 6)
    as_list = list(drawn)
    return path, prepare(graph, tmp_path, integers=True, raise_opset=True).model, drawn, as_list, tmp_path


@pytest.mark.parametrize("same_session", [True, False])
def test_min_and_max_equal_those_of_onnxruntime(case, same_session):
    """To the bit with our session options; without packed weights its kernels round the last bit differently."""
    path, model, drawn, as_list, folder = case
    theirs = create_calibrator(Path(path), OPERATORS, str(folder / "augmented.onnx"))
    if same_session:
        theirs.infer_session = open_session(folder / "augmented.onnx")
    theirs.collect_data(Reader(as_list))
    expected = theirs.compute_data()
    ours = observe(model, Watch(_watched(model, OPERATORS, set())), drawn, folder)
    assert set(ours.ranges) == set(expected.keys())
    for name, found in ours.ranges.items():
        low, high = (float(value.item()) for value in expected[name].range_value)
        exact = (float(found.low), float(found.high)) == (low, high)
        close = (float(found.low), float(found.high)) == pytest.approx((low, high), rel=1e-6, abs=1e-7)
        assert exact if same_session else close, name


def test_percentile_ranges_equal_those_of_onnxruntime(case, capsys):
    path, model, drawn, as_list, folder = case
    theirs = create_calibrator(
        Path(path),
        OPERATORS,
        str(folder / "augmented.onnx"),
        CalibrationMethod.Percentile,
        extra_options={"symmetric": False, "percentile": 99.0},
    )
    theirs.collect_data(Reader(as_list))
    expected = theirs.compute_data()
    seen = observe(model, Watch(_watched(model, OPERATORS, set())), drawn, folder)
    filled = histograms(model, seen, drawn, folder)
    for name, histogram in filled.items():
        found = percentile_range(histogram, seen.ranges[name], 99.0)
        low, high = map(float, expected[name].range_value)
        assert (float(found.low), float(found.high)) == pytest.approx((low, high), rel=1e-6), name


@pytest.mark.parametrize(("outliers", "least", "most"), [(0, 3.0, 5.5), (1, 3.0, 12.0), (100_000, 55.0, 60.0)])
def test_error_ranges_cut_off_what_is_rare_and_keep_what_is_not(outliers, least, most):
    rng = np.random.default_rng(0)
    values = np.maximum(rng.standard_normal(200_000), 0).astype(np.float32)
    largest = np.float32(60) if outliers else values.max()
    counts, edges = np.histogram(values, 2048, range=(-largest, largest))
    counts = 100 * counts
    counts[-1] += outliers
    seen = Range(np.float32(0), largest)
    found = mse_range((counts, edges), seen, 8)
    assert float(found.low) == 0
    assert least <= float(found.high) <= most
    # Sixteen bits have levels to spare.
    assert float(mse_range((counts, edges), seen, 16).high) >= 0.9 * float(largest)


@pytest.mark.parametrize("method", ["mse", "percentile"])
def test_methods_change_the_result_and_leave_outliers_out(tmp_path, method):
    source = saved(conv_net(), tmp_path)
    made = {}
    for name in ("minmax", method):
        (tmp_path / name).mkdir()
        params = QuantizeParams("w8a8", method=name, percentile=99.0, samples=4)
        outcome = run_quantize(source, str(tmp_path / name), params, DataSource())
        made[name] = (tmp_path / name / "model.onnx").read_bytes()
        assert outcome.calibration.method.startswith(name)
    assert made["minmax"] != made[method]


def test_made_up_samples_are_said_loudly(tmp_path):
    outcome = run_quantize(
        saved(conv_net(), tmp_path, "in.onnx"),
        str(tmp_path),
        QuantizeParams("w8a8", samples=2),
        DataSource(),
    )
    assert outcome.calibration.random
    assert "made-up" in outcome.warnings[0]


def test_static_precisions_never_invent_calibration_data(tmp_path):
    with pytest.raises(InputError, match="needs calibration"):
        run_quantize(saved(conv_net(), tmp_path), str(tmp_path), QuantizeParams("w8a8"), None)


def test_folder_archive_and_reader_give_the_same_bytes(tmp_path):
    source = saved(conv_net(), tmp_path)
    folder = tmp_path / "data"
    folder.mkdir()
    for index in range(4):
        np.savez(folder / f"{index}.npz", **image(index))
    rows = np.concatenate([image(index)["image"] for index in range(4)])
    np.savez(tmp_path / "rows.npz", image=rows)
    np.savez_compressed(tmp_path / "stacked.npz", image=rows[:, None])
    reader = tmp_path / "reader.py"
    reader.write_text(
        "import numpy as np\n"
        "def images():\n"
        f"    for row in np.load({str(tmp_path / 'rows.npz')!r})['image']:\n"
        "        yield {'image': row[None]}\n"
    )
    texts = (str(folder), str(tmp_path / "rows.npz"), str(tmp_path / "stacked.npz"), f"{reader}:images")
    results = []
    for index, text in enumerate(texts):
        work = tmp_path / f"work{index}"
        work.mkdir()
        outcome = run_quantize(source, str(work), QuantizeParams("w8a8"), DataSource(Data(text)))
        assert (outcome.calibration.samples, outcome.calibration.random) == (4, False)
        results.append((outcome.calibration.digest, (work / "model.onnx").read_bytes()))
    assert len(set(results)) == 1


def test_identity_follows_the_content(tmp_path):
    for index in range(2):
        np.savez(tmp_path / f"{index}.npz", **image(index))
    source = DataSource(Data(str(tmp_path)))
    first = source.identity(8)
    assert first == source.identity(8)
    np.savez(tmp_path / "1.npz", **image(7))
    assert first != source.identity(8)
    assert DataSource(Data(seed=0)).identity(8) != DataSource(Data(seed=1)).identity(8)


BAD = {
    "wrong name": ({"picture": image(0)["image"]}, "the model takes image; the rows hold picture"),
    "wrong type": ({"image": image(0)["image"].astype(np.int32)}, "whole numbers may be pixels"),
    "wrong shape": ({"image": image(0)["image"][:, :, :8]}, "gives [1, 3, 8, 16], the model takes [1, 3, 16, 16]"),
}


@pytest.mark.parametrize("case_name", BAD)
def test_samples_that_do_not_fit_are_refused_with_expected_and_given(tmp_path, case_name):
    arrays, words = BAD[case_name]
    folder = tmp_path / "data"
    folder.mkdir()
    np.savez(folder / "0.npz", **arrays)
    with pytest.raises(InputError) as caught:
        run_quantize(saved(conv_net(), tmp_path), str(tmp_path), QuantizeParams("w8a8"), DataSource(Data(str(folder))))
    assert words in caught.value.cause


@pytest.mark.parametrize(
    "source",
    [
        DataSource(Data("missing.npz")),
        DataSource(Data("missing")),
        DataSource(Data("missing.py:read")),
    ],
)
def test_data_that_cannot_be_loaded_stops_the_stage(tmp_path, source):
    with pytest.raises(InputError):
        run_quantize(saved(conv_net(), tmp_path), str(tmp_path), QuantizeParams("w8a8"), source)


@pytest.mark.parametrize("body", ["raise OSError('gone')", "yield 3", "return []", "yield {'image': 'text'}"])
def test_a_failing_reader_is_bad_input_not_a_traceback(tmp_path, body):
    (tmp_path / "reader.py").write_text(f"def read():\n    {body}\n")
    with pytest.raises(InputError):
        run_quantize(
            saved(conv_net(), tmp_path),
            str(tmp_path),
            QuantizeParams("w8a8"),
            DataSource(Data(f"{tmp_path}/reader.py:read")),
        )


def test_an_unrepeatable_reader_is_found_out(tmp_path):
    (tmp_path / "reader.py").write_text(
        "import numpy as np\n"
        "def read():\n"
        "    for _ in range(2):\n"
        "        yield {'image': np.random.default_rng().random((1, 3, 16, 16), np.float32)}\n"
    )
    with pytest.raises(InputError, match="changed"):
        run_quantize(
            saved(conv_net(), tmp_path),
            str(tmp_path),
            QuantizeParams("w8a8", method="percentile"),
            DataSource(Data(f"{tmp_path}/reader.py:read")),
        )


@pytest.mark.parametrize(("value", "word"), [(-1.0, "NaN"), (0.0, "infinity")])
def test_a_tensor_that_is_not_finite_is_named(tmp_path, value, word):
    """One bad value in the middle of a tensor: onnxruntime's own reductions pass over a NaN there."""
    make = Builder()
    make.add("Log", ["x"], "logged")
    make.add("MatMul", ["logged", make.weight("w", 64, 8)], "y")
    spec = onnx.helper.make_tensor_value_info
    model = make.model([spec("x", 1, [1, 64])], [spec("y", 1, [1, 8])])
    x = np.ones((1, 64), np.float32)
    x[0, 33] = value
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "0.npz", x=np.ones((1, 64), np.float32))
    np.savez(tmp_path / "data" / "1.npz", x=x)
    with pytest.raises(InputError, match=f"tensor logged holds {word} in calibration sample 1"):
        run_quantize(
            saved(model, tmp_path),
            str(tmp_path),
            QuantizeParams("w8a8"),
            DataSource(Data(str(tmp_path / "data"))),
        )


@pytest.mark.parametrize("method", ["minmax", "mse"])
def test_an_infinite_mask_and_a_tail_in_double_precision_stay_as_they_are(tmp_path, method):
    """A pitch tracker: what lies outside of the band is -inf, and the mean over the band is computed in double."""
    make, spec = Builder(), onnx.helper.make_tensor_value_info
    make.add("MatMul", ["x", make.weight("w", 64, 32)], "scores")
    outside = make.constant("outside", np.arange(32) < 4)
    make.add("Where", [outside, make.constant("nothing", np.array(-np.inf, np.float32)), "scores"], "inside")
    make.add("Cast", ["inside"], "exact", to=onnx.TensorProto.DOUBLE)
    make.add("Softmax", ["exact"], "y", axis=-1)
    model = make.model([spec("x", 1, [1, 64])], [spec("y", onnx.TensorProto.DOUBLE, [1, 32])])
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "0.npz", x=np.random.default_rng(0).random((1, 64), np.float32))
    (tmp_path / "out").mkdir()
    made = run_quantize(
        saved(model, tmp_path),
        str(tmp_path / "out"),
        QuantizeParams("w8a16", op_types=("all",), method=method),
        DataSource(Data(str(tmp_path / "data"))),
    )
    assert any("(nothing reaches infinity)" in warning for warning in made.warnings)
    kinds = [node.op_type for node in onnx.load(tmp_path / "out" / "model.onnx").graph.node]
    assert kinds.count("Softmax") == kinds.count("Where") == 1
    assert kinds[-3:] == ["Where", "Cast", "Softmax"]


@pytest.mark.parametrize("word", ["w8a8", "w8a16"])
def test_nodes_with_a_huge_range_stay_float_and_are_named(tmp_path, word):
    """The mask of an exported transformer: one scale for -3.4e38 would erase all scores."""
    model = transformer()
    low = next(item for item in model.graph.initializer if item.name == "low")
    low.CopyFrom(onnx.numpy_helper.from_array(np.float32(-3.4e38), "low"))
    source = saved(model, tmp_path, "in.onnx")
    padded = tokens(0)
    padded["attention_mask"][0, 12:] = 0
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "0.npz", **padded)
    np.savez(tmp_path / "data" / "1.npz", **tokens(1))
    data = DataSource(Data(str(tmp_path / "data")))
    outcome = run_quantize(source, str(tmp_path), QuantizeParams(word), data)
    assert outcome.measured == word
    before, after = (
        ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, padded)[0].ravel()
        for path in (source, str(tmp_path / "model.onnx"))
    )
    assert before @ after / np.linalg.norm(before) / np.linalg.norm(after) > 0.95
    assert any("bias" in warning for warning in outcome.warnings) == (word == "w8a16")


@pytest.mark.parametrize("word", ["fp16", "dynamic", "w8a8", "int4"])
def test_weights_that_are_not_numbers_are_refused(tmp_path, word):
    model = transformer()
    broken = next(item for item in model.graph.initializer if item.name == "l0.up.w")
    values = onnx.numpy_helper.to_array(broken).copy()
    values[3, 5] = np.nan
    broken.CopyFrom(onnx.numpy_helper.from_array(values, broken.name))
    with pytest.raises(InputError, match="NaN"):
        run_quantize(saved(model, tmp_path), str(tmp_path), QuantizeParams(word), DataSource())


PEAK = """
import sys
from modelwright.data import DataSource
from modelwright.stages.quantize import QuantizeParams, run_quantize
from modelwright.worker._usage import peak_rss_bytes
params = QuantizeParams("w8a8", method=sys.argv[4], samples=int(sys.argv[3]))
run_quantize(sys.argv[1], sys.argv[2], params, DataSource())
print(peak_rss_bytes())
"""


@pytest.mark.parametrize("method", ["minmax", pytest.param("percentile", marks=pytest.mark.proof)])
def test_memory_does_not_grow_with_the_number_of_samples(tmp_path, method):
    """Activations of 4 MB per sample: keeping them all would show as hundreds of megabytes."""
    source = saved(transformer(seq=256, hidden=128, layers=1), tmp_path)
    peaks = []
    for count in (8, 64):
        work = tmp_path / str(count)
        work.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", PEAK, source, str(work), str(count), method],
            capture_output=True,
            text=True,
            check=True,
        )
        peaks.append(int(done.stdout.split()[-1]) / 2**20)
    assert peaks[1] - peaks[0] < 24, peaks


def test_tokens_of_the_graph_are_inside_the_vocabulary(tmp_path):
    graph = load(saved(transformer(), tmp_path))
    for sample in samples(DataSource(), graph, 4):
        assert sample.keys() == tokens(0).keys()
        assert sample["input_ids"].max() < 100
        assert (sample["attention_mask"] == 1).all()
