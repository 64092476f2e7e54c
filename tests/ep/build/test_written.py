"""Models that write, as several graphs: calibrated and judged by what the float graphs write about real samples."""

import json
import shutil
import wave
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

import modelwright as mw  # noqa: E402
from modelwright.data import DataSource  # noqa: E402
from modelwright.models import check_build, read_build  # noqa: E402
from modelwright.stages.decode import AgreeParams, DecodeParams, arranged, read_generation, writing_of  # noqa: E402
from modelwright.stages.decode._run import run_agree, run_decode  # noqa: E402
from modelwright.stages.export import Link  # noqa: E402
from modelwright.store import Store  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
WORDS = ["<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(3, 16))]
LONGEST = 7
SIZES = {"export": {"sequence_length": LONGEST + 1, "cache_length": 12}}


def wordy(folder: Path) -> None:
    """A tokenizer of whole words that ends a text, beside the model."""
    words = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({word: number for number, word in enumerate(WORDS)}, unk_token="<unk>")
    )
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)


def saved(model, folder: Path) -> Path:
    """Weights three times as large, so that a text has more than one word."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(3.0)
    model.eval().save_pretrained(folder)
    return folder


def texts(folder: Path) -> Path:
    rng = np.random.default_rng(0)
    lines = [" ".join(rng.choice(WORDS[3:], rng.integers(3, LONGEST))) for _ in range(6)]
    (folder / "texts.txt").write_text("\n".join(lines) + "\n")
    return folder / "texts.txt"


def taught(steps: int = 350):
    """A T5 that writes each word's opposite: trained, so that its texts say something. Takes ten seconds."""
    torch.set_num_threads(1)  # more would spin for longer than they work
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=len(WORDS), d_model=48, d_kv=12, d_ff=96, num_layers=1, num_heads=4, dropout_rate=0.0,
        decoder_start_token_id=0, relative_attention_num_buckets=16, relative_attention_max_distance=16,
    )  # fmt: skip
    model, rng = transformers.T5ForConditionalGeneration(config), np.random.default_rng(0)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
    for _ in range(steps):
        lengths = rng.integers(3, LONGEST + 1, (64, 1))
        places, words = np.arange(LONGEST + 1), rng.integers(3, len(WORDS), (64, LONGEST + 1))
        ids = torch.from_numpy(np.where(places < lengths, words, places == lengths))
        wanted = np.where(places < lengths, 18 - words, np.where(places == lengths, 1, -100))
        loss = model(input_ids=ids, attention_mask=(ids != 0).long(), labels=torch.from_numpy(wanted)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@pytest.fixture(scope="module")
def t5(tmp_path_factory):
    """Built in one call, for two targets, from lines of text."""
    folder = tmp_path_factory.mktemp("t5")
    taught().save_pretrained(folder / "tiny-t5")
    wordy(folder / "tiny-t5")
    with Store(folder / "home/store") as store:
        found = mw.build(
            folder / "tiny-t5",
            ["cpu", "qnn-npu"],
            recipe=SIZES,
            precision="w8a16",
            data=str(texts(folder)),
            output=folder / "out",
            store=store,
        )
    return folder, found


def test_text_calibrates_both_graphs_and_the_artifact_writes_what_the_float_model_writes(t5):
    folder, found = t5
    for build in found:
        together = build.agreement.outcome
        assert together.passed is True
        assert together.same_texts == together.samples >= 3
        encoder, decoder = (part.stages[2].outcome.calibration for part in build.components)
        assert (encoder.random, decoder.random) == (False, False)
        assert (encoder.kind, decoder.kind) == ("text", "text, decoded")
        # Several steps of each text, not one.
        assert encoder.samples < decoder.samples <= 4 * encoder.samples
    manifest = json.loads((folder / "out/cpu/wright.json").read_text())
    assert manifest["agreement"]["outcome"]["passed"] is True


def test_what_belongs_to_the_model_travels_with_it_and_is_verified(t5, tmp_path):
    folder, _ = t5
    copy = tmp_path / "copy"
    shutil.copytree(folder / "out/cpu", copy)
    assert check_build(copy).whole
    for name in ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        assert (copy / name).read_bytes() == (folder / "tiny-t5" / name).read_bytes()
    (copy / "tokenizer.json").write_text("{}")
    assert check_build(copy).changed == ("tokenizer.json",)


def test_sizes_say_who_chose_them(t5):
    _, found = t5
    sizes = {item.name: item.origin for item in found[0].components[0].stages[0].outcome.sizes}
    assert sizes == {"sequence_length": "as asked", "cache_length": "as asked"}


def test_a_decoder_that_writes_something_else_fails_although_each_graph_is_close(t5, tmp_path):
    """Noise in the decoder's last weights, as a range from unlike samples would make it."""
    folder, _ = t5
    build = read_build(folder / "out/cpu")
    links = tuple(Link(**link) for link in build.links)
    generation = writing_of(read_generation(str(folder / "tiny-t5")))
    params = DecodeParams(arranged(("encoder", "decoder"), links), links, generation, texts=4)
    data = DataSource(mw.Data(str(folder / "texts.txt"), processor=str(folder / "tiny-t5")))
    first, second = (str(build.model(name)) for name in ("encoder", "decoder"))
    wanted = run_decode(first, second, str(tmp_path), params, data)
    assert len({token for text in wanted.texts for token in text.tokens}) > 3

    def asked(decoder: str, precision: str):
        return run_agree(first, decoder, str(tmp_path), AgreeParams(params, precision, False), data, wanted.texts)

    assert asked(second, "w8a16").passed is True
    broken = asked(str(noisy(Path(second), tmp_path)), "w8a16")
    assert broken.passed is False
    assert broken.agreement < 0.9
    two = replace(params, texts=2)
    written = run_decode(first, second, str(tmp_path), two, data).texts
    few = run_agree(first, second, str(tmp_path), AgreeParams(two, "w8a16", False), data, written)
    assert few.passed is None
    assert "2 texts" in few.detail


def noisy(path: Path, folder: Path) -> Path:
    model, rng = onnx.load(path), np.random.default_rng(0)
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype == np.int8 and values.ndim > 1:
            moved = values.astype(int) + rng.integers(-60, 60, values.shape)
            tensor.CopyFrom(numpy_helper.from_array(np.clip(moved, -127, 127).astype(np.int8), tensor.name))
    onnx.save(model, folder / "noisy.onnx")
    return folder / "noisy.onnx"


TONES, FIRST_TONE, RATE = (300, 600, 1000, 1600, 2500, 3800), 4, 16000


def melody(rng):
    """Four tones, one after the other: a second of sound, and the tokens that name them."""
    chosen, time = rng.integers(0, len(TONES), 4), np.arange(RATE // 4) / RATE
    waves = [np.sin(2 * np.pi * TONES[tone] * time + rng.uniform(0, 6)) * rng.uniform(0.1, 0.3) for tone in chosen]
    return np.concatenate(waves).astype(np.float32), [*(FIRST_TONE + chosen), 1]


def sounds(folder: Path, count: int) -> Path:
    rng = np.random.default_rng(1)
    folder.mkdir()
    for number in range(count):
        with wave.open(str(folder / f"{number}.wav"), "wb") as file:
            file.setparams((1, 2, RATE, RATE, "NONE", ""))
            file.writeframes((melody(rng)[0] * 32767).astype("<i2").tobytes())
    return folder


def taught_to_listen(features: transformers.WhisperFeatureExtractor, steps: int = 400):
    """A Whisper that writes which tones it hears. Takes half a minute."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    config = transformers.WhisperConfig(
        vocab_size=16, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=256, decoder_ffn_dim=256, num_mel_bins=16, max_source_positions=50,
        max_target_positions=40, decoder_start_token_id=3, eos_token_id=1, pad_token_id=0, bos_token_id=1,
    )  # fmt: skip
    model, rng = transformers.WhisperForConditionalGeneration(config), np.random.default_rng(0)
    heard, told = zip(*(melody(rng) for _ in range(256)), strict=True)
    inputs = features(list(heard), sampling_rate=RATE, return_tensors="pt").input_features
    wanted, optimizer = torch.from_numpy(np.stack(told)), torch.optim.Adam(model.parameters(), lr=4e-3)
    for _ in range(steps):
        chosen = rng.integers(0, len(heard), 32)
        loss = model(input_features=inputs[chosen], labels=wanted[chosen]).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


@pytest.mark.proof
def test_sounds_calibrate_a_whisper_and_the_artifact_writes_what_the_float_model_hears(tmp_path):
    features = transformers.WhisperFeatureExtractor(feature_size=16, chunk_length=1)
    model = tmp_path / "tiny-whisper"
    taught_to_listen(features).save_pretrained(model)
    features.save_pretrained(model)
    found = mw.build(model, ["cpu", "qnn-npu"], precision="w8a16", data=str(sounds(tmp_path / "wavs", 8)))
    for build in found:
        together = build.agreement.outcome
        assert together.passed is True
        assert together.same_texts == together.samples >= 3
        # Four tones and an end each, not one token for ever.
        assert together.tokens >= 5 * together.samples
        assert build.components[1].stages[2].outcome.calibration.kind == "audio, decoded"


@pytest.mark.proof
def test_texts_calibrate_prompt_and_step_of_a_language_model(tmp_path):
    config = transformers.Qwen3Config(
        vocab_size=16, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, max_position_embeddings=64, eos_token_id=1,
    )  # fmt: skip
    torch.manual_seed(2)
    model = saved(transformers.Qwen3ForCausalLM(config), tmp_path / "tiny-qwen3")
    wordy(model)
    (build,) = mw.build(model, "cpu", recipe=SIZES, precision="w8a16", data=str(texts(tmp_path)))
    assert build.agreement.outcome.samples >= 3
    assert {part.stages[2].outcome.calibration.kind for part in build.components} == {"text, decoded"}
