"""Inputs for a bare ONNX file, guessed from names, types and the tables they index."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from modelwright.data import generate
from modelwright.errors import InputError, UsageError
from modelwright.graph import load
from modelwright.models import index_bound, processor_hints, sized_dims, specs_from_graph, symbolic_sizes
from support import builds, models


def write(tmp_path, inputs, nodes, tensors=(), output="y"):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in tensors],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    return load(path)


@pytest.fixture
def text_model(tmp_path):
    """ids go through a Cast and an Unsqueeze before they index a table of 37 rows."""
    table = np.zeros((37, 8), np.float32)
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["a"], to=TensorProto.INT64),
        helper.make_node("Unsqueeze", ["a", "axes"], ["b"]),
        helper.make_node("Gather", ["table", "b"], ["c"]),
        helper.make_node("Cast", ["attention_mask"], ["m"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["m"], ["s"]),
        helper.make_node("Add", ["c", "s"], ["y"]),
    ]
    ints = [
        ("input_ids", TensorProto.INT32, ["batch", "sequence"]),
        ("attention_mask", TensorProto.INT64, ["batch", "sequence"]),
    ]
    return write(tmp_path, ints, nodes, [("table", table), ("axes", np.array([0]))])


def test_token_ids_stay_below_the_rows_of_the_table_they_index(text_model):
    specs = specs_from_graph(text_model, sizes={"sequence": 500})
    ids = generate(specs)["input_ids"]
    assert index_bound(text_model, "input_ids") == 37
    assert (ids.dtype, ids.shape) == (np.int32, (1, 500))
    assert ids.max() == 36


def test_masks_are_ones_and_symbols_get_usual_sizes(text_model):
    made = generate(specs_from_graph(text_model))
    assert made["attention_mask"].shape == (1, 128)
    assert (made["attention_mask"] == 1).all()


def test_symbols_are_kept_beside_the_chosen_sizes(text_model):
    spec = specs_from_graph(text_model, sizes={"batch": 4})[0]
    assert (spec.shape, spec.sizes) == (("batch", "sequence"), (4, 128))


def test_a_given_range_wins_and_is_half_open(text_model):
    ids = generate(specs_from_graph(text_model, ranges={"input_ids": (7, 8)}))["input_ids"]
    assert (ids == 7).all()


def test_an_empty_range_is_refused(text_model):
    with pytest.raises(UsageError, match="empty"):
        specs_from_graph(text_model, ranges={"input_ids": (2, 2)})


def test_unknown_dimension_or_input_gets_a_hint(text_model):
    with pytest.raises(UsageError) as error:
        specs_from_graph(text_model, sizes={"sequense": 4})
    assert "sequence" in error.value.fix
    with pytest.raises(UsageError, match="no input ids"):
        specs_from_graph(text_model, ranges={"ids": (0, 1)})


def test_a_quantized_table_bounds_too(tmp_path):
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "scale"], ["table"]),
        helper.make_node("Gather", ["table", "x"], ["y"]),
    ]
    tensors = [("q", np.zeros((11, 4), np.uint8)), ("scale", np.float32(0.1))]
    assert index_bound(write(tmp_path, [("x", TensorProto.INT64, [1, 3])], nodes, tensors), "x") == 11


def test_an_index_into_another_axis_is_no_bound(tmp_path):
    nodes = [helper.make_node("Gather", ["table", "x"], ["y"], axis=1)]
    graph = write(tmp_path, [("x", TensorProto.INT64, [1, 3])], nodes, [("table", np.zeros((11, 4), np.float32))])
    assert index_bound(graph, "x") is None


def test_integers_of_unknown_range_are_an_error_not_a_guess(tmp_path):
    nodes = [helper.make_node("Cast", ["counts"], ["y"], to=TensorProto.FLOAT)]
    graph = write(tmp_path, [("counts", TensorProto.INT64, [1, 3])], nodes)
    with pytest.raises(InputError, match="unknown range") as error:
        specs_from_graph(graph)
    assert "`data`" in error.value.fix
    assert generate(specs_from_graph(graph, ranges={"counts": (5, 9)}))["counts"].max() < 9


def test_every_dimension_without_a_size_is_named_at_once(tmp_path):
    nodes = [helper.make_node("Identity", ["wave"], ["y"])]
    inputs = [("wave", TensorProto.FLOAT, [None, None]), ("mix", TensorProto.FLOAT, [2, "slots"])]
    graph = write(tmp_path, inputs, nodes)
    with pytest.raises(InputError, match="2 dimensions have no size") as error:
        specs_from_graph(graph)
    assert "wave:1 and slots" in error.value.cause
    with pytest.raises(InputError, match="dimension slots has no size"):
        specs_from_graph(graph, sizes={"wave:1": 512})
    assert [spec.sizes for spec in specs_from_graph(graph, sizes={"wave:1": 512, "slots": 3})] == [(1, 512), (2, 3)]


@pytest.mark.parametrize("name", ["state", "h0", "c", "hidden_in"])
def test_the_state_of_a_recurrent_network_is_of_one_sample(tmp_path, name):
    """silero-vad hands on (layers, samples, values); nothing else in the file says what its middle is."""
    graph = write(tmp_path, [(name, TensorProto.FLOAT, [2, None, 128])], [helper.make_node("Identity", [name], ["y"])])
    (size,) = sized_dims(graph)
    assert (size.size, size.guessed) == (1, False)


def test_hidden_states_are_those_of_tokens_and_as_many_as_there_are(tmp_path):
    nodes = [helper.make_node("Identity", ["encoder_hidden_states"], ["y"])]
    graph = write(tmp_path, [("encoder_hidden_states", TensorProto.FLOAT, [1, None, 128])], nodes)
    with pytest.raises(InputError, match="encoder_hidden_states:1 has no size"):
        sized_dims(graph)


def test_images_with_unnamed_dimensions(tmp_path):
    graph = write(
        tmp_path,
        [("pixel_values", TensorProto.FLOAT, [None, 3, None, None])],
        [helper.make_node("Relu", ["pixel_values"], ["y"])],
    )
    spec = specs_from_graph(graph, sizes={"pixel_values:2": 64})[0]
    assert (spec.shape[0], spec.sizes) == ("pixel_values:0", (1, 3, 64, 224))


def test_sums_of_dimensions_follow_their_terms(tmp_path):
    graph = write(
        tmp_path,
        [("mask", TensorProto.FLOAT, ["batch", "past_sequence_length + sequence_length"])],
        [helper.make_node("Relu", ["mask"], ["y"])],
    )
    assert specs_from_graph(graph)[0].sizes == (1, 16 + 128)


def test_a_dimension_nobody_knows_is_asked_for(tmp_path):
    graph = write(tmp_path, [("x", TensorProto.FLOAT, [1, "foo"])], [helper.make_node("Relu", ["x"], ["y"])])
    with pytest.raises(InputError, match="no size"):
        specs_from_graph(graph)
    assert specs_from_graph(graph, sizes={"foo": 9})[0].sizes == (1, 9)


def test_initializers_listed_as_inputs_are_not_fed(tmp_path):
    graph = write(
        tmp_path,
        [("x", TensorProto.FLOAT, [1, 2]), ("w", TensorProto.FLOAT, [1, 2])],
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [("w", np.zeros((1, 2), np.float32))],
    )
    assert [spec.name for spec in specs_from_graph(graph)] == ["x"]


def build_folder(folder, inputs, place=""):
    """The manifest of a build whose model lies at `place`."""
    builds.write_manifest(folder, (place,), inputs)


TOKENS = {
    "name": "input_ids",
    "dtype": "int64",
    "shape": ["batch", "sequence"],
    "sizes": [2, 5],
    "fill": {"kind": "tokens", "low": 3, "high": 9, "avoid": [4], "last": 8},
}


def test_what_an_export_recorded_wins_over_every_guess(text_model):
    build_folder(text_model.path.parent, [TOKENS])
    ids, mask = specs_from_graph(text_model)
    assert (ids.fill.low, ids.fill.high, ids.fill.avoid, ids.fill.last) == (3, 9, (4,), 8)
    # The graph's own type, one row where any number is fine, and the length that was recorded.
    assert (ids.dtype, ids.sizes) == ("int32", (1, 5))
    assert mask.fill.kind == "ones"
    assert symbolic_sizes(text_model)["sequence"] == 5
    for seed in range(30):
        row = generate([ids], seed)["input_ids"][0]
        assert row[-1] == 8
        assert not {8, 4} & set(row[:-1].tolist())


def test_what_the_user_says_wins_over_what_was_recorded(text_model):
    build_folder(text_model.path.parent, [TOKENS])
    ids, _ = specs_from_graph(text_model, sizes={"sequence": 7}, ranges={"input_ids": (0, 2)})
    assert (ids.fill.kind, ids.fill.high, ids.sizes) == ("integers", 2, (1, 7))


def test_a_component_is_found_in_the_manifest_above_it(text_model):
    folder = text_model.path.parent
    (folder / "encoder").mkdir()
    path = text_model.path.rename(folder / "encoder" / "model.onnx")
    build_folder(folder, [TOKENS], place="encoder")
    assert specs_from_graph(load(path))[0].fill.last == 8
    (folder / "decoder").mkdir()
    build_folder(folder, [TOKENS], place="decoder")
    assert specs_from_graph(load(path))[0].fill.last is None


def test_another_model_beside_a_build_is_not_part_of_it(text_model):
    build_folder(text_model.path.parent, [TOKENS])
    path = text_model.path.rename(text_model.path.with_name("other.onnx"))
    assert specs_from_graph(load(path))[0].fill.last is None


@pytest.mark.parametrize("content", ["", "[]", "{}", "[" * 9999], ids=["empty", "list", "nothing", "deep"])
def test_beside_a_manifest_that_proves_nothing_a_model_is_a_plain_model(text_model, content):
    (text_model.path.parent / "wright.json").write_text(content)
    assert specs_from_graph(text_model)[0].fill.last is None


@pytest.mark.parametrize("change", [{"fill": {"kind": "magic"}}, {"sizes": "many"}, {"name": None}])
def test_inputs_that_nobody_recorded_like_that_are_refused(text_model, change):
    build_folder(text_model.path.parent, [{**TOKENS, **change}])
    with pytest.raises(InputError, match="cannot be read as a build"):
        specs_from_graph(text_model)


def detector(shape, **metadata):
    """A graph that takes images, as a detector's exporter describes it."""
    relu = helper.make_node("Relu", ["images"], ["output0"])
    found = models.model([relu], [models.value("images", shape=shape)], [models.value("output0", shape=shape)])
    for key, text in metadata.items():
        found.metadata_props.add(key=key, value=text)
    return found


