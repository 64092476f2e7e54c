"""Every task against numbers worked out by hand or by an independent library."""

import math

import numpy as np
import pytest

from modelwright.errors import InputError, UsageError
from modelwright.evaluation.tasks import Context, make_task, scored_task
from modelwright.evaluation.tasks._answers import best_span, best_text_score
from modelwright.evaluation.tasks._embeddings import neighbours_agree, spearman
from modelwright.evaluation.tasks._generation import common_subsequence
from modelwright.evaluation.tasks._pixels import resized
from modelwright.evaluation.tasks._speech import collapsed
from modelwright.vocabulary import TASKS


def task(name, names=(), shared=None, **settings):
    return make_task(name, Context(tuple(names), None, shared), settings)


def logits(*rows):
    return {"logits": np.array(rows, np.float32)}


def metric_of(one, samples):
    """The metric over (row, outputs) pairs, as an evaluation computes it."""
    numbers = np.stack(one.collect([one.score(row, outputs) for row, outputs in samples]))
    return one.parts(numbers)[0]


def test_every_task_of_the_table_loads_and_says_what_it_measures():
    for scored in (item.name for item in TASKS if item.scorer is not None):
        assert task(scored).metric.name


def test_an_unknown_task_is_answered_with_a_suggestion():
    with pytest.raises(UsageError, match="unknown task") as caught:
        scored_task("image-clasification")
    assert "image-classification" in caught.value.fix


def test_an_unknown_setting_is_refused():
    with pytest.raises(UsageError, match="no setting 'topp'") as caught:
        task("image-classification", topp="3")
    assert "top" in caught.value.fix


def test_classification_counts_the_label_among_the_best_classes():
    output = {"logits": np.array([0.1, 0.7, 0.2], np.float32)}
    assert task("image-classification").score({"label": np.int64(1)}, [output]) == 1.0
    assert task("image-classification").score({"label": np.int64(2)}, [output]) == 0.0
    assert task("image-classification", top="2").score({"label": np.int64(2)}, [output]) == 1.0


def test_a_model_that_says_the_same_of_all_classes_gets_no_credit_for_ties():
    output = {"logits": np.zeros(10, np.float32)}
    hits = [task("image-classification").score({"label": label}, [output]) for label in range(10)]
    assert sum(hits) == 1


@pytest.mark.parametrize("label", [3, -1])
def test_a_label_outside_the_head_is_an_error_that_names_both(label):
    with pytest.raises(InputError, match=f"label {label} does not fit") as caught:
        task("text-classification").score({"label": label}, [{"logits": np.zeros(3, np.float32)}])
    assert "3 classes" in caught.value.cause


def test_a_label_that_is_no_number_of_a_class_is_an_error():
    with pytest.raises(InputError, match="not a class number"):
        task("text-classification").score({"label": np.array([1, 2])}, [{"logits": np.zeros(3, np.float32)}])
    with pytest.raises(InputError, match="no 'label'"):
        task("text-classification").score({"x": 1}, [{"logits": np.zeros(3, np.float32)}])


def test_tokens_are_scored_by_f1_of_what_is_not_nothing_without_class_names():
    one = task("token-classification")
    row = {"label": np.array([0, 1, 2, -100, 1]), "attention_mask": np.array([1, 1, 1, 1, 0])}
    answer = logits([1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0])
    # Right: one of two found, of two wanted; position 3 is ignored and position 4 is padding.
    assert one.score(row, [answer]) == (1, 2, 2, 2, 3)
    assert metric_of(one, [(row, [answer])]) == pytest.approx(0.5)


def test_entities_are_cut_as_seqeval_cuts_them():
    metrics = pytest.importorskip("seqeval.metrics", reason="seqeval is not installed")
    names = ["O", "B-PER", "I-PER", "B-LOC"]
    rng = np.random.default_rng(0)
    one, samples, truth, found = task("token-classification", names), [], [], []
    for _ in range(30):
        labels, answer = rng.integers(0, 4, 12), rng.random((12, 4))
        samples.append(({"label": labels}, [{"logits": answer}]))
        truth.append([names[index] for index in labels])
        found.append([names[index] for index in answer.argmax(1)])
    assert metric_of(one, samples) == pytest.approx(metrics.f1_score(truth, found))


