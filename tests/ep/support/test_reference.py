"""What an export is compared with is PyTorch's own class, whatever a family says or does."""

import pytest

import modelwright as mw

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = pytest.mark.filterwarnings("ignore")
_SMALL = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 37,
}
_SMALL |= {"max_position_embeddings": 16, "initializer_range": 0.3, "num_labels": 3}
_WITHOUT_BOXES = """
from modelwright.stages.export import ModelFamily
from modelwright.stages.export._inputs import text_inputs
from modelwright.stages.export._part import MODEL, Part


def parts(loaded, params):
    run = lambda tensors: {"logits": loaded.model(**tensors).logits}
    return (Part(MODEL, loaded.model, run, text_inputs(loaded, params)),), ()


FAMILY = ModelFamily(parts=parts)
"""
_PATCHES = """
import functools

import transformers
from modelwright.stages.export import ModelFamily

stock = transformers.BertForSequenceClassification.forward


@functools.wraps(stock)
def forward(self, *args, **kwargs):
    found = stock(self, *args, **kwargs)
    found.logits = found.logits.roll(1, -1)
    return found


transformers.BertForSequenceClassification.forward = forward
FAMILY = ModelFamily()
"""


def _model(folder, kind):
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**_SMALL)
    getattr(transformers, f"{kind}ForSequenceClassification")(config).save_pretrained(folder / "model")
    return folder / "model"


def _climbed(folder, kind, family):
    (folder / "family.py").write_text(family)
    found = mw.support.run(_model(folder, kind), folder / "out", family=folder / "family.py", ladder_only=True)
    return {row.level: row for row in found.rows}


def test_layoutlm_without_its_boxes_fails_the_structure(tmp_path):
    rows = _climbed(tmp_path, "LayoutLM", _WITHOUT_BOXES)
    assert rows["L0"].word == "fail"
    assert "bbox changes the answer" in rows["L0"].reasons[0]
    assert rows["L1"].word == rows["L2"].word == "not-reached"


def test_a_family_that_patches_the_model_is_compared_with_the_model_as_it_is(tmp_path):
    rows = _climbed(tmp_path, "Bert", _PATCHES)
    assert rows["L0"].word == rows["L1"].word == "pass", rows
    assert rows["L2"].word == "fail"
