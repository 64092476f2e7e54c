"""One labelled .npz, one folder of images and one JSONL go through every command that takes data, as they are."""

import json

import numpy as np
import pytest
from onnx import helper, numpy_helper

from support.models import FLOAT, model, save, value

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "good", "bad", "film", "plot", "very"]
SIZE, COUNT = 4, 12


def image_net(folder):
    """Which channel is the brightest: a convolution that keeps them apart, and their means."""
    kernel = np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1)
    nodes = [
        helper.make_node("Conv", ["image", "kernel"], ["kept"]),
        helper.make_node("ReduceMean", ["kept", "axes"], ["logits"], keepdims=0),
    ]
    io = [value("image", FLOAT, ["batch", 3, SIZE, SIZE])], [value("logits", FLOAT, ["batch", 3])]
    weights = [numpy_helper.from_array(kernel, "kernel"), numpy_helper.from_array(np.array([2, 3]), "axes")]
    return save(model(nodes, *io, weights), folder)


def text_net(folder):
    """Good or bad, by the words alone."""
    table = np.random.default_rng(0).normal(0, 0.1, (len(WORDS), 8)).astype(np.float32)
    table[WORDS.index("good"), 0] = table[WORDS.index("bad"), 1] = 4.0
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("ReduceSum", ["rows", "axis"], ["sum"], keepdims=0),
        helper.make_node("MatMul", ["sum", "wide"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "head"], ["logits"]),
    ]
    wide, head = np.eye(8, 256, dtype=np.float32), np.eye(256, 2, dtype=np.float32)[:, ::-1].copy()
    weights = [("table", table), ("axis", np.array([1])), ("wide", wide), ("head", head)]
    io = [value("input_ids", 7, ["batch", "tokens"])], [value("logits", FLOAT, ["batch", 2])]
    return save(model(nodes, *io, [numpy_helper.from_array(array, name) for name, array in weights]), folder)


def pixels(label):
    noise = np.random.default_rng(label).integers(0, 60, (SIZE, SIZE, 3), dtype=np.uint8)
    noise[..., label] += 150
    return noise


@pytest.fixture
def npz(tmp_path):
    labels = np.arange(COUNT) % 3
    images = np.stack([np.moveaxis(pixels(label), -1, 0) for label in labels])
    np.savez(tmp_path / "test.npz", image=images, label=labels)
    return image_net(tmp_path), ("--data", "test.npz", "--scale", "1/255"), "image-classification"


@pytest.fixture
def photos(tmp_path):
    pil = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    for label, name in enumerate(("a_red", "b_green", "c_blue")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(COUNT // 3):
            larger = np.kron(pixels(label), np.ones((2, 2, 1), np.uint8))
            pil.fromarray(larger).save(tmp_path / "photos" / name / f"{number}.png")
    how = ("--size", f"{SIZE}x{SIZE}", "--scale", "1/255", "--mean", "0.5", "--std", "0.5,0.5,0.5")
    return image_net(tmp_path), ("--data", "photos", *how), "image-classification"


@pytest.fixture
def jsonl(tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    vocabulary = {word: index for index, word in enumerate(WORDS)}
    transformers.BertTokenizerFast(vocab=vocabulary).save_pretrained(tmp_path / "tokenizer")
    lines = [{"text": f"very {word} film", "label": int(word == "good")} for word in ("good", "bad") * (COUNT // 2)]
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return text_net(tmp_path), ("--data", "test.jsonl", "--processor", "tokenizer"), "text-classification"


@pytest.mark.parametrize("form", ["npz", "photos", "jsonl"])
def test_one_form_of_data_goes_through_every_command(wright, request, form):
    path, data, task = request.getfixturevalue(form)
    built = wright("build", "-m", path, "--precision", "w8a8", *data, "-o", "out", "--json")
    assert built.code == 0, built.err
    gate = built.json["builds"][0]["components"][0]["stages"][-1]["outcome"]
    assert (gate["samples"], gate["random_inputs"]) == (12, False)
    fast = wright("perf", path, *data, "--iterations", 3, "--json")
    assert fast.code == 0, fast.err
    pair = ("one=model.onnx", "two=model.onnx@level=basic")
    compared = wright("compare", *pair, *data, "--budget", 1, "--json")
    assert compared.code == 0, compared.err
    judged = wright("eval", "out", "--reference", path, *data, "--task", task, "--json")
    assert judged.code == 0, judged.err
    assert judged.json["values"]["reference"] == judged.json["values"]["candidate"] == 1.0
    looked = wright("debug", "out", "--reference", path, *data, "--samples", 4, "--json")
    assert looked.code == 0, looked.err
    assert (looked.json["status"], looked.json["samples"], looked.json["data"]["random"]) == ("ok", 4, False)


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["--data", "nowhere.npz"], 3, "does not exist"),
        (["--data", "test.npz"], 3, "--scale"),
        (["--data", "test.npz", "--scale", "1/255", "--column", "image=pixels"], 3, "no column 'pixels'"),
        (["--scale", "1/255"], 2, "--data"),
        (["--calibration", "test.npz"], 2, "--data"),
    ],
)
def test_what_is_wrong_with_data_is_said_before_the_first_stage(wright, npz, tmp_path, words, code, complaint):
    answer = wright("build", "-m", "model.onnx", "--precision", "w8a8", *words)
    assert answer.code == code, answer.err
    assert complaint in answer.err
    assert not list((tmp_path / "home" / "store").rglob("optimize*"))


@pytest.mark.parametrize(
    ("data", "complaint"),
    [("photos", "photos does not exist"), ("empty", "empty is not a dataset"), ("a.npz", "a.npz")],
)
def test_data_is_looked_at_before_a_model_is_exported(wright, tmp_path, data, complaint):
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    config = {"model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": 10, **shape}
    for folder in ("tiny", "empty"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tiny" / "config.json").write_text(json.dumps(config))
    (tmp_path / "a.npz").write_bytes(b"PK")
    answer = wright("build", "-m", "tiny", "--random-weights", "--precision", "w8a8", "--data", data, "-q")
    assert answer.code == 3, answer.err
    assert complaint in answer.err
    assert not list((tmp_path / "home").rglob("*.onnx"))
