"""An export owes every argument of forward that changes the answer, or says which ones it left out and why."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch
from bench.families import FAMILIES, source_of

from modelwright.data import generate
from modelwright.errors import ExecutionError, InputError
from modelwright.stages.export import ExportParams, _load, _owed, _rehearse, rehearse_export
from modelwright.stages.export._load import load_model
from modelwright.stages.export._owed import complete, left_out
from modelwright.stages.export._run import split_parts
from modelwright.vocabulary import Fill, static

pytestmark = pytest.mark.filterwarnings("ignore")
BY_NAME = {family.name: family for family in FAMILIES}
BROS = dataclasses.replace(BY_NAME["bert"], architecture="BrosForTokenClassification", model_type="bros")
COUNTED = ("position_ids", "the model counts positions itself")


def parts_of(family, folder):
    source = source_of(family, folder / "model")
    params = ExportParams(task=source.task, random_weights=True)
    return split_parts(load_model(source, params), params)[0]


def taken(part):
    return [spec.name for spec in part.inputs], [(item.argument, item.reason) for item in part.left_out]


@pytest.mark.parametrize(
    ("name", "inputs", "unfed"),
    [
        ("layoutlm", ["input_ids", "attention_mask", "token_type_ids", "bbox"], [COUNTED]),
        ("owlvit", ["input_ids", "attention_mask", "pixel_values"], []),
        ("blip", ["pixel_values", "input_ids", "attention_mask"], []),
        ("bert", ["input_ids", "attention_mask", "token_type_ids"], [COUNTED]),
        ("resnet", ["pixel_values"], []),
        ("rt-detr", ["pixel_values"], [("pixel_mask", "the whole image counts, none of it is padding")]),
    ],
)
def test_inputs_and_what_was_left_out(name, inputs, unfed, tmp_path):
    (part,) = parts_of(BY_NAME[name], tmp_path)
    found, missing = taken(part)
    assert sorted(found) == sorted(inputs)
    assert missing == unfed


def test_boxes_are_boxes_inside_the_table_of_positions(tmp_path):
    (part,) = parts_of(BY_NAME["layoutlm"], tmp_path)
    boxes = generate(part.inputs, 3)["bbox"]
    assert boxes.shape[-1] == 4
    assert 0 <= boxes.min() <= boxes.max() < 64
    assert (boxes[..., :2] <= boxes[..., 2:]).all()


def test_a_language_model_says_why_it_takes_no_mask(tmp_path):
    for part in parts_of(BY_NAME["qwen3"], tmp_path):
        assert [name for name, _ in taken(part)[1]] == ["attention_mask", "position_ids"]
        assert "causal attention never looks" in taken(part)[1][0][1]


def test_a_model_that_nothing_made_up_can_run_is_refused_in_words(tmp_path):
    with pytest.raises(InputError, match="BrosForTokenClassification does not run on what can be made up") as error:
        parts_of(BROS, tmp_path)
    assert "with input_ids" in error.value.cause


IDS = static("input_ids", "int64", (1, 4), Fill("tokens", 0, 9))
PARAMS = ExportParams(task="text-classification")


def loaded(**config):
    text = SimpleNamespace(vocab_size=9, **config)
    text.get_text_config = lambda: text
    return SimpleNamespace(model=torch.nn.Linear(1, 1), config=text, processor={})


def owed(forward, **config):
    return complete(forward, lambda tensors: {"y": forward(**tensors)}, (IDS,), loaded(**config), PARAMS)


def test_an_argument_is_an_input_when_a_run_shows_that_it_matters():
    def forward(
        input_ids: torch.Tensor,
        shade_ids: torch.Tensor | None = None,
        idle_ids: torch.Tensor | None = None,
        odd: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        inputs_embeds: torch.Tensor | None = None,
        return_dict: bool | None = None,
        **more: object,
    ) -> torch.Tensor:
        total = input_ids.sum() * (1.0 if odd is None else 2.0)
        return total if shade_ids is None else total + shade_ids.sum()

    found = owed(forward, shade_vocab_size=5, idle_vocab_size=5)
    assert [spec.name for spec in found.inputs] == ["input_ids", "shade_ids"]
    assert [item.argument for item in found.left_out] == ["odd"]
    assert "no value for it can be made up" in found.left_out[0].reason


def test_an_argument_that_cannot_be_given_is_listed_with_the_reason():
    def forward(input_ids: torch.Tensor, shade_ids: torch.Tensor | None = None) -> torch.Tensor:
        if shade_ids is not None:
            raise ValueError("only with a lamp")
        return input_ids.sum()

    found = owed(forward, shade_vocab_size=5)
    assert [spec.name for spec in found.inputs] == ["input_ids"]
    assert "ValueError: only with a lamp" in found.left_out[0].reason


def test_an_argument_without_a_default_that_nobody_can_make_up_is_refused_by_name():
    def forward(input_ids: torch.Tensor, lamp: torch.Tensor) -> torch.Tensor:
        return input_ids.sum() + lamp

    with pytest.raises(InputError, match="takes lamp, which cannot be made up"):
        owed(forward)


def test_an_optional_argument_without_which_nothing_runs_is_an_input():
    def forward(input_ids: torch.Tensor, decoder_input_ids: torch.Tensor | None = None) -> torch.Tensor:
        if decoder_input_ids is None:
            raise ValueError("nothing to decode")
        return (input_ids + decoder_input_ids).sum()

    assert [spec.name for spec in owed(forward).inputs] == ["input_ids", "decoder_input_ids"]


def test_what_a_decoder_makes_itself_is_not_asked_for():
    def forward(input_ids: torch.Tensor, decoder_input_ids: torch.Tensor | None = None) -> torch.Tensor:
        return input_ids.sum() if decoder_input_ids is None else decoder_input_ids.sum()

    found = owed(forward)
    assert [spec.name for spec in found.inputs] == ["input_ids"]
    assert found.left_out == left_out(forward, {"input_ids"})
    assert found.left_out[0].argument == "decoder_input_ids"


@pytest.mark.parametrize(("family", "answer"), [(BY_NAME["layoutlm"], True), (BY_NAME["owlvit"], True), (BROS, None)])
def test_a_rehearsal_says_what_the_export_would(family, answer, tmp_path):
    source = source_of(family, tmp_path / "model")
    params = ExportParams(task=source.task, random_weights=True)
    if answer is None:
        with pytest.raises(InputError, match="does not run"):
            rehearse_export(source, params)
    else:
        assert rehearse_export(source, params) is answer


@pytest.mark.parametrize(("name", "answer"), [("blip", True), ("t5", False), ("qwen3", True)])
def test_a_large_model_is_rehearsed_by_its_shapes(name, answer, tmp_path, monkeypatch):
    """T5 looks at the values of a mask, which shapes do not have."""
    monkeypatch.setattr(_rehearse, "_SMALL", 0)
    source = source_of(BY_NAME[name], tmp_path / "model")
    assert rehearse_export(source, ExportParams(task=source.task, random_weights=True)) is answer


def test_a_large_model_that_lacks_an_argument_is_refused_too(tmp_path, monkeypatch):
    monkeypatch.setattr(_rehearse, "_SMALL", 0)
    monkeypatch.setattr(_owed, "extra", lambda *_: None)
    source = source_of(BY_NAME["owlvit"], tmp_path / "model")
    with pytest.raises(InputError, match="takes pixel_values, which cannot be made up"):
        rehearse_export(source, ExportParams(task=source.task, random_weights=True))


def test_a_missing_package_is_named_also_where_the_message_begins_with_an_empty_line():
    with pytest.raises(ExecutionError, match="needs a package") as error, _load._packages(object):
        raise ImportError("\nThis model requires the timm library.\n")
    assert error.value.cause == "ImportError: This model requires the timm library."
