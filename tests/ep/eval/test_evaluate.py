"""Evaluations with the real onnxruntime: verdicts, pairing, batches, broken outputs, raw outputs, own metrics."""

from __future__ import annotations

import dataclasses
import importlib.util
import platform
import subprocess
import sys

import numpy as np
import pytest
from onnx import helper, numpy_helper

from ep.eval.graphs import CLASSES, FEATURES, WEIGHTS, classifier, passing_on, samples
from modelwright._json import dumps
from modelwright.errors import InputError, UsageError
from modelwright.evaluation import EvalOptions, evaluate
from modelwright.judge import Allowance, VerdictKind, parse_allowance
from modelwright.vocabulary import Data
from support.models import FLOAT, model, save, value

POINT = Allowance(0.01, relative=False)


@pytest.fixture
def pair(tmp_path):
    """A reference and 2,000 samples."""
    return classifier(tmp_path, "ref.onnx"), samples(tmp_path, 2000)


def accuracy(candidate, reference, data, task="text-classification", retry=None, **options):
    choice = data if isinstance(data, Data) else Data(str(data))
    return evaluate(candidate, reference, choice, task, EvalOptions(**options), retry=retry)


def test_an_equal_candidate_passes_and_a_worse_one_fails(tmp_path, pair):
    reference, data = pair
    good = accuracy(classifier(tmp_path, "good.onnx", 0.01), reference, data, max_drop=POINT)
    assert good.verdict is VerdictKind.PASS
    bad = accuracy(classifier(tmp_path, "bad.onnx", 0.35), reference, data, max_drop=POINT)
    assert bad.verdict is VerdictKind.FAIL
    assert bad.values.drop > 0.03
    # The reference was measured on the same samples in both runs.
    assert good.values.reference == bad.values.reference
    assert good.data.digest == bad.data.digest


def test_the_scores_are_those_of_the_model_sample_by_sample(tmp_path, pair):
    reference, data = pair
    found = accuracy(classifier(tmp_path, "noisy.onnx", 0.1), reference, data)
    arrays = np.load(data)
    right = (arrays["x"] @ WEIGHTS).argmax(axis=1) == arrays["label"]
    assert [score.reference for score in found.scores] == right.astype(float).tolist()
    assert found.values.reference == pytest.approx(right.mean())


def test_few_samples_are_inconclusive_and_say_how_many_are_needed(tmp_path, pair):
    reference, data = pair
    choice = Data(str(data), samples=50)
    found = accuracy(classifier(tmp_path, "same.onnx"), reference, choice, max_drop=Allowance(0.05, False))
    assert found.verdict is VerdictKind.INCONCLUSIVE
    assert found.data.selected == 50
    assert found.comparison.needed > 50
    assert f"about {found.comparison.needed} samples" in found.reasons[0]


def test_samples_can_be_added_and_the_answer_is_that_of_one_run(tmp_path, pair):
    reference, data = pair
    candidate = classifier(tmp_path, "noisy.onnx", 0.1)
    first = accuracy(candidate, reference, Data(str(data), samples=60), max_drop=POINT)
    more = accuracy(candidate, reference, Data(str(data), samples=40, seed=3), max_drop=POINT, retry=first)
    assert more.data.selected == len({score.index for score in more.scores}) == 100
    assert more.scores[:60] == first.scores
    rest = accuracy(candidate, reference, data, max_drop=POINT, retry=more)
    whole = accuracy(candidate, reference, data, max_drop=POINT)
    assert sorted(rest.scores, key=lambda score: score.index) == list(whole.scores)
    assert (rest.verdict, rest.comparison, rest.values) == (whole.verdict, whole.comparison, whole.values)
    with pytest.raises(InputError, match="no more samples"):
        accuracy(candidate, reference, data, max_drop=POINT, retry=rest)


