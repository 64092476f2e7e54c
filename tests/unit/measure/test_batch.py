"""How many items a run takes: never a number that the model does not say."""

import pytest
from onnx import helper

from modelwright.measure import InputChoice, make_subject
from support import models

UNNAMED = [None, "unk__66", "s6", "?", "p2o.DynamicDimension.0", "x_dynamic_axes_1"]


def subject(folder, *shapes, asked=None, **dims):
    names = [f"x{place}" for place, _ in enumerate(shapes)]
    nodes = [helper.make_node("Relu", [name], [f"y_{name}"]) for name in names]
    inputs = [models.value(name, shape=list(shape)) for name, shape in zip(names, shapes, strict=True)]
    outputs = [models.value(f"y_{name}", shape=list(shape)) for name, shape in zip(names, shapes, strict=True)]
    return make_subject(models.save(models.model(nodes, inputs, outputs), folder), InputChoice(batch=asked, dims=dims))


@pytest.mark.parametrize(
    ("shapes", "dims", "batch"),
    [
        ([("batch_size", "N"), ("batch_size",)], {"batch_size": 2, "N": 500}, 2),
        ([("T", "batch", 16)], {"T": 9, "batch": 4}, 4),
        ([("batch",)], {"batch": 5}, 5),
        ([("N", 3, "H", "W")], {"N": 2, "H": 8, "W": 8}, 2),
        ([("b", "N")], {"b": 3, "N": 500}, 3),
        ([(8, 3, 16, 16)], {}, 8),
        ([(8, 128), (8, 128, 16), (4,)], {}, 8),
        ([(1, 80, 300)], {}, 1),
    ],
)
def test_a_name_decides_and_the_first_axis_where_it_is_plain(tmp_path, shapes, dims, batch):
    assert subject(tmp_path, *shapes, **dims).batch == batch


@pytest.mark.parametrize(
    ("shapes", "dims", "reason"),
    [
        ([("samples",)], {"samples": 16_000}, "no input has more than one axis"),
        ([("N",)], {"N": 16_000}, "no input has more than one axis"),
        ([()], {}, "no input has more than one axis"),
        ([("height", "width", 3)], {"height": 48, "width": 64}, "the first axis of x0 is height"),
        ([("T", 1, 16)], {"T": 9}, "the first axis of x0 is T"),
        ([("T", "N", 16)], {"T": 9, "N": 4}, "the first axis of x0 is T"),
        ([(1, 16), ("T", 1, 16)], {"T": 9}, "the first axis of x1 is T"),
        ([("boxes", 3, 8, 8)], {"boxes": 7}, "the first axis of x0 is boxes"),
        ([(48, 64, 3)], {}, "nothing says what the first axis of x0 is"),
        ([(1, 512), (2, 1, 128)], {}, "the inputs do not agree on a batch"),
        ([("batch", 4), ("other_batch", 4)], {"batch": 2, "other_batch": 3}, "the inputs do not agree on a batch"),
    ],
)
def test_an_axis_that_may_be_something_else_is_no_batch(tmp_path, shapes, dims, reason):
    counted = subject(tmp_path, *shapes, **dims).counted
    assert (counted.size, counted.reason) == (None, reason)


@pytest.mark.parametrize("name", UNNAMED)
def test_what_an_exporter_wrote_for_want_of_a_name_is_no_other_name(tmp_path, name):
    assert subject(tmp_path, (name, 3, 8, 8), asked=2).batch == 2
    assert subject(tmp_path, (name, 80, 300)).batch == 1


def test_of_three_axes_the_first_is_the_batch_that_was_asked_for(tmp_path):
    assert subject(tmp_path, ("s6", 80, 300), asked=4).batch == 4
    assert subject(tmp_path, ("s6", 80, 300), s6=4).batch is None