def test_the_best_span_ends_after_it_starts_and_lies_in_the_context():
    start, end = np.array([9.0, 1, 5, 0]), np.array([0.0, 9, 1, 4])
    everywhere = np.ones(4, bool)
    assert best_span(start, end, everywhere, 30) == (0, 1)
    assert best_span(start, end, np.array([False, False, True, True]), 30) == (2, 3)
    assert best_span(start, end, everywhere, 1) == (1, 1)


def test_answers_are_compared_as_squad_does():
    assert best_text_score("the Eiffel Tower!", ["Eiffel tower"]) == (1.0, 1.0)
    f1, exact = best_text_score("tall tower", ["tower", "a bridge"])
    assert (f1, exact) == (pytest.approx(2 / 3), 0.0)
    assert best_text_score("", []) == (1.0, 1.0)


def test_answers_by_token_positions_need_no_text():
    row = {"label": np.array([2, 4]), "attention_mask": np.ones(6)}
    output = {"start_logits": np.eye(6)[2], "end_logits": np.eye(6)[3]}
    f1, exact = task("question-answering").score(row, [output])
    assert (f1, exact) == (pytest.approx(2 * 2 / 5), 0.0)
    with pytest.raises(InputError, match="does not fit"):
        task("question-answering").score({"label": np.array([2, 9])}, [output])


def test_similarity_is_the_rank_correlation_of_cosines_with_the_human_scores():
    one = task("sentence-similarity", pooling="output")
    angles = np.radians([0, 10, 40, 80])
    samples = []
    for angle, label in zip(angles, [5.0, 4.0, 2.0, 1.0], strict=True):
        vectors = [np.array([1.0, 0.0]), np.array([math.cos(angle), math.sin(angle)])]
        row = {"input_ids": np.zeros(1), "input_ids_pair": np.zeros(1), "label": label}
        samples.append((row, [{"sentence_embedding": vector} for vector in vectors]))
    assert metric_of(one, samples) == pytest.approx(1.0)


def test_token_states_are_averaged_over_what_is_no_padding():
    one = task("sentence-similarity")
    row = {"attention_mask": np.array([1, 0]), "attention_mask_pair": np.array([1, 1]), "label": 1.0}
    states = [{"last_hidden_state": np.array([[1.0, 0.0], [0.0, 9.0]])}, {"last_hidden_state": np.eye(2)}]
    cosine, _ = one.score(row, states)
    assert cosine == pytest.approx(math.sqrt(0.5))


def test_rank_correlation_shares_ranks_between_ties():
    # By hand: ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4.
    assert spearman(np.array([1.0, 2, 2, 3]), np.array([1.0, 2, 3, 4])) == pytest.approx(4.5 / math.sqrt(4.5 * 5))
    assert spearman(np.ones(4), np.arange(4.0)) == 0.0


def test_neighbours_vote_and_the_nearest_breaks_ties():
    vectors = np.array([[1, 0], [0.99, 0.1], [0, 1], [0.1, 0.99], [0.7, 0.7]])
    labels = np.array([0, 0, 1, 1, 1])
    assert neighbours_agree(vectors, labels, 1).tolist() == [True, True, True, True, False]


def test_a_failed_vector_is_nobodys_neighbour_and_fails_itself():
    one = task("feature-extraction", k="1", pooling="output")
    numbers = [(0, np.array([1.0, 0])), None, (0, np.array([1.0, 0.1])), (1, np.array([0, 1.0]))]
    found = one.collect(numbers)
    assert found[1] is None
    assert [item[0] for item in found if item is not None] == [1.0, 1.0, 0.0]


