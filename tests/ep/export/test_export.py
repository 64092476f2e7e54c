"""What an export promises: the asked opset, the same bytes, valid inputs, and a clear no."""

import dataclasses
import hashlib
import json

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from bench.families import FAMILIES, export_family, source_of

from modelwright.data import generate
from modelwright.errors import ExecutionError, InputError, UsageError
from modelwright.models import resolve
from modelwright.stages.export import ExportParams, run_export
from modelwright.stages.export._inputs import image_size
from modelwright.stages.export._load import Loaded
from modelwright.worker import run

pytestmark = pytest.mark.filterwarnings("ignore")
BY_NAME = {family.name: family for family in FAMILIES}
# The quickest strategy, for tests that are not about strategies.
QUICK = {"strategies": ("torchscript",)}


def export(folder, workdir, **options):
    chosen = {key: options.pop(key) for key in ("task", "random_weights") if key in options}
    source = resolve(str(folder), **chosen)
    workdir.mkdir()
    return run_export(source, str(workdir), ExportParams(task=source.task, **{**options, **_flags(chosen)}))


def _flags(chosen):
    return {key: value for key, value in chosen.items() if key == "random_weights"}


def test_the_same_export_gives_the_same_bytes(tmp_path):
    digests = []
    for name in ("one", "two"):
        export_family(BY_NAME["bert"], tmp_path / name)
        digests.append(hashlib.sha256((tmp_path / name / "out" / "model" / "model.onnx").read_bytes()).hexdigest())
    assert digests[0] == digests[1]


def test_weights_and_inputs_have_seeds_of_their_own(tmp_path):
    files = {}
    for seeds in ((0, 0), (1, 0), (0, 1)):
        folder = tmp_path / f"{seeds}"
        export_family(BY_NAME["bert"], folder, seed=seeds[0], input_seed=seeds[1], **QUICK)
        files[seeds] = (folder / "out" / "model" / "model.onnx").read_bytes()
    assert files[0, 0] != files[1, 0]
    assert files[0, 0] == files[0, 1]


def test_the_global_random_state_of_torch_is_left_alone(tmp_path):
    import torch

    before = torch.get_rng_state()
    export_family(BY_NAME["vilt"], tmp_path, **QUICK)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("strategy", ["transformers", "dynamo", "torchscript"])
def test_each_strategy_can_be_asked_for_alone(tmp_path, strategy):
    (part,) = export_family(BY_NAME["bert"], tmp_path, strategies=(strategy,)).components
    assert (part.strategy, part.rejected) == (strategy, ())


@pytest.mark.parametrize("opset", [17, 21])
def test_the_asked_opset_is_the_produced_one(tmp_path, opset):
    (part,) = export_family(BY_NAME["bert"], tmp_path, opset=opset).components
    model = onnx.load(tmp_path / "out" / "model" / "model.onnx")
    assert {item.domain: item.version for item in model.opset_import}[""] == part.opset == opset


def test_a_strategy_that_keeps_another_opset_is_passed_over_with_the_reason(tmp_path):
    (part,) = export_family(BY_NAME["bert"], tmp_path, opset=13).components
    assert part.strategy == "torchscript"
    assert [attempt.strategy for attempt in part.rejected] == ["transformers", "dynamo"]
    assert all("opset 18, not 13" in attempt.reason for attempt in part.rejected)


def test_an_opset_nobody_can_write_is_an_error_with_every_reason(tmp_path):
    with pytest.raises(ExecutionError) as error:
        export_family(BY_NAME["bert"], tmp_path, opset=99)
    assert all(name in error.value.cause for name in ("transformers:", "dynamo:", "torchscript:"))
    assert list((tmp_path / "out").iterdir()) == []


def test_where_two_strategies_fail_the_third_is_used_and_the_reasons_name_the_cause(tmp_path):
    """TrOCR's decoder makes positions in a way torch.export cannot follow with a cache."""
    decoder = {
        "model_type": "trocr",
        "vocab_size": 99,
        "d_model": 32,
        "decoder_layers": 1,
        "decoder_attention_heads": 4,
        "decoder_ffn_dim": 37,
        "max_position_embeddings": 32,
        "is_decoder": True,
        "add_cross_attention": True,
    }
    family = BY_NAME["vision-encoder-decoder"]
    config = {**family.config, "decoder": decoder, "decoder_start_token_id": 0, "pad_token_id": 1}
    encoder, decoder = export_family(dataclasses.replace(family, config=config), tmp_path).components
    assert (encoder.strategy, decoder.strategy) == ("transformers", "torchscript")
    assert all("data-dependent" in attempt.reason for attempt in decoder.rejected)


