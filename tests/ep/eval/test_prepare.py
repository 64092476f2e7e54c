"""Texts and images become arrays by the model's own processor, and by nothing else."""

from __future__ import annotations

import json

import numpy as np
import pytest
from onnx import helper, numpy_helper

from modelwright.data import Preparer
from modelwright.errors import InputError
from modelwright.evaluation import evaluate
from modelwright.targets import SessionTensor
from modelwright.vocabulary import Data
from support.models import FLOAT, model, save, value

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "who", "built", "it", "ada", "did", "good", "bad", "film", "##s"]
IDS = (SessionTensor("input_ids", "int64", ("batch", "tokens")),)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizerFast(vocab={word: i for i, word in enumerate(WORDS)}).save_pretrained(folder)
    return folder


def prepared(folder, task, row, inputs=IDS, names=()):
    return Preparer(inputs, Data(processor=str(folder) if folder else None), names, task=task)(row)


def test_a_row_that_is_already_arrays_needs_no_processor():
    row = {"input_ids": np.arange(3), "label": 1}
    assert prepared(None, "text-classification", row) is row


def test_texts_without_a_processor_are_refused_with_the_way_out():
    with pytest.raises(InputError, match="there is no processor") as caught:
        prepared(None, "text-classification", {"text": "good film", "label": 1})
    assert "`processor`" in caught.value.fix


def test_a_folder_without_a_processor_is_refused(tmp_path):
    pytest.importorskip("transformers", reason="transformers is not installed")
    with pytest.raises(InputError, match="has no Tokenizer"):
        prepared(tmp_path, "text-classification", {"text": "good film"})


def test_a_text_is_cut_and_padded_to_what_a_fixed_graph_takes(tokenizer):
    fixed = (SessionTensor("input_ids", "int64", (1, 6)),)
    ids = prepared(tokenizer, "text-classification", {"text": "good film"}, fixed)["input_ids"]
    assert ids.tolist() == [2, 10, 12, 3, 0, 0]
    long = prepared(tokenizer, "text-classification", {"text": "good " * 30}, fixed)["input_ids"]
    assert len(long) == 6


def test_an_answer_is_read_back_from_the_text_it_was_found_in(tokenizer):
    row = {"question": "who built it", "context": "Ada did", "answers": {"text": ["Ada"]}}
    found = prepared(tokenizer, "question-answering", row)
    place = found["input_ids"].tolist().index(WORDS.index("ada"))
    assert found["context_mask"][place]
    begin, end = found["offsets"][place]
    assert row["context"][begin:end] == "Ada"
    assert not found["context_mask"][1]


def test_labels_of_words_go_to_their_first_tokens(tokenizer):
    row = {"tokens": ["good", "films"], "label": np.array([1, 2])}
    found = prepared(tokenizer, "token-classification", row)
    assert found["label"].tolist() == [-100, 1, 2, -100, -100]


def test_hidden_tokens_depend_on_the_text_alone_and_are_never_special(tokenizer):
    row = {"text": "who built it ada did good film"}
    one, again = (prepared(tokenizer, "fill-mask", row) for _ in range(2))
    assert np.array_equal(one["input_ids"], again["input_ids"])
    hidden = np.flatnonzero(one["label"] != -100)
    assert len(hidden) >= 1
    assert (one["input_ids"][hidden] == WORDS.index("[MASK]")).all()
    assert (one["label"][hidden] > 4).all()


def test_every_class_name_makes_a_line(tokenizer):
    found = prepared(
        tokenizer, "zero-shot-classification", {"text": "good film", "label": 0}, names=("good", "bad film")
    )
    assert found["input_ids"].shape[0] == 2


def test_raw_texts_are_evaluated_end_to_end(tmp_path, tokenizer):
    """The model finds "good" and "bad" by their ids: sums of a table over the tokens."""
    table = np.zeros((len(WORDS), 2), np.float32)
    table[WORDS.index("good"), 1] = table[WORDS.index("bad"), 0] = 1.0
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["rows"]),
        helper.make_node("ReduceSum", ["rows", "axis"], ["logits"], keepdims=0),
    ]
    weights = [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([1]), "axis")]
    io = [value("input_ids", 7, ["batch", "tokens"])], [value("logits", FLOAT, ["batch", 2])]
    graph = save(model(nodes, *io, weights), tmp_path)
    lines = [{"text": f"{word} film", "label": int(word == "good")} for word in ("good", "bad") * 10]
    (tmp_path / "data.jsonl").write_text("\n".join(map(json.dumps, lines)))
    choice = Data(str(tmp_path), processor=str(tokenizer))
    found = evaluate(graph, graph, choice, "text-classification")
    assert found.values.candidate == 1.0


def test_images_of_the_models_size_are_fed_as_they_are_and_others_are_refused(tmp_path):
    pil = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    node = helper.make_node("ReduceMean", ["image", "axes"], ["logits"], keepdims=0)
    io = [value("image", FLOAT, ["batch", 3, 4, 4])], [value("logits", FLOAT, ["batch", 3])]
    graph = save(model([node], *io, [numpy_helper.from_array(np.array([2, 3]), "axes")]), tmp_path)
    for index, name in enumerate(("a_red", "b_green", "c_blue")):
        (tmp_path / "photos" / name).mkdir(parents=True)
        pixels = np.zeros((4, 4, 3), np.uint8)
        pixels[..., index] = 255
        for number in range(4):
            pil.fromarray(pixels).save(tmp_path / "photos" / name / f"{number}.png")
    choice = Data(str(tmp_path / "photos"), scale=1 / 255)
    found = evaluate(graph, graph, choice, "image-classification")
    assert found.values.candidate == 1.0
    pil.fromarray(np.zeros((5, 4, 3), np.uint8)).save(tmp_path / "photos" / "a_red" / "0.png")
    with pytest.raises(InputError, match="an image is 4x5"):
        evaluate(graph, graph, choice, "image-classification")