def origins(graph, **known):
    return {item.name: (item.size, item.origin) for item in sized_dims(graph, **known)}


def test_a_size_is_what_the_file_says_about_itself_before_it_is_a_guess(tmp_path):
    shape = ["batch", 3, "height", "width"]
    told = load(models.save(detector(shape, imgsz="[640, 480]"), tmp_path / "told"))
    assert origins(told) == {
        "batch": (1, "one sample"),
        "height": (640, "the file's metadata"),
        "width": (480, "the file's metadata"),
    }
    assert [spec.sizes for spec in specs_from_graph(told)] == [(1, 3, 640, 480)]
    silent = load(models.save(detector(shape), tmp_path / "silent"))
    assert origins(silent)["height"] == (224, "a guess")
    odd = load(models.save(detector(shape, imgsz="as you like"), tmp_path / "odd"))
    assert origins(odd)["height"] == (224, "a guess")


def test_data_counts_before_the_processor_and_that_before_the_file(tmp_path):
    graph = load(models.save(detector(["batch", "height", "width", 3], imgsz="[640, 640]"), tmp_path / "m"))
    (tmp_path / "preprocessor_config.json").write_text(
        '{"do_center_crop": true, "crop_size": {"height": 96, "width": 64}}'
    )
    hints = processor_hints(tmp_path)
    assert origins(graph, processor=hints)["width"] == (64, "the processor")
    assert origins(graph, processor=hints, seen={"width": 48})["width"] == (48, "the data")
    assert origins(graph, processor=hints, seen={"width": 48}, said={"width": 32})["width"] == (32, "as asked")


