"""Detectors that pick and order their rows inside the graph: rows are compared as sets, and broken ones still fail."""

import numpy as np
import onnx
import pytest
from onnx import helper

from modelwright.graph import load
from modelwright.stages.validate import Gate, picked_outputs
from modelwright.stages.validate._outputs import Asked, parity
from modelwright.stages.validate._run import _verdicts
from modelwright.stages.validate._types import Fidelity
from modelwright.stages.validate._ways import Ways
from support import models

SAMPLES, SHOWN = 16, 12


def scene(seed):
    """Boxes in pixels, scores in pairs of near-ties, classes."""
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, 400, (SHOWN, 2))
    boxes = np.hstack([corner, corner + rng.uniform(40, 200, (SHOWN, 2))])
    scores = np.repeat(np.sort(rng.uniform(0.35, 0.95, SHOWN // 2))[::-1], 2)
    return boxes, scores, rng.integers(0, 5, SHOWN)


def rounded(rows, seed):
    """What a good int8 build answers: near-ties change places, and one at the threshold is gone."""
    boxes, scores, kinds = rows
    rng = np.random.default_rng(seed)
    boxes, scores = boxes + rng.normal(0, 2, boxes.shape), scores + rng.normal(0, 0.01, scores.shape)
    order = np.argsort(-scores)
    return boxes[order], scores[order], kinds[order]


def table(rows, layout):
    boxes, scores, kinds = rows
    parts = {"box": boxes, "score": scores[:, None], "class": kinds[:, None], "image": np.zeros((len(scores), 1))}
    return {"output": np.hstack([parts[word] for word in layout.split()]).astype(np.float32)}


def in_a_batch(rows):
    return {"output": table(rows, "box score class")["output"][None]}


def padded(rows):
    """300 rows whatever is seen; the rest has scores of nearly nothing and boxes of anything, in any order."""
    rng = np.random.default_rng(len(rows[0]) + int(1e6 * rows[1][0]))
    corner = rng.uniform(0, 500, (300 - len(rows[0]), 2))
    rest = np.hstack([corner, corner + 20])
    filled = (rest, rng.uniform(0, 0.02, len(rest)), rng.integers(0, 5, len(rest)))
    return in_a_batch([np.concatenate(pair) for pair in zip(rows, filled, strict=True)])


def columns(rows):
    boxes, scores, kinds = rows
    masks = np.stack([np.full((1, 8, 8), float(kind + 1)) for kind in kinds]) * boxes[:, :1, None, None]
    return {
        "boxes": boxes.astype(np.float32),
        "labels": kinds.astype(np.int64),
        "scores": scores.astype(np.float32),
        "masks": masks.astype(np.float32),
    }


def counted(rows):
    """As TensorFlow's detectors answer: 50 rows, of which the first so many count."""
    boxes, scores, kinds = rows
    room = 50 - len(boxes)
    return {
        "num_detections": np.array([len(boxes)], np.float32),
        "detection_boxes": np.pad(boxes, ((0, room), (0, 0)))[None].astype(np.float32),
        "detection_scores": np.pad(scores, (0, room))[None].astype(np.float32),
        "detection_classes": np.pad(kinds, (0, room))[None].astype(np.float32),
    }


def queries(rows):
    """As RT-DETR answers: middles and sizes, and a logit for each class."""
    boxes, scores, kinds = rows
    logits = np.full((len(boxes), 5), -6.0)
    logits[np.arange(len(boxes)), kinds] = np.log(scores / (1 - scores))
    middles = np.hstack([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]]) / 640
    return {"logits": logits[None].astype(np.float32), "pred_boxes": middles[None].astype(np.float32)}


FORMS = {
    "box score class": lambda rows: table(rows, "box score class"),
    "box class score": lambda rows: table(rows, "box class score"),
    "class score box": lambda rows: table(rows, "class score box"),
    "image box class score": lambda rows: table(rows, "image box class score"),
    "image class score box": lambda rows: table(rows, "image class score box"),
    "in a batch": in_a_batch,
    "padded": padded,
    "columns": columns,
    "counted": counted,
    "queries": queries,
}


def judged(wanted, got, precision="w8a8", picked=True, random=False):
    names = frozenset(wanted[0]) if picked else frozenset()
    gate = Gate(precision=precision)
    outputs = parity(wanted, got, Asked([{}] * len(wanted), gate, random, names))
    nothing = Fidelity(None, None)
    return _verdicts(Ways(outputs, "as executed", nothing, nothing))


def passes(wanted, got, **how):
    return all(check.passed for check in judged(wanted, got, **how))


@pytest.mark.parametrize("form", FORMS)
def test_near_ties_that_change_places_do_not_fail_a_good_detector(form):
    shown = [scene(seed) for seed in range(SAMPLES)]
    wanted = [FORMS[form](rows) for rows in shown]
    got = [FORMS[form](rounded(rows, seed)) for seed, rows in enumerate(shown)]
    assert passes(wanted, got)
    assert not passes(wanted, got, picked=False), "without the order being the graph's own, rows that move are errors"


BROKEN = {
    "a third is not seen any more": lambda boxes, scores, kinds: (boxes[::3], scores[::3], kinds[::3]),
    "all are of another class": lambda boxes, scores, kinds: (boxes, scores, (kinds + 1) % 5),
    "all boxes are elsewhere": lambda boxes, scores, kinds: (boxes[::-1] + 700.0, scores, kinds),
    "boxes are a third larger": lambda boxes, scores, kinds: (boxes * 1.33, scores, kinds),
    "scores no longer say anything": lambda boxes, scores, kinds: (boxes, np.full(len(scores), 0.26), kinds),
    "everything is seen twice": lambda boxes, scores, kinds: (
        np.repeat(boxes, 2, axis=0),
        np.repeat(scores, 2) - 1e-3,
        np.repeat(kinds, 2),
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("form", FORMS)
def test_a_detector_that_is_broken_fails_in_whatever_order(form, fault):
    shown = [scene(seed) for seed in range(SAMPLES)]
    wanted = [FORMS[form](rows) for rows in shown]
    got = [FORMS[form](BROKEN[fault](*rounded(rows, seed))) for seed, rows in enumerate(shown)]
    assert not passes(wanted, got)


def test_masks_that_do_not_belong_to_their_boxes_any_more_fail():
    shown = [scene(seed) for seed in range(SAMPLES)]
    wanted = [columns(rows) for rows in shown]
    got = [columns(rounded(rows, seed)) for seed, rows in enumerate(shown)]
    assert passes(wanted, got)
    mixed = [{**answer, "masks": answer["masks"][::-1]} for answer in got]
    assert not passes(wanted, mixed)


def test_places_that_non_maximum_suppression_picked_are_compared_by_what_is_there():
    """Another anchor of the same thing is the same thing."""
    wanted, got = [], []
    for seed in range(SAMPLES):
        boxes, scores, kinds = scene(seed)
        every = np.concatenate([boxes, boxes + 1.0]).astype(np.float32)[None]
        scored = np.full((1, 5, 2 * SHOWN), 0.01, np.float32)
        scored[0, np.tile(kinds, 2), np.arange(2 * SHOWN)] = np.tile(scores, 2) - 1e-4 * np.arange(2 * SHOWN)
        place = np.arange(SHOWN)
        one = np.stack([np.zeros(SHOWN, np.int64), kinds, place], axis=1)
        other = np.stack([np.zeros(SHOWN, np.int64), kinds, place + SHOWN], axis=1)[::-1]
        rest = {"boxes": every, "scores": scored}
        wanted.append({**rest, "indices": one})
        got.append({**rest, "indices": other})
    nothing = [{**answer, "indices": answer["indices"][:3]} for answer in got]
    for answers, good in ((got, True), (nothing, False)):
        gate, unknown = Gate(precision="w8a8"), Fidelity(None, None)
        outputs = parity(wanted, answers, Asked([{}] * SAMPLES, gate, False, frozenset({"indices"})))
        checks = _verdicts(Ways(outputs, "as executed", unknown, unknown))
        assert all(check.passed for check in checks) is good


def test_made_up_inputs_in_which_one_side_sees_a_row_more_do_not_fail():
    empty = {"output": np.zeros((0, 6), np.float32)}
    one = {"output": np.array([[10, 10, 60, 60, 0.11, 2]], np.float32)}
    # Not a no; but no yes either: there is nothing that both saw.
    assert [check.passed for check in judged([empty, one], [one, one], random=True)] == [None]
    far = [table(scene(seed), "box score class") for seed in range(8)]
    other = [table(scene(seed + 100), "box score class") for seed in range(8)]
    assert not passes(far, other, random=True)


def test_a_float_build_may_swap_rows_but_not_change_them():
    shown = [scene(seed) for seed in range(SAMPLES)]
    wanted = [table(rows, "box score class") for rows in shown]
    swapped = [{"output": answer["output"][[1, 0, *range(2, SHOWN)]]} for answer in wanted]
    assert passes(wanted, swapped, precision="fp32")
    got = [table(rounded(rows, seed), "box score class") for seed, rows in enumerate(shown)]
    assert not passes(wanted, got, precision="fp32")


def test_what_an_output_is_said_to_be_counts_more():
    shown = [scene(seed) for seed in range(SAMPLES)]
    wanted = [table(rows, "box score class") for rows in shown]
    got = [table(rounded(rows, seed), "box score class") for seed, rows in enumerate(shown)]
    gate = Gate(precision="w8a8", outputs={"output": "other"})
    (found,) = parity(wanted, got, Asked([{}] * SAMPLES, gate, False, frozenset({"output"})))
    assert found.kind == "other"


@pytest.mark.parametrize(("operator", "expected"), [("TopK", {"y"}), ("Relu", set())])
def test_only_outputs_behind_the_picking_are_lists(operator, expected, tmp_path):
    outputs = ["v", "i"] if operator == "TopK" else ["v"]
    inputs = ["x", "k"] if operator == "TopK" else ["x"]
    nodes = [
        helper.make_node(operator, inputs, outputs),
        helper.make_node("Neg", ["v"], ["y"]),
        helper.make_node("Abs", ["x"], ["z"]),
    ]
    weights = [onnx.numpy_helper.from_array(np.array([2], np.int64), "k")]
    shown = [models.value("y"), models.value("z")]
    proto = models.model(nodes, [models.value("x", shape=[1, 8])], shown, weights)
    assert picked_outputs(load(models.save(proto, tmp_path))) == expected