def test_samples_of_another_evaluation_are_not_added(tmp_path, pair):
    reference, data = pair
    candidate = classifier(tmp_path, "noisy.onnx", 0.1)
    first = accuracy(candidate, reference, Data(str(data), samples=40))
    with np.load(data) as arrays:
        np.savez(tmp_path / "other.npz", x=arrays["x"] + 1, label=arrays["label"])
    for change, says in (
        ({"candidate": classifier(tmp_path, "third.onnx", 0.2)}, "the models"),
        ({"data": Data(str(tmp_path / "other.npz"), samples=5)}, "the samples"),
        ({"data": Data(str(samples(tmp_path, 1000, "few.npz")))}, "the numbers of rows"),
        ({"task": "image-classification"}, "the tasks"),
    ):
        asked = {"candidate": candidate, "reference": reference, "data": data, **change}
        with pytest.raises(UsageError) as caught:
            accuracy(**asked, retry=first)
        assert says in caught.value.cause
    with pytest.raises(UsageError, match="raw outputs cannot be added to"):
        accuracy(candidate, reference, data, outputs=True, retry=first)


def test_without_a_margin_nothing_is_judged(pair):
    reference, data = pair
    found = accuracy(reference, reference, Data(str(data), samples=20))
    assert found.verdict is None
    assert found.comparison.verdict is None


def test_a_fixed_batch_gives_every_sample_the_answer_it_gets_alone(tmp_path):
    reference, data = classifier(tmp_path, "ref.onnx"), samples(tmp_path, 10)
    found = accuracy(classifier(tmp_path, "four.onnx", batch=4), reference, data)
    assert len(found.scores) == 10
    assert found.outputs[0].scores.samples == 10
    assert found.outputs[0].scores.max_abs.worst < 1e-5


def test_a_model_that_quantizes_the_whole_batch_is_run_one_sample_at_a_time(tmp_path):
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("MatMul", ["d", "w"], ["logits"]),
    ]
    io = [value("x", FLOAT, ["batch", FEATURES])], [value("logits", FLOAT, ["batch", CLASSES])]
    candidate = save(model(nodes, *io, [numpy_helper.from_array(WEIGHTS, "w")]), tmp_path, "dynamic.onnx")
    rng = np.random.default_rng(0)
    # One huge row would wipe out the small ones if they shared its scale.
    x = np.concatenate([0.01 * rng.standard_normal((7, FEATURES)), 1000 * np.ones((1, FEATURES))]).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x)
    found = accuracy(candidate, classifier(tmp_path, "ref.onnx"), tmp_path / "d.npz", None, outputs=True)
    assert found.outputs[0].scores.cosine.worst > 0.99


@pytest.mark.parametrize("place", [0, 17, 39])
def test_one_nan_among_forty_fails_wherever_it_is(tmp_path, place):
    data = samples(tmp_path, 40)
    arrays = dict(np.load(data))
    arrays["x"][place, 0] = -1000.0
    np.savez(data, **arrays)
    found = accuracy(_guarded(tmp_path), classifier(tmp_path, "ref.onnx"), data)
    assert found.verdict is VerdictKind.FAIL
    assert [(failure.index, failure.side) for failure in found.failures] == [(place, "candidate")]
    assert found.scores[place].candidate is None
    # It counts as a wrong answer: it does not leave the mean.
    others = [score.candidate for score in found.scores if score.index != place]
    assert found.values.candidate == pytest.approx(sum(others) / 40)
    dumps(found)


def _guarded(folder, name="guarded.onnx"):
    """The classifier, but NaN for a row whose first feature is below -100: the square root of a negative number."""
    pick = np.zeros((FEATURES, 1), np.float32)
    pick[0] = 1.0
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("MatMul", ["x", "pick"], ["first"]),
        helper.make_node("Add", ["first", "hundred"], ["shifted"]),
        helper.make_node("Sqrt", ["shifted"], ["root"]),
        helper.make_node("Sub", ["root", "root"], ["nothing"]),
        helper.make_node("Add", ["y", "nothing"], ["logits"]),
    ]
    weights = {"w": WEIGHTS, "pick": pick, "hundred": np.array([100.0], np.float32)}
    io = [value("x", FLOAT, ["batch", FEATURES])], [value("logits", FLOAT, ["batch", CLASSES])]
    return save(model(nodes, *io, [numpy_helper.from_array(w, n) for n, w in weights.items()]), folder, name)


