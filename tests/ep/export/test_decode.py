"""The halves of a generating model, run one after the other by their links, say what PyTorch says."""

import numpy as np
import onnx
import onnxruntime as ort
import pytest

from modelwright.models import resolve
from modelwright.stages.export import ExportParams, run_export

pytestmark = pytest.mark.filterwarnings("ignore")
STEPS = 10


class Halves:
    """Sessions by component, and a state that the links carry from outputs to inputs."""

    def __init__(self, outcome, folder):
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        self.sessions = {
            part.name: ort.InferenceSession(
                folder / part.name / "model.onnx", options, providers=["CPUExecutionProvider"]
            )
            for part in outcome.components
        }
        self.inputs = {part.name: {spec.name: spec for spec in part.inputs} for part in outcome.components}
        self.folder, self.links = folder, outcome.links
        self.state = {}

    def graph(self, component):
        return onnx.load(self.folder / component / "model.onnx", load_external_data=False).graph

    def run(self, component, **given):
        feed = {
            name: given[name] if name in given else self.state.get((component, name), np.zeros(spec.sizes, spec.dtype))
            for name, spec in self.inputs[component].items()
        }
        session = self.sessions[component]
        outputs = dict(zip([value.name for value in session.get_outputs()], session.run(None, feed), strict=True))
        for link in self.links:
            if link.component == component:
                self.state[link.to_component, link.to_input] = outputs[link.output]
        return outputs


@pytest.fixture
def halves(trained, tmp_path):
    def make(name, config, **sizes):
        folder, model = trained(name, **config)
        source = resolve(str(folder))
        out = tmp_path / "out"
        out.mkdir()
        outcome = run_export(source, str(out), ExportParams(task=source.task, **sizes))
        assert not outcome.random_weights
        return outcome, out, model

    return make


def padded(ids, length, pad):
    row = np.full((1, length), pad, np.int64)
    row[0, : len(ids)] = ids
    return row


def next_logits(model, **ids):
    """PyTorch without any cache: the whole sequence again."""
    import torch

    with torch.no_grad():
        given = {name: torch.tensor([row]) for name, row in ids.items()}
        return model(**given, use_cache=False).logits[0, -1].numpy()


def prompts(count, vocabulary, lengths):
    rng = np.random.default_rng(5)
    return [rng.integers(10, vocabulary, lengths[i % len(lengths)]).tolist() for i in range(count)]


# Weights as they are usually drawn make tiny random models say the same token for ever.
LIVELY = {"t5": {"initializer_factor": 8.0}, "marian": {}, "m2m_100": {"init_std": 0.6, "tie_word_embeddings": False}}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.proof] if one != "t5" else []) for one in LIVELY]
)
def test_encoder_and_decoder_decode_like_pytorch(halves, name):
    outcome, folder, model = halves(name, LIVELY[name], sequence_length=12, cache_length=16)
    config = model.config
    said = set()
    for prompt in prompts(4, 99, [12, 7, 3]):
        run = Halves(outcome, folder)
        mask = padded([1] * len(prompt), 12, 0)
        run.run("encoder", input_ids=padded(prompt, 12, config.pad_token_id), attention_mask=mask)
        ids = [config.decoder_start_token_id]
        for position in range(STEPS):
            logits = run.run(
                "decoder",
                decoder_input_ids=np.array([[ids[-1]]]),
                encoder_attention_mask=mask,
                cache_position=np.array([position]),
            )["logits"][0, -1]
            expected = next_logits(model, input_ids=prompt, decoder_input_ids=ids)
            assert np.allclose(logits, expected, atol=1e-3 * max(1, np.abs(expected).max()))
            assert logits.argmax() == expected.argmax()
            ids.append(int(logits.argmax()))
        said.add(tuple(ids))
    assert len(said) >= 3
    given = {"decoder_input_ids": np.array([[ids[-1]]]), "encoder_attention_mask": mask}
    reads_its_positions(run, given, "decoder", STEPS)


def test_prefill_and_decode_continue_like_pytorch(halves):
    outcome, folder, model = halves("qwen3", {"tie_word_embeddings": False}, sequence_length=12, cache_length=32)
    said = set()
    for prompt in prompts(4, 99, [12, 7, 3]):
        run = Halves(outcome, folder)
        logits = run.run("prefill", input_ids=padded(prompt, 12, 0))["logits"][0, len(prompt) - 1]
        ids = list(prompt)
        for _ in range(STEPS):
            expected = next_logits(model, input_ids=ids)
            assert np.allclose(logits, expected, atol=1e-3 * max(1, np.abs(expected).max()))
            assert logits.argmax() == expected.argmax()
            ids.append(int(logits.argmax()))
            given = {"input_ids": np.array([[ids[-1]]]), "cache_position": np.array([len(ids) - 1])}
            logits = run.run("decode", **given)["logits"][0, -1]
        said.add(tuple(ids))
    assert len(said) >= 3
    reads_its_positions(run, {"input_ids": np.array([[ids[-1]]])}, "decode", len(ids) - 1)


def reads_its_positions(run, given, component, position):
    """What a version of transformers makes of positions and caches differs: the graph must not have them baked in."""
    before = dict(run.state)
    answers = []
    for place in (position, position - 4):
        run.state = dict(before)
        answers.append(run.run(component, **given, cache_position=np.array([place]))["logits"])
    assert not np.allclose(*answers)
    read = {name for node in run.graph(component).node for name in node.input}
    assert [name for name in run.inputs[component] if name not in read] == []


@pytest.mark.proof
def test_the_encoder_graph_holds_no_decoder_weights(halves):
    outcome, folder, model = halves("marian", {}, sequence_length=12, cache_length=16)
    stored = {
        part.name: sum(
            np.prod(tensor.dims) for tensor in onnx.load(folder / part.name / "model.onnx").graph.initializer
        )
        for part in outcome.components
    }
    crossing = sum(
        parameter.numel()
        for layer in model.model.decoder.layers
        for projection in (layer.encoder_attn.k_proj, layer.encoder_attn.v_proj)
        for parameter in projection.parameters()
    )
    encoder = sum(parameter.numel() for parameter in model.model.encoder.parameters())
    assert stored["encoder"] < (encoder + crossing) * 1.1
