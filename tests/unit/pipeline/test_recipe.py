"""A recipe is resolved in layers, says everything, and refuses what it does not know."""

import re
import tomllib

import numpy as np
import pytest
from onnx import TensorProto, helper

from modelwright.errors import InputError, UsageError, WrightError
from modelwright.models import OnnxSource
from modelwright.pipeline import Recipe, RecipeChoices, make_recipe, read_layer, resolve_recipe, schema_of, toml_text
from modelwright.stages.optimize import PRESETS
from modelwright.targets import Cpu, _isa, parse_target
from modelwright.vocabulary import Data
from support.models import conv_net, model, qdq, save, value


@pytest.fixture
def source(tmp_path):
    return OnnxSource(str(save(conv_net(), tmp_path)))


@pytest.mark.parametrize(
    ("target", "precision", "compiles"),
    [
        ("cpu", "fp32", False),
        ("qnn-npu", "w8a16", False),
        ("qnn-npu:soc=x-elite", "w8a16", True),
        ("qnn-gpu", "fp32", False),
        ("openvino-npu", "w8a16", False),
        ("openvino-cpu", "fp32", False),
        ("dml-gpu", "fp32", False),
        ("vitisai-npu", "fp32", False),
    ],
)
def test_auto_becomes_what_the_policy_says(source, target, precision, compiles):
    recipe = resolve_recipe(source, parse_target(target))
    assert recipe.precision == precision
    assert (recipe.quantize is not None) == (precision != "fp32")
    assert (recipe.compile is not None) == compiles


def test_the_command_line_wins_over_the_file_and_the_file_over_the_policy(source):
    npu = parse_target("qnn-npu")
    assert resolve_recipe(source, npu, file={"precision": "w8a8"}).precision == "w8a8"
    assert resolve_recipe(source, npu, RecipeChoices(precision="fp16"), {"precision": "w8a8"}).precision == "fp16"
    kept = resolve_recipe(source, npu, RecipeChoices(precision="w8a8"), {"quantize": {"samples": 5}})
    assert (kept.quantize.samples, kept.quantize.precision) == (5, "w8a8")


def test_an_explicit_precision_is_never_resolved_again(source):
    for target in ("qnn-npu", "cpu", "openvino-npu", "dml-gpu"):
        assert (
            resolve_recipe(source, parse_target(target), RecipeChoices(precision="w8a8")).quantize.precision == "w8a8"
        )


def test_a_quantized_source_keeps_its_own_precision(tmp_path):
    source = OnnxSource(str(save(qdq(), tmp_path)))
    recipe = resolve_recipe(source, parse_target("qnn-npu"))
    assert (recipe.precision, recipe.quantize) == ("w8a8", None)


def test_an_ep_that_quantizes_by_itself_is_never_handed_qdq(source):
    with pytest.raises(UsageError, match="quantizes by itself"):
        resolve_recipe(source, parse_target("vitisai-npu"), RecipeChoices(precision="w8a8"))


@pytest.mark.parametrize("name", ["qnn-npu:soc=x-elite", "cpu", "cpu:isa=vnni", "cpu:isa=host"])
def test_a_written_recipe_reads_back_to_itself(source, tmp_path, name):
    target = parse_target(name)
    recipe = resolve_recipe(source, target, RecipeChoices(precision="w8a8"))
    path = tmp_path / "recipe.toml"
    path.write_text(toml_text(recipe), encoding="utf-8")
    tomllib.loads(path.read_text(encoding="utf-8"))
    assert resolve_recipe(source, target, file=read_layer(path)) == recipe


@pytest.mark.parametrize(
    ("layer", "hint"),
    [
        ({"quantise": {}}, "did you mean quantize"),
        ({"quantize": {"smaples": 3}}, "did you mean samples"),
        ({"optimize": {"pases": []}}, "did you mean passes"),
        ({"optimize": {"passes": ["conv_bn_fussion"]}}, "did you mean conv_bn_fusion"),
        ({"validation": {"samples": "many"}}, "a whole number"),
        ({"tune": {"forbids": []}}, "did you mean forbid"),
        ({"tune": {"forbid": ["denormal"]}}, "did you mean denormals"),
        ({"tune": {"axes": ["+gelu_fusoin"]}}, "gelu_fusion"),
        ({"tune": {"pin": ["threds=1"]}}, "did you mean threads"),
    ],
)
def test_what_a_recipe_does_not_know_is_an_error_with_a_hint(source, layer, hint):
    with pytest.raises(InputError) as caught:
        resolve_recipe(source, parse_target("qnn-npu"), file=layer)
    assert hint in f"{caught.value.cause} {caught.value.fix}"