def test_a_reference_that_fails_decides_nothing(tmp_path):
    data = samples(tmp_path, 40)
    arrays = dict(np.load(data))
    arrays["x"][5, 0] = -1000.0
    np.savez(data, **arrays)
    found = accuracy(classifier(tmp_path, "ref.onnx"), _guarded(tmp_path), data, max_drop=POINT)
    assert found.verdict is VerdictKind.INCONCLUSIVE
    assert "the reference itself failed on 1 of 40" in found.reasons[0]


def test_labels_that_do_not_belong_to_the_classes_decide_nothing(tmp_path, pair):
    """Classes in another order: the reference is worse than a guess, so no drop means anything."""
    reference, data = pair
    arrays = dict(np.load(data))
    np.savez(data, x=arrays["x"], label=(arrays["label"] + 2) % CLASSES)
    found = accuracy(reference, reference, data, max_drop=POINT)
    assert found.verdict is VerdictKind.INCONCLUSIVE
    assert "guessing scores 0.200" in found.reasons[0]


def test_a_label_outside_the_head_is_refused(tmp_path, pair):
    reference, data = pair
    arrays = dict(np.load(data))
    np.savez(data, x=arrays["x"], label=np.where(arrays["label"] == 0, CLASSES, arrays["label"]))
    with pytest.raises(InputError, match=f"label {CLASSES} does not fit"):
        accuracy(reference, reference, data)


def test_raw_outputs_are_compared_without_labels(tmp_path, pair):
    reference, data = pair
    np.savez(data, x=np.load(data)["x"][:50])
    close = classifier(tmp_path, "close.onnx", 0.001)
    found = accuracy(close, reference, data, None, outputs=True, min_cosine=0.99, min_sqnr_db=20)
    assert found.verdict is VerdictKind.PASS
    far = classifier(tmp_path, "far.onnx", 0.5)
    assert accuracy(far, reference, data, None, outputs=True, min_cosine=0.99).verdict is VerdictKind.FAIL
    same = accuracy(reference, reference, data, None, outputs=True, min_cosine=0.99999, min_sqnr_db=90)
    assert same.verdict is VerdictKind.PASS
    assert same.outputs[0].scores.identical == 50


def test_a_missing_output_fails_and_does_not_just_shrink_the_comparison(tmp_path):
    both = save(_two_outputs("logits", "extra"), tmp_path, "both.onnx")
    one = classifier(tmp_path, "one.onnx")
    data = samples(tmp_path, 5)
    found = accuracy(one, both, data, None, outputs=True, min_cosine=0.1)
    assert found.verdict is VerdictKind.FAIL
    assert "output extra: the candidate has no such output" in found.reasons


def _two_outputs(*names):
    nodes = [helper.make_node("MatMul", ["x", "w"], [name]) for name in names]
    outputs = [value(name, FLOAT, ["batch", CLASSES]) for name in names]
    return model(nodes, [value("x", FLOAT, ["batch", FEATURES])], outputs, [numpy_helper.from_array(WEIGHTS, "w")])


def test_made_up_inputs_are_allowed_for_raw_outputs_only_and_said(tmp_path):
    reference = classifier(tmp_path, "ref.onnx")
    found = accuracy(reference, reference, Data("random", samples=3), None, outputs=True)
    assert found.data.kind == "random"
    assert any("made up" in warning for warning in found.warnings)
    with pytest.raises(UsageError, match="no labels"):
        accuracy(reference, reference, Data("random"))