def test_channels_that_stand_last_leave_the_other_places_to_height_and_width(tmp_path):
    graph = load(models.save(detector([None, None, None, 3], imgsz="[640, 320]"), tmp_path / "m"))
    assert origins(graph) == {
        "images:0": (1, "one sample"),
        "images:1": (640, "the file's metadata"),
        "images:2": (320, "the file's metadata"),
    }


@pytest.mark.parametrize(
    ("settings", "length"), [({"model_max_length": 77}, 77), ({"model_max_length": 1e30}, None), ({}, None)]
)
def test_a_tokenizer_says_how_long_a_text_is(tmp_path, settings, length):
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    assert processor_hints(tmp_path).text == length


def test_a_length_is_that_of_the_input_beside_it(tmp_path):
    nodes = [helper.make_node("Cast", ["input_lengths"], ["y"], to=TensorProto.FLOAT)]
    inputs = [("input", TensorProto.INT64, ["batch", "phonemes"]), ("input_lengths", TensorProto.INT64, ["batch"])]
    nodes.append(helper.make_node("Gather", ["table", "input"], ["z"]))
    graph = write(tmp_path, inputs, nodes, [("table", np.zeros((9, 2), np.float32))])
    made = generate(specs_from_graph(graph, sizes={"phonemes": 40}))
    assert made["input"].shape == (1, 40)
    assert made["input_lengths"].tolist() == [40]
