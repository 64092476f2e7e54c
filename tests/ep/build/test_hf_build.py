"""Hugging Face folders through the whole pipeline. The models are tiny, made from configs with random weights."""

import importlib.util
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import modelwright as mw  # noqa: E402
from modelwright.models import resolve  # noqa: E402
from modelwright.pipeline import build, deliver, resolve_recipe  # noqa: E402
from modelwright.store import Store  # noqa: E402
from modelwright.targets import parse_target  # noqa: E402

WRIGHT = Path(sys.executable).with_name("wright")
# One for each way they are built; eight share what they can in test_build.py.
WAYS = ("qnn-npu", "openvino-gpu", "cpu", "vitisai-npu")


@pytest.fixture(scope="module")
def resnet(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hf") / "tiny-resnet"
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=10
    )
    torch.manual_seed(0)
    transformers.ResNetForImageClassification(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One store for tests that need the same export."""
    with Store(tmp_path_factory.mktemp("home") / "store") as store:
        yield store


def ran(result):
    return [stage.stage for component in result.components for stage in component.stages if stage.produced]


def test_targets_share_one_export(resnet, shared):
    source = resolve(str(resnet))
    results = [build(source, resolve_recipe(source, parse_target(name)), store=shared) for name in WAYS]
    stages = [stage for result in results for stage in ran(result)]
    assert stages.count("export") == 1
    assert stages.count("optimize") == 1
    assert stages.count("quantize") == 1
    quantized = [result.recipe.quantize is not None for result in results]
    gates = [result.components[0].validation.passed for result in results]
    assert gates == [None if rounded else True for rounded in quantized]


def test_every_verb_takes_a_hugging_face_folder_and_builds_it_for_the_target_first(resnet, shared):
    named = str(resnet)
    assert mw.analyze(named, "cpu", suggest=False, store=shared).supported
    assert mw.perf(resnet, iterations=2, warmup=1, store=shared).model == named
    arms = [mw.Arm(named, name="all"), mw.Arm(named, name="one", threads=1)]
    assert [arm.name for arm in mw.compare(arms, budget_s=0.1, store=shared).arms] == ["all", "one"]
    close = mw.evaluate(named, named, data=mw.Data(samples=2), outputs=True, store=shared)
    assert close.outputs[0].scores.cosine.worst > 0.999
    assert mw.debug(named, named, data=mw.Data(samples=2), store=shared).status == "ok"
    built = mw.build(named, "cpu", store=shared)
    assert not any(stage.produced for stage in built[0].components[0].stages)
    assert mw.perf(built, iterations=2, warmup=1, store=shared).latency is not None


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CAMERA = (
    *("--input-type", "uint8", "--input-layout", "nhwc", "--input-scale", "1/255"),
    *("--input-mean", ",".join(map(str, MEAN)), "--input-std", ",".join(map(str, STD))),
)


# Where there is no simulator nobody can say that the NPU computes it.
SIMULATED = importlib.util.find_spec("onnxruntime_qnn") is not None and platform.machine() == "x86_64"
REQUIRED = "--require-pass"


@pytest.mark.parametrize(
    ("targets", "how"),
    [
        (("cpu", "qnn-npu") if SIMULATED else ("cpu",), "arrays"),
        pytest.param(("cpu",), "pictures", marks=pytest.mark.proof),
    ],
)
def test_a_hugging_face_model_takes_what_a_camera_gives(resnet, tmp_path, targets, how):
    """Bytes with their channels last in, the logits that PyTorch has for the same pixels out; not square, so that no
    side can be taken for another."""
    photos = np.random.default_rng(3).integers(0, 256, (40, 48, 32, 3), dtype=np.uint8)
    data = [str(tmp_path / "photos.npz")]
    if how == "arrays":
        np.savez(data[0], pixel_values=photos)
    else:
        data = [str(tmp_path / "photos"), "--size", "48x32"]
        (tmp_path / "photos").mkdir()
        for place, photo in enumerate(photos):
            pytest.importorskip("PIL.Image").fromarray(photo).save(tmp_path / f"photos/{place}.png")
    wanted = [word for target in targets for word in ("--target", target)]
    words = [
        resnet,
        *wanted,
        "--precision",
        "w8a16",
        "--data",
        *data,
        *CAMERA,
        "-o",
        tmp_path / "out",
        "--require-pass",
    ]
    done = subprocess.run(
        [str(WRIGHT), "build", *map(str, words)],
        env={**os.environ, "MODELWRIGHT_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "height 48, width 32" in done.stdout
    prepared = ((photos / 255 - MEAN) / STD).transpose(0, 3, 1, 2).astype(np.float32)
    model = transformers.ResNetForImageClassification.from_pretrained(resnet).eval()
    with torch.no_grad():
        expected = model(torch.from_numpy(prepared)).logits.numpy()
    for made in (tmp_path / "out").rglob("model.onnx"):
        session = ort.InferenceSession(made, providers=["CPUExecutionProvider"])
        (taken,) = session.get_inputs()
        assert (taken.name, taken.type, taken.shape) == ("pixel_values", "tensor(uint8)", [1, 48, 32, 3])
        found = np.concatenate([session.run(None, {"pixel_values": photo[None]})[0] for photo in photos])
        np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.proof
def test_an_export_killed_half_way_is_done_again_and_finished(resnet, tmp_path):
    script = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from modelwright.pipeline import build, resolve_recipe\n"
        "from modelwright.models import resolve\n"
        "from modelwright.store import Store\n"
        "from modelwright.targets import parse_target\n"
        "def watch(event):\n"
        "    if event.stage == 'export' and event.message.startswith('exporting'):\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "source = resolve(sys.argv[1])\n"
        "with Store(Path(sys.argv[2])) as store:\n"
        "    build(source, resolve_recipe(source, parse_target('cpu')), store=store, on_progress=watch)\n"
    )
    home = tmp_path / "home"
    words = [sys.executable, "-c", script, str(resnet), str(home / "store")]
    killed = subprocess.run(words, env={**os.environ, "MODELWRIGHT_HOME": str(home)}, timeout=300, check=False)
    assert killed.returncode == -signal.SIGKILL
    source = resolve(str(resnet))
    with Store(home / "store") as store:
        assert store.entries() == ()
        assert ran(build(source, resolve_recipe(source, parse_target("cpu")), store=store)) == [
            "export",
            "optimize",
            "validate",
        ]


@pytest.mark.proof
def test_an_encoder_decoder_is_built_in_one_go_and_decodes_like_pytorch(tmp_path):
    """Greedy decoding with the delivered halves, token by token, against PyTorch without a cache, on three prompts."""
    config = transformers.T5Config(
        vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, decoder_start_token_id=0
    )
    torch.manual_seed(0)
    model = transformers.T5ForConditionalGeneration(config).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3.0)
    folder = tmp_path / "tiny-t5"
    model.save_pretrained(folder)
    source = resolve(str(folder))
    with Store(tmp_path / "home/store") as store:
        result = build(source, resolve_recipe(source, parse_target("cpu")), store=store)
        deliver(result, tmp_path / "out", store=store)
    assert result.passed
    assert [component.name for component in result.components] == ["encoder", "decoder"]
    halves = {name: ort.InferenceSession(tmp_path / "out" / name / "model.onnx") for name in ("encoder", "decoder")}
    length = result.components[0].inputs[0].sizes[1]
    rng = np.random.default_rng(0)
    for size in (5, 9, length):
        ids = np.zeros((1, length), np.int64)
        ids[0, :size] = rng.integers(2, 64, size)
        mask = (np.arange(length)[None] < size).astype(np.int64)
        assert decode(halves, result, ids, mask, 6) == reference(model, ids, mask, 6)


def decode(halves, result, ids, mask, steps):
    """Feed the halves as the recorded links say."""
    given = {"input_ids": ids, "attention_mask": mask}
    state = {}
    names = {value.name for value in halves["encoder"].get_inputs()}
    outputs = halves["encoder"].run(None, {name: given[name] for name in names})
    made = dict(zip([value.name for value in halves["encoder"].get_outputs()], outputs, strict=True))
    for link in result.links:
        if link.component == "encoder":
            state[link.to_input] = made[link.output]
    for spec in result.components[1].inputs:
        if spec.name not in state and any(link.to_input == spec.name for link in result.links):
            state[spec.name] = np.zeros(spec.sizes, spec.dtype)
    tokens = [0]
    for step in range(steps):
        feeds = dict(state)
        for spec in result.components[1].inputs:
            if spec.name in feeds:
                continue
            if spec.name in ("encoder_attention_mask", "attention_mask"):
                feeds[spec.name] = mask
            elif spec.name == "cache_position":
                feeds[spec.name] = np.array([step], np.int64)
            else:
                feeds[spec.name] = np.array([[tokens[-1]]], np.int64)
        outputs = halves["decoder"].run(None, feeds)
        made = dict(zip([value.name for value in halves["decoder"].get_outputs()], outputs, strict=True))
        tokens.append(int(made["logits"][0, -1].argmax()))
        for link in result.links:
            if link.component == "decoder":
                state[link.to_input] = made[link.output]
    return tokens


def reference(model, ids, mask, steps):
    tokens = [0]
    with torch.no_grad():
        for _ in range(steps):
            found = model(
                input_ids=torch.from_numpy(ids),
                attention_mask=torch.from_numpy(mask),
                decoder_input_ids=torch.tensor([tokens]),
            )
            tokens.append(int(found.logits[0, -1].argmax()))
    return tokens