def test_what_a_search_may_do_is_part_of_a_recipe_and_reads_back(source, tmp_path):
    table = {"axes": ["threads", "level"], "pin": ["spinning=off"], "forbid": ["level=basic"], "add": ["opt.a=1"]}
    recipe = resolve_recipe(source, parse_target("cpu"), file={"tune": table})
    assert recipe.tune.forbid == ("level=basic",)
    path = tmp_path / "recipe.toml"
    path.write_text(toml_text(recipe), encoding="utf-8")
    assert resolve_recipe(source, parse_target("cpu"), file=read_layer(path)) == recipe


def test_a_recipe_for_another_target_is_refused(source):
    with pytest.raises(UsageError, match="another target"):
        resolve_recipe(source, parse_target("cpu"), file={"target": "qnn-npu"})


def test_a_stage_can_be_switched_off(source):
    recipe = resolve_recipe(source, parse_target("qnn-npu:soc=x-elite"), file={"optimize": False, "compile": False})
    assert recipe.optimize is None
    assert recipe.compile is None


def passes_of(source, *words):
    recipe = resolve_recipe(source, parse_target("cpu"), RecipeChoices(passes=words))
    return recipe.optimize.passes, recipe.reasons.passes


def test_a_pass_of_a_preset_can_be_left_out(source):
    without = [name for name in PRESETS["portable"] if name != "constant_folding"]
    assert passes_of(source, "portable", "-constant_folding") == (tuple(without), ())
    assert passes_of(source, "-constant-folding") == (tuple(without), ())
    shared = passes_of(source, "portable", "transformers", "-constant_folding")[0]
    assert set(shared) == {*without, *PRESETS["transformers"]} - {"constant_folding"}


def test_what_needs_a_pass_that_is_left_out_goes_with_it_and_is_told(source):
    passes, told = passes_of(source, "ort-extended", "-gelu_fusion")
    assert set(PRESETS["ort-extended"]) - set(passes) == {"gelu_fusion", "bias_gelu_fusion"}
    assert told == ("bias_gelu_fusion is left out: it needs gelu_fusion",)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("portable", "-gelu_fusion"), "not among the passes"),
        (("none", "-constant_folding"), "not among the passes"),
        (("constant_folding", "-constant_folding"), "constant_folding runs it"),
        (("ort-extended", "bias_gelu_fusion", "-gelu_fusion"), "bias_gelu_fusion runs it"),
        (("portable", "-constant_foldin"), "there is no pass called"),
        (("portable", "-"), "there is no pass called"),
    ],
)
def test_a_pass_that_cannot_be_left_out_is_refused(source, words, why):
    with pytest.raises(InputError) as caught:
        passes_of(source, *words)
    assert why in str(caught.value)


def test_a_target_without_a_compiled_form_refuses_to_compile(source):
    with pytest.raises(UsageError, match="cannot be compiled"):
        resolve_recipe(source, parse_target("cpu"), RecipeChoices(compile=True))


def test_an_npu_gets_fixed_shapes(tmp_path):
    model = conv_net()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    source = OnnxSource(str(save(model, tmp_path)))
    assert resolve_recipe(source, parse_target("qnn-npu")).optimize.fix_dims == (("batch", 1),)
    assert resolve_recipe(source, parse_target("cpu")).optimize.fix_dims == ()
    assert resolve_recipe(source, parse_target("cpu"), RecipeChoices(dims=(("batch", 4),))).optimize.fix_dims == (
        ("batch", 4),
    )