def test_a_metric_of_your_own_sees_outputs_and_row(tmp_path, pair):
    reference, data = pair
    script = tmp_path / "mine.py"
    script.write_text(
        "import numpy as np\n"
        "def confidence(outputs, row):\n"
        "    e = np.exp(outputs['logits'] - outputs['logits'].max())\n"
        "    return (e / e.sum())[int(row['label'])]\n"
        "def loss(outputs, row):\n"
        "    return -np.log(confidence(outputs, row))\n"
        "loss.higher_is_better = False\n"
        "confidence.span, loss.span = 1.0, 30.0\n"
        "def broken(outputs, row):\n"
        "    return outputs['nothing']\n"
    )
    bad = classifier(tmp_path, "bad.onnx", 0.5)
    allowed = Allowance(0.01, relative=True)
    for name in ("confidence", "loss"):
        found = accuracy(bad, reference, data, None, metric=f"{script}:{name}", max_drop=allowed)
        assert found.metric.name == name
        assert found.values.drop > 0
        assert found.verdict is VerdictKind.FAIL
    with pytest.raises(InputError, match=r"metric mine\.py:broken failed") as caught:
        accuracy(bad, reference, data, None, metric=f"{script}:broken")
    assert "KeyError" in caught.value.cause


def test_points_are_said_of_shares_alone(tmp_path, pair):
    """A score from 0 to 100 and one from 0 to 1 are not held against the same number."""
    reference, data = pair
    script = tmp_path / "units.py"
    script.write_text(
        "def share(outputs, row):\n    return float(outputs['logits'].argmax() == int(row['label']))\n"
        "def percent(outputs, row):\n    return 100 * share(outputs, row)\n"
        "share.span, percent.span = 1.0, 100.0\n"
    )
    bad = classifier(tmp_path, "bad.onnx", 0.35)
    point, relative = parse_allowance("1pt"), parse_allowance("1%")
    share = accuracy(bad, reference, data, None, metric=f"{script}:share", max_drop=point)
    assert share.verdict is VerdictKind.FAIL
    percent = accuracy(bad, reference, data, None, metric=f"{script}:percent", max_drop=point)
    assert percent.verdict is VerdictKind.INCONCLUSIVE
    assert "points are said of shares, and percent is no share" in percent.reasons[0]
    # What is relative means the same in every unit.
    again = accuracy(bad, reference, data, None, metric=f"{script}:percent", max_drop=relative)
    assert again.verdict is VerdictKind.FAIL


@pytest.mark.parametrize(
    ("options", "task", "words"),
    [
        ({}, None, "nothing says what to measure"),
        ({"max_drop": POINT, "outputs": True}, None, "`max_drop` needs a metric"),
        ({"min_cosine": 0.9}, "text-classification", "compare outputs"),
        ({"metric": "m.py:f"}, None, "does not exist"),
        ({"metric": "m.py"}, None, "cannot read `metric`"),
        ({}, "text-clasification", "unknown task"),
        ({"settings": {"top": "x"}}, "text-classification", "is not a number"),
    ],
)
def test_what_means_nothing_is_refused(pair, options, task, words):
    reference, data = pair
    with pytest.raises((UsageError, InputError), match=words):
        accuracy(reference, reference, data, task, **options)


