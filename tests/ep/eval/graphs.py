"""Models whose accuracy is known: linear classifiers of data made to fit, and graphs that pass an array on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import helper, numpy_helper

from support.models import FLOAT, model, save, value

CLASSES, FEATURES = 5, 8
WEIGHTS = np.random.default_rng(1).standard_normal((FEATURES, CLASSES)).astype(np.float32)


def classifier(folder: Path, name: str, noise: float = 0.0, batch: int | str = "batch") -> Path:
    """`logits = x · w`, the weights off by so much."""
    weights = WEIGHTS + noise * np.random.default_rng(2).standard_normal(WEIGHTS.shape)
    return save(
        model(
            [helper.make_node("MatMul", ["x", "w"], ["logits"])],
            [value("x", FLOAT, [batch, FEATURES])],
            [value("logits", FLOAT, [batch, CLASSES])],
            [numpy_helper.from_array(weights.astype(np.float32), "w")],
        ),
        folder,
        name,
    )


def passing_on(folder: Path, names: dict[str, list[int | str]]) -> Path:
    """Outputs that are the inputs of the same name with `_in` behind."""
    nodes = [helper.make_node("Identity", [f"{name}_in"], [name]) for name in names]
    inputs = [value(f"{name}_in", FLOAT, ["batch", *shape]) for name, shape in names.items()]
    outputs = [value(name, FLOAT, ["batch", *shape]) for name, shape in names.items()]
    return save(model(nodes, inputs, outputs), folder, "pass.onnx")


def samples(folder: Path, count: int, name: str = "data.npz") -> Path:
    """Labels that the exact classifier gets right three times in four."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((count, FEATURES)).astype(np.float32)
    label = (x @ WEIGHTS + rng.standard_normal((count, CLASSES))).argmax(axis=1)
    np.savez(folder / name, x=x, label=label)
    return folder / name