def test_too_few_samples_for_the_neighbours_is_an_error():
    with pytest.raises(InputError, match="too few"):
        task("feature-extraction").collect([(0, np.ones(2))] * 3)


def test_perplexity_of_a_uniform_model_is_the_size_of_its_vocabulary():
    row = {"input_ids": np.array([0, 3, 1, 2])}
    assert metric_of(task("text-generation"), [(row, [{"logits": np.zeros((4, 7))}])]) == pytest.approx(7.0)


def test_perplexity_weighs_tokens_not_samples_and_skips_padding():
    one = task("text-generation")
    sure = np.full((4, 2), -1e3)
    sure[np.arange(4), [1, 0, 1, 0]] = 0.0
    long = ({"input_ids": np.array([0, 1, 0, 1])}, [{"logits": sure}])
    short = (
        {"input_ids": np.array([0, 1, 1, 1]), "attention_mask": np.array([1, 1, 0, 0])},
        [{"logits": np.zeros((4, 2))}],
    )
    # Three certain tokens and one of probability one half.
    assert metric_of(one, [long, short]) == pytest.approx(math.exp(math.log(2) / 4))


def test_fill_mask_counts_only_hidden_tokens():
    row = {"label": np.array([-100, 2, -100])}
    answer = {"logits": np.log(np.array([[0.1, 0.1, 0.8], [0.25, 0.25, 0.5], [0.8, 0.1, 0.1]]))}
    assert metric_of(task("fill-mask"), [(row, [answer])]) == pytest.approx(2.0)
    with pytest.raises(InputError, match="nothing to fill in"):
        task("fill-mask").score({"label": np.full(3, -100)}, [answer])


def test_mean_iou_pools_the_images_and_ignores_what_is_marked():
    one = task("semantic-segmentation")
    answer = np.stack([np.array([[1, 1], [0, 0.0]]), np.array([[0, 0], [1, 1.0]])])
    row = {"label": np.array([[0, 1], [1, 255]])}
    # Class 0: one of two; class 1: one of two.
    assert metric_of(one, [(row, [{"logits": answer}])]) == pytest.approx(0.5)
    with pytest.raises(InputError, match="class 7 does not fit"):
        one.score({"label": np.array([[0, 7], [1, 255]])}, [{"logits": answer}])


def test_a_coarse_answer_is_stretched_to_the_label():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    planes = np.random.default_rng(0).random((3, 4, 5))
    expected = torch.nn.functional.interpolate(torch.from_numpy(planes)[None], (9, 7), mode="bilinear")[0].numpy()
    assert np.allclose(resized(planes, (9, 7)), expected)


def test_stretching_keeps_the_ends_and_a_constant():
    assert resized(np.ones((1, 2, 2)), (5, 3)).tolist() == np.ones((1, 5, 3)).tolist()
    assert resized(np.array([[[0.0, 1.0]]]), (1, 4)).ravel().tolist() == [0.0, 0.25, 0.75, 1.0]


@pytest.mark.parametrize(
    ("align", "answer"), [("affine", lambda d: 3 * d + 2), ("median", lambda d: 5 * d), ("none", lambda d: d)]
)
def test_depth_is_compared_after_the_fit_that_was_asked_for(align, answer):
    depth = np.random.default_rng(0).uniform(1, 5, (4, 4))
    one = task("depth-estimation", align=align)
    error, close = one.score({"label": depth}, [{"predicted_depth": answer(depth)}])
    assert error == pytest.approx(0.0, abs=1e-9)
    assert close == 1.0
    off, _ = one.score({"label": depth}, [{"predicted_depth": answer(depth) ** 2}])
    assert off > 0.05


def test_inverse_depth_is_turned_round_before_it_is_compared():
    depth = np.random.default_rng(0).uniform(1, 5, (4, 4))
    one = task("depth-estimation", space="disparity")
    assert one.score({"label": depth}, [{"predicted_depth": 2 / depth + 1}])[0] == pytest.approx(0.0, abs=1e-9)