def _cases():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, (12, 6))
    one_hot = np.eye(3, dtype=np.float32)[labels] * 30
    yield "token-classification", {"logits": one_hot}, {"label": labels}, 1.0
    yield "fill-mask", {"logits": one_hot}, {"label": np.where(rng.random((12, 6)) < 0.5, labels, labels)}, 1.0
    spans = np.sort(rng.integers(0, 6, (12, 2)), axis=1)
    places = {name: np.eye(6, dtype=np.float32)[spans[:, i]] for i, name in enumerate(("start_logits", "end_logits"))}
    yield "question-answering", places, {"label": spans}, 1.0
    maps = rng.integers(0, 4, (12, 8, 8))
    planes = np.moveaxis(np.eye(4, dtype=np.float32)[maps], -1, 1)
    yield "semantic-segmentation", {"logits": planes}, {"label": maps}, 1.0
    depth = rng.uniform(1, 9, (12, 5, 5))
    yield "depth-estimation", {"predicted_depth": (2 * depth + 1).astype(np.float32)}, {"label": depth}, 0.0
    kinds = np.arange(12) % 3
    vectors = (np.eye(3)[kinds] + 0.01 * rng.standard_normal((12, 3))).astype(np.float32)
    yield "feature-extraction", {"sentence_embedding": vectors}, {"label": kinds}, 1.0
    boxes = np.array([[[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]]] * 12)
    answers = {
        "logits": np.array([[[9.0, 0, 0], [0, 9.0, 0]]] * 12, np.float32),
        "pred_boxes": np.array([[[0.25, 0.25, 0.5, 0.5], [0.75, 0.75, 0.5, 0.5]]] * 12, np.float32),
    }
    yield "object-detection", answers, {"boxes": boxes, "label": np.array([[0, 1]] * 12)}, 1.0


@pytest.mark.parametrize(
    ("task", "answers", "truth", "perfect"), [pytest.param(*case, id=case[0]) for case in _cases()]
)
def test_each_task_scores_perfect_answers_perfectly_and_damaged_ones_worse(tmp_path, task, answers, truth, perfect):
    graph = passing_on(tmp_path, {name: list(array.shape[1:]) for name, array in answers.items()})
    data = {f"{name}_in": array for name, array in answers.items()} | truth
    np.savez(tmp_path / "d.npz", **data)
    settings = {"map": "no"} if task == "object-detection" else {}
    found = accuracy(graph, graph, tmp_path / "d.npz", task, settings=settings)
    assert found.values.candidate == pytest.approx(perfect, abs=1e-4)
    rng = np.random.default_rng(1)
    damaged = {f"{name}_in": rng.standard_normal(array.shape).astype(np.float32) for name, array in answers.items()}
    np.savez(tmp_path / "d.npz", **{**data, **damaged})
    worse = accuracy(graph, graph, tmp_path / "d.npz", task, settings=settings)
    assert worse.values.candidate != pytest.approx(perfect, abs=0.02)


def test_similarity_of_pairs_runs_the_model_on_both(tmp_path):
    graph = passing_on(tmp_path, {"sentence_embedding": [2]})
    angles = np.linspace(0, 1.5, 20)
    second = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    first = np.tile(np.array([[1.0, 0.0]], np.float32), (20, 1))
    names = {"sentence_embedding_in": first, "sentence_embedding_in_pair": second}
    np.savez(tmp_path / "d.npz", **names, label=-angles)
    found = accuracy(graph, graph, tmp_path / "d.npz", "sentence-similarity")
    assert found.values.candidate == pytest.approx(1.0)


def test_perplexity_of_a_bigram_model_is_what_numpy_says(tmp_path):
    rng = np.random.default_rng(0)
    table = rng.standard_normal((11, 11)).astype(np.float32)
    io = [value("input_ids", 7, ["batch", "tokens"])], [value("logits", FLOAT, ["batch", "tokens", 11])]
    node = helper.make_node("Gather", ["table", "input_ids"], ["logits"], axis=0)
    graph = save(model([node], *io, [numpy_helper.from_array(table, "table")]), tmp_path)
    ids = rng.integers(0, 11, (40, 16))
    np.savez(tmp_path / "d.npz", input_ids=ids)
    found = accuracy(graph, graph, tmp_path / "d.npz", "text-generation")
    logs = table[ids[:, :-1]].astype(np.float64)
    logs = logs - np.log(np.exp(logs).sum(axis=-1, keepdims=True))
    expected = np.exp(-np.take_along_axis(logs, ids[:, 1:, None], axis=-1).mean())
    assert found.values.candidate == pytest.approx(expected, rel=1e-6)
    assert found.metric.higher_is_better is False


