"""Made-up inputs of a built model are what its export recorded: a BART classifier pools at the one eos of a row."""

import importlib.util
import json

import onnxruntime as ort
import pytest

from modelwright.evaluation import EvalOptions, evaluate
from modelwright.measure import InputChoice, make_subject
from modelwright.models import resolve
from modelwright.pipeline import build, deliver, resolve_recipe
from modelwright.store import Store
from modelwright.targets import parse_target
from modelwright.vocabulary import Data

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("transformers"), reason="needs transformers")
SEEDS = 24
EOS = 7


CONFIG = {
    "model_type": "bart",
    "architectures": ["BartForSequenceClassification"],
    "vocab_size": 60,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 16,
    "decoder_ffn_dim": 16,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": EOS,
    "decoder_start_token_id": EOS,
    "num_labels": 3,
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    (home / "bart").mkdir()
    (home / "bart" / "config.json").write_text(json.dumps(CONFIG))
    source = resolve(str(home / "bart"), random_weights=True)
    recipe = resolve_recipe(source, parse_target("cpu"), file={"export": {"strategies": ["torchscript"]}})
    with Store(home / "store") as store:
        return deliver(build(source, recipe, store=store), home / "built", store=store)


def test_a_measurement_runs_on_every_seed(built):
    session = ort.InferenceSession(built / "model.onnx", providers=["CPUExecutionProvider"])
    for seed in range(SEEDS):
        feeds = dict(make_subject(built, InputChoice(Data(seed=seed))).feeds)
        assert (feeds["input_ids"] == EOS).sum() == 1
        session.run(None, feeds)


def test_an_evaluation_on_made_up_inputs_runs_on_every_sample(built):
    result = evaluate(built, built, Data("random", samples=SEEDS), options=EvalOptions(outputs=True, min_cosine=0.9999))
    assert not result.failures


def test_what_is_made_from_the_built_model_keeps_what_is_known_about_its_inputs(built, tmp_path):
    source = resolve(str(built / "model.onnx"))
    with Store(tmp_path / "store") as store:
        result = build(source, resolve_recipe(source, parse_target("cpu")), store=store)
        again = deliver(result, tmp_path / "again", store=store)
    assert result.passed
    known = [json.loads((folder / "wright.json").read_text())["components"][0]["inputs"] for folder in (built, again)]
    assert known[0] == known[1] != []


def test_what_the_graph_does_not_take_is_in_the_manifest(built):
    export = json.loads((built / "wright.json").read_text())["components"][0]["stages"][0]
    (part,) = export["outcome"]["components"]
    assert {"argument": "decoder_input_ids", "reason": "the model makes them from its other inputs"} in part["left_out"]