def test_pixels_without_depth_do_not_count():
    depth = np.array([[1.0, 0.0], [2.0, np.nan]])
    answer = {"predicted_depth": np.array([[1.0, 50.0], [2.0, 50.0]])}
    assert task("depth-estimation", align="none").score({"label": depth}, [answer])[0] == 0.0


def detector_output(boxes, kinds, classes=2):
    scores = np.full((len(boxes), classes + 1), -9.0)
    scores[np.arange(len(boxes)), kinds] = 9.0
    boxes = np.array(boxes)
    centres = np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]], axis=1)
    return {"logits": scores, "pred_boxes": centres}


def test_a_box_is_right_once_and_only_with_its_class():
    one = task("object-detection", map="no")
    row = {"boxes": np.array([[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]]), "label": np.array([0, 1])}
    twice = detector_output([[0, 0, 0.5, 0.5], [0, 0, 0.48, 0.5], [0.5, 0.5, 1, 1]], [0, 0, 0])
    assert one.score(row, [twice]) == (1, 3, 2)
    nothing = detector_output([[0, 0, 0.5, 0.5]], [2])
    assert one.score(row, [nothing]) == (0, 0, 2)


def test_boxes_in_another_format_are_refused():
    output = detector_output([[0, 0, 0.5, 0.5]], [0])
    for boxes in ([[0.8, 0.8, 0.1, 0.1]], [[10.0, 10, 50, 50]]):
        with pytest.raises(InputError, match="not x1 y1 x2 y2"):
            task("object-detection").score({"boxes": np.array(boxes), "label": np.array([0])}, [output])


def test_mean_average_precision_of_perfect_boxes_is_one():
    pytest.importorskip("pycocotools", reason="pycocotools is not installed")
    one = task("object-detection")
    boxes = [[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]]
    numbers = one.score({"boxes": np.array(boxes), "label": np.array([0, 1])}, [detector_output(boxes, [0, 1])])
    assert one.more(np.array([numbers]))["map"] == pytest.approx(1.0)


def test_mean_average_precision_falls_with_each_kind_of_mistake():
    pytest.importorskip("pycocotools", reason="pycocotools is not installed")
    boxes = [[0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]]
    row = {"boxes": np.array(boxes), "label": np.array([0, 1])}
    one = task("object-detection")
    numbers = one.score(row, [detector_output(boxes, [0, 0])])
    # Class 0 is right, with a false box of the same score behind or before it; class 1 is never found.
    assert 0.2 < one.more(np.array([numbers]))["map"] <= 0.51


def test_ctc_paths_lose_repeats_then_blanks():
    assert collapsed(np.array([0, 3, 3, 0, 3, 5, 5, 0]), 0) == [3, 3, 5]


def test_word_errors_are_pooled_over_the_samples():
    pytest.importorskip("jiwer", reason="jiwer is not installed")
    one = task("automatic-speech-recognition")
    path = np.eye(6)[[1, 0, 2, 2, 3]]
    samples = [({"label": np.array([1, 2, 3])}, [{"logits": path}]), ({"label": np.array([1, 4])}, [{"logits": path}])]
    # No error in three words, then one wrong and one too many in two.
    assert metric_of(one, samples) == pytest.approx(2 / 5)