def test_a_result_never_speaks_of_time(tmp_path, pair):
    reference, data = pair
    found = accuracy(reference, reference, Data(str(data), samples=5), outputs=True)

    def names(item):
        for key, value_ in item.items():
            yield key
            if isinstance(value_, dict):
                yield from names(value_)

    assert not [name for name in names(dataclasses.asdict(found)) if name.endswith(("_s", "_ms")) or "latency" in name]


def test_the_folders_of_model_and_data_stay_as_they_were(tmp_path):
    folder = tmp_path / "given"
    folder.mkdir()
    reference, data = classifier(folder, "ref.onnx"), samples(folder, 5)
    folder.chmod(0o555)
    accuracy(reference, reference, data)
    assert sorted(path.name for path in folder.iterdir()) == ["data.npz", "ref.onnx"]


@pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime_qnn") is None or (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the QNN simulator is not here",
)
def test_a_candidate_on_the_simulator_is_marked_as_such(tmp_path):
    reference = classifier(tmp_path, "ref.onnx", batch=1)
    data = samples(tmp_path, 4)
    found = accuracy(reference, reference, data, target="qnn-npu")
    assert found.candidate.simulated
    assert not found.reference.simulated
    assert any("simulated" in warning for warning in found.warnings)


def test_pytorch_is_the_reference_of_a_hugging_face_folder(tmp_path):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    from modelwright.models import resolve
    from modelwright.stages.export import ExportParams, run_export

    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, num_labels=3
    )
    folder = tmp_path / "bert"
    transformers.BertForSequenceClassification(config).eval().save_pretrained(folder)
    source = resolve(str(folder))
    out = run_export(source, str(tmp_path), ExportParams(task=source.task, sequence_length=8))
    graph = tmp_path / out.components[0].name / "model.onnx"
    ids = np.random.default_rng(0).integers(5, 40, (12, 8))
    arrays = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    np.savez(tmp_path / "d.npz", **arrays, label=np.arange(12) % 3)
    found = accuracy(graph, folder, tmp_path / "d.npz")
    assert found.reference.engine.startswith("torch")
    assert found.outputs[0].scores.cosine.worst > 0.99999


def test_what_was_measured_before_the_child_died_is_the_answer(tmp_path, pair):
    reference, data = pair
    score = "def score(outputs, row):\n    seen.append(1)\n    return 1.0 if len(seen) < 900 else os.abort()\n"
    (tmp_path / "dies.py").write_text(f"import os\n\nseen = []\n\n\n{score}")
    found = accuracy(reference, reference, data, None, metric=f"{tmp_path / 'dies.py'}:score")
    assert found.status == "crashed"
    assert found.verdict is None
    assert "SIGABRT" in found.reasons[0]
    assert 0 < found.data.selected == len(found.scores) < 900


def test_the_process_that_asks_imports_neither_numpy_nor_a_parser(tmp_path, pair):
    """They are a third of a short evaluation; the child has them."""
    reference, data = pair
    code = (
        "import sys; from modelwright.evaluation import evaluate; from modelwright.vocabulary import Data; "
        f"evaluate({str(reference)!r}, {str(reference)!r}, Data({str(data)!r}, samples=40), 'text-classification'); "
        "heavy = {'numpy', 'onnx', 'onnxruntime', 'scipy', 'modelwright.measure'} & set(sys.modules); "
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("side", [0, 1])
def test_a_damaged_model_is_said_to_be_that_and_not_what_it_did_to_the_runtime(tmp_path, pair, side):
    reference, data = pair
    cut = tmp_path / "cut.onnx"
    cut.write_bytes(reference.read_bytes()[:-40])
    models = [reference, reference]
    models[side] = cut
    with pytest.raises(InputError, match=r"cut\.onnx is damaged or cut short"):
        accuracy(*models, data)