def test_an_npu_gets_the_shapes_of_the_users_own_data(tmp_path):
    """Sizes that no name suggests, and integers whose range nobody knows."""
    nodes = [helper.make_node("Cast", ["codes"], ["y"], to=TensorProto.FLOAT)]
    values = [
        helper.make_tensor_value_info(name, dtype, [None, "width"])
        for name, dtype in (("codes", TensorProto.INT32), ("y", TensorProto.FLOAT))
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    source = OnnxSource(str(save(model, tmp_path)))
    np.savez(tmp_path / "real.npz", codes=np.zeros((5, 1, 40), np.int32))
    choices = RecipeChoices(data=Data(str(tmp_path / "real.npz")))
    assert resolve_recipe(source, parse_target("qnn-npu"), choices).optimize.fix_dims == (("codes:0", 1), ("width", 40))


def test_the_schema_is_published_and_strict():
    schema = schema_of(Recipe)
    assert schema["additionalProperties"] is False
    assert {"export", "optimize", "quantize", "compile", "validation"} <= set(schema["properties"])


def test_nothing_is_made_from_nonsense():
    with pytest.raises(InputError):
        make_recipe({"target": "cpu"}, "test")


def test_only_the_cpu_does_without_pairs_that_no_kernel_needs(source):
    def pairs(target, word):
        return resolve_recipe(source, parse_target(target), RecipeChoices(precision=word), None).quantize.pairs

    assert [pairs("cpu", "w8a8"), pairs("cpu", "w8a16"), pairs("qnn-npu", "w8a8")] == ["needed", "all", "all"]


@pytest.mark.parametrize("word", ["w8a8", "dynamic", "w8a8+fp16"])
def test_weights_leave_room_for_products_that_saturate_unless_the_target_says_they_do_not(source, word):
    def resolved(target, file=None):
        return resolve_recipe(source, parse_target(target), RecipeChoices(precision=word), file)

    for target in ("cpu", "cpu:isa=avx2", "cpu:isa=avx512", "openvino-cpu"):
        assert resolved(target).quantize.reduce_range is True, target
    for target in ("cpu:isa=vnni", "cpu:isa=dotprod", "qnn-npu", "openvino-npu"):
        assert resolved(target).quantize.reduce_range is False, target
    assert "cpu:isa=vnni keeps 8 bits" in resolved("cpu").reasons.reduce_range
    assert "exactly" in resolved("cpu:isa=vnni").reasons.reduce_range
    asked = resolved("cpu", {"quantize": {"reduce_range": False}})
    assert (asked.quantize.reduce_range, asked.reasons.reduce_range) == (False, "it was asked for")
    assert resolved("qnn-npu", {"quantize": {"reduce_range": True}}).quantize.reduce_range is True


@pytest.mark.parametrize("word", ["w8a16", "w16a16", "fp16", "int4"])
def test_weights_without_8_bit_products_keep_all_their_bits(source, word):
    recipe = resolve_recipe(source, parse_target("cpu"), RecipeChoices(precision=word))
    assert (recipe.quantize.reduce_range, recipe.reasons.reduce_range) == (False, None)
    if word == "w8a16":
        eight = {"quantize": {"overrides": [{"tensor": "x", "dtype": "uint8"}]}}
        assert (
            resolve_recipe(source, parse_target("cpu"), RecipeChoices(precision=word), eight).quantize.reduce_range
            is True
        )


def test_a_build_for_this_host_names_the_instruction_set_it_found(source, monkeypatch):
    old, new = (Cpu("Old", 2, 2, 2.0, flags) for flags in (("avx2",), ("avx2", "avx512_vnni")))
    for cpu, isa, reduced in ((old, "avx2", True), (new, "vnni", False)):
        monkeypatch.setattr(_isa, "read_cpu", lambda cpu=cpu: cpu)
        recipe = resolve_recipe(source, parse_target("cpu:isa=host"), RecipeChoices(precision="w8a8"))
        assert (recipe.target, recipe.quantize.reduce_range) == (f"cpu:isa={isa}", reduced)
        assert recipe.reasons.reduce_range.startswith("this host")


def test_data_is_a_table_or_a_word_and_the_command_line_may_change_how_many(source):
    cpu = parse_target("cpu")
    word = resolve_recipe(source, cpu, file={"precision": "w8a8", "data": "mine.py:rows"})
    table = resolve_recipe(source, cpu, file={"precision": "w8a8", "data": {"source": "mine.py:rows"}})
    assert word == table
    fewer = resolve_recipe(source, cpu, RecipeChoices(samples=3, seed=7), {"precision": "w8a8", "data": "mine.py:rows"})
    assert (fewer.data.source, fewer.data.seed, fewer.quantize.samples) == ("mine.py:rows", 7, 3)
    other = RecipeChoices(precision="w8a8", data=Data("other.py:rows"))
    assert resolve_recipe(source, cpu, other, {"data": {"source": "mine.py:rows", "scale": 0.5}}).data.scale is None


def test_a_recipe_of_an_earlier_version_is_answered_with_what_to_write(tmp_path):
    path = tmp_path / "old.toml"
    path.write_text('schema_version = 1\ncalibration = "real.npz"\ncalibration_seed = 4\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_layer(path)
    assert 'source = "real.npz" and seed = 4' in caught.value.fix


def test_data_that_can_be_none_is_a_bad_recipe(source):
    with pytest.raises(InputError, match="samples"):
        resolve_recipe(source, parse_target("cpu"), file={"data": {"source": "a.npz", "samples": 0}})


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        ({"precision": "w8a8", "quantize": {"precision": "w8a16"}}, "precision is w8a8"),
        ({"precision": "fp32", "quantize": {"method": "mse"}}, r"\[quantize\] says method"),
        ({"compile": {"target": "qnn-npu"}}, "target is cpu"),
        (
            {"precision": "w8a8", "data": {"source": "x.npz", "samples": 8}, "quantize": {"samples": 4}},
            "data.samples is 8",
        ),
        ({"export": {"task": "fill-mask"}}, "export section"),
        ({"reasons": {"bogus": "x"}}, "known keys"),
    ],
    ids=str,
)
def test_a_recipe_that_contradicts_itself_or_its_model_is_refused(source, layer, why):
    with pytest.raises(WrightError) as caught:
        resolve_recipe(source, parse_target("cpu"), file=layer)
    assert re.search(why, caught.value.cause)