def test_zero_shot_texts_are_run_once_per_class():
    one = task("zero-shot-classification", entailment="2")
    row = {"input_ids": np.arange(8).reshape(2, 4), "label": 1}
    assert [view["input_ids"].tolist() for view in one.views(row)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    answers = [logits_of([9.0, 0, 0.1]), logits_of([0, 0, 0.3])]
    assert one.score(row, answers) == 1.0


def logits_of(values):
    return {"logits": np.array(values, np.float32)}


def test_zero_shot_images_are_compared_with_the_shared_text_vectors():
    one = task("zero-shot-image-classification", shared={"class_embeds": np.array([[3.0, 0], [0, 1.0]])})
    assert one.score({"label": 1}, [{"image_embeds": np.array([0.1, 0.9])}]) == 1.0
    with pytest.raises(InputError, match="classes of a zero-shot model"):
        task("zero-shot-image-classification").score({"label": 0}, [{"image_embeds": np.ones(2)}])


def following(script, words=9):
    """A model that writes the script whatever it is asked, and likes token 8 even more."""

    def run(row):
        ids = row["decoder_input_ids"]
        answer = np.zeros((len(ids), words))
        for place in range(len(ids)):
            answer[place, script[place]] = 1.0
        answer[:, 8] = 2.0 if 8 not in script else 0.0
        return {"logits": answer}

    return run


def writer(generation, **settings):
    return make_task("summarization", Context(writes=True, generation=generation), settings)


def test_a_written_text_is_decoded_greedily_until_the_end_token():
    one = writer({"bad_words_ids": [[8], [1, 2]]}, start="0", end="1", longest="8")
    outputs = one.answer(following([5, 6, 1]), {"input_ids": np.arange(3)})
    assert outputs[0]["ids"].tolist() == [5, 6]
    assert one.score({"label": np.array([5, 6, 1, -1])}, outputs) == 1.0
    assert one.score({"label": np.array([5, 7])}, outputs) == 0.5


@pytest.mark.parametrize(
    ("generation", "begins"),
    [
        ({"decoder_start_token_id": 3}, [3]),
        ({"decoder_start_token_id": 3, "forced_bos_token_id": 7}, [3, 7]),
        ({"decoder_start_token_id": 3, "forced_decoder_ids": [[1, 4], [2, 5]]}, [3, 4, 5]),
        ({"decoder_start_token_id": 3, "forced_decoder_ids": [[1, None], [2, 5]]}, [3]),
    ],
)
def test_an_answer_begins_as_the_models_folder_says(generation, begins):
    seen = []

    def run(row):
        seen.append(row["decoder_input_ids"].tolist())
        return following([0, 0, 0, 1, 1, 1])(row)

    writer({**generation, "eos_token_id": [1, 2], "suppress_tokens": [8]}, longest="1").answer(run, {})
    assert seen == [begins]


def test_a_model_that_gives_nan_gives_no_text():
    one = writer({}, start="0", end="1")
    (found,) = one.answer(lambda row: {"logits": np.full((1, 4), np.nan)}, {})
    assert np.isnan(found["ids"]).all()


def test_where_an_answer_begins_is_never_guessed():
    with pytest.raises(UsageError, match="an answer starts"):
        writer({"eos_token_id": 1})
    with pytest.raises(UsageError, match="an answer ends"):
        writer({"decoder_start_token_id": 1})


def test_bleu_adds_up_to_the_corpus_score():
    sacrebleu = pytest.importorskip("sacrebleu", reason="sacrebleu is not installed")
    one = task("translation")
    rng = np.random.default_rng(0)
    samples, written, wanted = [], [], []
    for _ in range(20):
        label = rng.integers(2, 9, 12)
        answer = np.where(rng.random(12) < 0.8, label, 3)
        samples.append(({"label": label}, [{"ids": answer}]))
        wanted.append(" ".join(map(str, label)))
        written.append(" ".join(map(str, answer)))
    assert metric_of(one, samples) == pytest.approx(sacrebleu.corpus_bleu(written, [wanted]).score / 100)


def test_the_longest_common_subsequence():
    assert common_subsequence(["a", "b", "c", "d"], ["b", "x", "d"]) == 2


def test_the_wrong_kind_of_model_is_an_error_that_lists_its_outputs():
    with pytest.raises(InputError, match="does not look like this task") as caught:
        task("token-classification").score({"label": np.zeros(3)}, [{"boxes": np.zeros((2, 2, 2))}])
    assert "boxes[2, 2, 2]" in caught.value.cause