def test_a_cache_that_cannot_have_a_fixed_size_leaves_one_graph_that_says_so(tmp_path):
    config = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 1, "state_size": 4, "initializer_range": 0.3}
    family = dataclasses.replace(BY_NAME["qwen3"], config=config, architecture="MambaForCausalLM", model_type="mamba")
    (part,) = export_family(family, tmp_path, sequence_length=12).components
    assert part.name == "model"
    assert part.outputs == ("logits",)
    (reason,) = [item.reason for item in part.left_out if item.argument == "past_key_values"]
    assert "each run computes the whole text" in reason


def test_a_window_that_slides_is_kept_whole_and_gives_the_same_answers(tmp_path):
    config = {**BY_NAME["qwen3"].config, "sliding_window": 4, "layer_types": ["sliding_attention", "full_attention"]}
    family = dataclasses.replace(
        BY_NAME["qwen3"], config=config, architecture="Gemma3ForCausalLM", model_type="gemma3_text"
    )
    # That both graphs say what the model says with its own cache is checked where they are split.
    prefill, decode = export_family(family, tmp_path, sequence_length=12, cache_length=16).components
    assert [part.name for part in (prefill, decode)] == ["prefill", "decode"]
    assert all(spec.sizes[2] == 16 for spec in decode.inputs if spec.name.startswith("past_"))


def test_free_axes_take_other_sizes(tmp_path):
    (part,) = export_family(BY_NAME["bert"], tmp_path, dynamic_axes=("batch", "sequence")).components
    assert part.inputs[0].shape == ("batch", "sequence")
    session = ort.InferenceSession(tmp_path / "out" / "model" / "model.onnx", providers=["CPUExecutionProvider"])
    feed = {spec.name: np.ones((5, 9), np.int64) for spec in part.inputs}
    assert session.run(None, feed)[0].shape[0] == 5


def test_free_axes_are_refused_where_a_cache_fixes_them(tmp_path):
    with pytest.raises(UsageError, match="dynamic axes"):
        export_family(BY_NAME["t5"], tmp_path, dynamic_axes=("batch",))


def test_roberta_gets_two_tokens_fewer_than_its_table_has_rows(tmp_path):
    source = source_of(BY_NAME["roberta"], tmp_path / "model")
    (tmp_path / "out").mkdir()
    params = ExportParams(task=source.task, random_weights=True, sequence_length=65)
    with pytest.raises(UsageError, match="65 is too long") as error:
        run_export(source, str(tmp_path / "out"), params)
    assert "positions for 64" in error.value.cause


@pytest.mark.parametrize(
    ("processor", "config", "expected", "origin"),
    [
        ({"size": {"shortest_edge": 256}, "do_center_crop": True, "crop_size": 224}, {}, (224, 224), "the processor"),
        ({"size": {"shortest_edge": 256}, "do_center_crop": False, "crop_size": 224}, {}, (256, 256), "the processor"),
        ({"size": {"height": 512, "width": 640}}, {"image_size": 224}, (512, 640), "the processor"),
        (
            {"size": {"shortest_edge": 800, "longest_edge": 1333}},
            {"image_size": [512, 864]},
            (512, 864),
            "the configuration",
        ),
        ({}, {"image_size": [32, 128]}, (32, 128), "the configuration"),
        ({}, {}, (224, 224), "a guess"),
    ],
)
def test_the_processor_decides_the_image_size(processor, config, expected, origin):
    settings = type("Config", (), config)()
    loaded = Loaded(None, settings, processor, "image-classification", None)
    assert image_size(loaded, ExportParams(task="image-classification"), settings) == (expected, origin)


def test_saved_weights_are_the_exported_ones(trained, tmp_path):
    import torch

    folder, model = trained("bert")
    outcome = export(folder, tmp_path / "out", **QUICK)
    (part,) = outcome.components
    session = ort.InferenceSession(tmp_path / "out" / "model" / "model.onnx", providers=["CPUExecutionProvider"])
    inputs = generate(part.inputs, 9, 9)
    with torch.no_grad():
        expected = model(**{name: torch.from_numpy(array) for name, array in inputs.items()}).logits.numpy()
    assert np.allclose(session.run(None, inputs)[0], expected, atol=1e-5)
    assert (outcome.model_class, outcome.random_weights) == ("BertForSequenceClassification", False)


