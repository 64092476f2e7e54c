"""What a model needs, asked before its weights are loaded."""

import dataclasses
import json

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from bench.families import FAMILIES  # noqa: E402

from modelwright.errors import InputError, UsageError  # noqa: E402
from modelwright.stages import export as exporting  # noqa: E402
from modelwright.support import _probe, probe  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
BY_NAME = {family.name: family for family in FAMILIES}
BROS = dataclasses.replace(BY_NAME["bert"], architecture="BrosForTokenClassification", model_type="bros")


class Here:
    """What a child answers, without starting one for each of these questions."""

    def __init__(self, call):
        self.call = call

    def unwrap(self):
        return exporting.outline_export(*self.call.args)


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(_probe, "run", lambda call, timeout: Here(call))


def written(family, folder):
    folder.mkdir(parents=True)
    family.write(folder)
    return str(folder)


def trained(folder, kind="BertForMaskedLM"):
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=37, vocab_size=99
    )
    getattr(transformers, kind)(config).save_pretrained(folder)
    return str(folder)


def test_a_checkpoint_that_fits_its_class_needs_only_what_nobody_can_know(wright, tmp_path):
    """Through the command, with its child: no tokenizer, so the length of texts is a guess."""
    name = trained(tmp_path / "bert")
    found = wright("support", "probe", name, "--json")
    assert found.code == 0
    said = found.json
    assert (said["effort"], said["refused"], said["outline"]["model_class"]) == ("recipe", None, "BertForMaskedLM")
    assert said["outline"]["fit"] == {"missing": [], "unused": []}
    assert said["reasons"] == ["its sequence_length is a guess (128)"]
    assert [row["task"] for row in said["tasks"]] == ["fill-mask"]
    assert said["lacks"] == ["tokenizer"]


def test_weights_that_are_not_in_the_file_are_named_without_loading_one(here, tmp_path, monkeypatch):
    name = trained(tmp_path / "bert")
    config = json.loads((tmp_path / "bert/config.json").read_text())
    (tmp_path / "bert/config.json").write_text(
        json.dumps({**config, "architectures": ["BertForSequenceClassification"]})
    )
    found = probe(name)
    assert found.task == "text-classification"
    assert "classifier.weight" in found.outline.fit.missing
    assert any(weight.startswith("cls.predictions") for weight in found.outline.fit.unused)
    assert "lacks 4 weights of BertForSequenceClassification" in found.refused
    assert found.builds is False


def test_a_head_the_checkpoint_lacks_is_refused_and_its_type_still_looked_at(here, tmp_path):
    found = probe(trained(tmp_path / "bert"), task="text-classification")
    assert "cannot do text-classification" in found.refused
    assert (found.effort, found.head) == ("recipe", "fill-mask")


def test_without_weights_the_type_is_looked_at_and_the_checkpoint_refused(here, tmp_path):
    name = written(BY_NAME["t5"], tmp_path / "t5")
    found = probe(name)
    assert "holds no weights" in found.refused
    assert found.outline.pattern == "encoder and decoder"
    assert [part.name for part in found.outline.parts] == ["encoder", "decoder"]
    assert [row.task for row in found.tasks] == ["translation", "summarization", "text2text-generation"]
    assert probe(name, random_weights=True).refused is None


def test_an_argument_nobody_can_make_up_takes_a_file_for_the_type(here, tmp_path):
    found = probe(written(BROS, tmp_path / "bros"), random_weights=True)
    assert (found.effort, found.builds) == ("family", False)
    assert "bbox" in found.reasons[0]


def test_a_type_that_transformers_does_not_know_is_more_than_a_file(here, tmp_path):
    odd = dataclasses.replace(BY_NAME["bert"], model_type="not-there", architecture="NotThereForMaskedLM")
    found = probe(written(odd, tmp_path / "odd"), random_weights=True)
    assert (found.effort, found.outline) == ("shared", None)


def test_a_large_model_of_which_shapes_do_not_tell_is_unknown(here, tmp_path, monkeypatch):
    monkeypatch.setattr("modelwright.stages.export._rehearse._SMALL", 0)
    found = probe(written(BY_NAME["t5"], tmp_path / "t5"), random_weights=True)
    assert (found.effort, found.builds, found.tasks[0].inputs) == (None, None, None)


def test_a_graph_needs_no_support_and_nothing_is_an_input_error(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"")
    with pytest.raises(UsageError, match="needs no support"):
        probe(str(tmp_path / "m.onnx"))
    with pytest.raises(InputError):
        probe(str(tmp_path / "nothing/at/all"))