def test_options_of_the_ep_go_wherever_it_compiles_or_is_asked_and_nowhere_else(source):
    choices = RecipeChoices(provider_options=(("vtcm_mb", "4"),))
    chip = resolve_recipe(source, parse_target("qnn-npu:soc=x-elite"), choices)
    assert chip.compile.provider_options == chip.check.provider_options == (("vtcm_mb", "4"),)
    assert resolve_recipe(source, parse_target("qnn-npu"), choices).compile is None
    with pytest.raises(UsageError, match="hands no options"):
        resolve_recipe(source, parse_target("cpu"), choices)
    with pytest.raises(UsageError, match="hands no options"):
        resolve_recipe(source, parse_target("qnn-npu"), choices, {"check": False})


def test_every_target_but_the_cpu_is_asked_itself(source):
    asked = {name: resolve_recipe(source, parse_target(name)).check for name in ("cpu", "cpu:isa=vnni", "qnn-npu")}
    assert [name for name, check in asked.items() if check is not None] == ["qnn-npu"]


def test_a_detector_keeps_the_size_that_its_file_names_and_the_recipe_says_so(tmp_path):
    shape = ["batch", 3, "height", "width"]
    relu = helper.make_node("Relu", ["images"], ["found"])
    detector = model([relu], [value("images", shape=shape)], [value("found", shape=shape)])
    helper.set_model_props(detector, {"imgsz": "[640, 480]"})
    recipe = resolve_recipe(OnnxSource(str(save(detector, tmp_path))), parse_target("qnn-npu"))
    assert recipe.optimize.fix_dims == (("batch", 1), ("height", 640), ("width", 480))
    assert {item.name: item.origin for item in recipe.reasons.sizes} == {
        "batch": "one sample",
        "height": "the file's metadata",
        "width": "the file's metadata",
    }
    assert "the file's metadata" in toml_text(recipe)
    assert resolve_recipe(OnnxSource(str(tmp_path / "model.onnx")), parse_target("cpu")).reasons.sizes == ()