def test_features_of_a_checkpoint_with_another_head(trained, tmp_path):
    folder, _ = trained("bert")
    outcome = export(folder, tmp_path / "out", task="feature-extraction", **QUICK)
    assert outcome.model_class == "BertModel"
    assert outcome.components[0].outputs == ("last_hidden_state", "pooler_output")


def test_an_old_spelling_of_a_class_is_understood_and_recorded(tmp_path):
    outcome = export_family(BY_NAME["mgp-str"], tmp_path, **QUICK)
    assert (outcome.model_class, outcome.class_renamed_from) == (
        "MgpstrForSceneTextRecognition",
        "MGPSTRForSceneTextRecognition",
    )
    assert outcome.components[0].outputs == ("char_logits", "bpe_logits", "wp_logits")


def test_missing_head_weights_stop_the_export_by_name(trained, tmp_path):
    from safetensors.torch import load_file, save_file

    folder, _ = trained("bert")
    weights = load_file(folder / "model.safetensors")
    save_file(
        {name: tensor for name, tensor in weights.items() if not name.startswith("classifier")},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    with pytest.raises(InputError, match="lacks weights") as error:
        export(folder, tmp_path / "out")
    assert "classifier.weight" in error.value.cause
    assert list((tmp_path / "out").iterdir()) == []


def test_nan_in_the_weights_stops_the_export_by_name(trained, tmp_path):
    from safetensors.torch import load_file, save_file

    folder, _ = trained("bert")
    weights = load_file(folder / "model.safetensors")
    name = "bert.encoder.layer.0.output.dense.weight"
    weights[name][0, 0] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match=name):
        export(folder, tmp_path / "out")


def test_truncated_weights_are_said_so(trained, tmp_path):
    folder, _ = trained("bert")
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="cannot be loaded"):
        export(folder, tmp_path / "out")


def test_a_task_no_class_of_the_model_does_is_refused_even_with_random_weights(tmp_path):
    BY_NAME["resnet"].write(tmp_path / "model")
    with pytest.raises(InputError, match="resnet and token-classification"):
        export(tmp_path / "model", tmp_path / "out", task="token-classification", random_weights=True)


def test_an_unknown_model_type_is_refused(tmp_path):
    (tmp_path / "model").mkdir()
    config = {"model_type": "bertt", "architectures": ["BerttForMaskedLM"]}
    (tmp_path / "model" / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="cannot read the configuration"):
        export(tmp_path / "model", tmp_path / "out", random_weights=True)


def test_a_reference_that_the_graph_does_not_match_is_not_accepted(tmp_path, monkeypatch):
    """A strategy that traces something else must lose, however well it runs."""
    from modelwright.stages.export import _run

    honest = _run.write

    def wrong(strategy, request):
        model = honest(strategy, request)
        if strategy == "transformers":
            weight = next(v for v in model.graph.initializers.values() if v.name.endswith("classifier.weight"))
            import onnx_ir

            weight.const_value = onnx_ir.tensor(weight.const_value.numpy() * 1.01, name=weight.name)
        return model

    monkeypatch.setattr(_run, "write", wrong)
    (part,) = export_family(BY_NAME["bert"], tmp_path).components
    assert part.strategy == "dynamo"
    assert "differs from PyTorch" in part.rejected[0].reason


def test_weights_too_large_for_one_file_go_beside_it(tmp_path, monkeypatch):
    from modelwright.graph import _write

    monkeypatch.setattr(_write, "INLINE_BYTES", 1000)
    export_family(BY_NAME["bert"], tmp_path, **QUICK)
    folder = tmp_path / "out" / "model"
    assert sorted(path.name for path in folder.iterdir()) == ["model.onnx", "model.onnx.data"]
    assert (folder / "model.onnx.data").stat().st_size > 10 * 1000
    ort.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])


def test_it_runs_in_a_worker_and_leaves_the_folder_it_reads_alone(trained, tmp_path):
    folder, _ = trained("resnet")
    for path in folder.iterdir():
        path.chmod(0o444)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    source = resolve(str(folder))
    (tmp_path / "out").mkdir()
    seen = []
    outcome = run(
        run_export.call(source, str(tmp_path / "out"), ExportParams(task=source.task, **QUICK)),
        timeout=300,
        on_progress=seen.append,
    ).unwrap()
    assert outcome.components[0].parity.cosine >= 0.99999
    assert seen
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
