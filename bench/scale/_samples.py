"""Rows about many samples."""

from __future__ import annotations

import numpy as np

from bench.scale._bare import EVALUATE
from bench.scale._models import classifier
from bench.scale._places import Row, beside, in_turns, place


def evaluation(samples: int = 1000) -> Row:
    """Both sides run two models on every sample and score them; ours also compares their outputs."""
    with place() as here:
        models = [classifier(here.folder / f"{seed}.onnx", seed) for seed in (0, 1)]
        data, rng = here.folder / "data.npz", np.random.default_rng(0)
        np.savez(data, x=rng.standard_normal((samples, 3, 16, 16), np.float32), label=rng.integers(0, 10, samples))
        words = ("--reference", models[1], "--data", data, "--task", "image-classification", "--max-drop", "50%")
        bare, ours = in_turns(
            lambda: here.bare(EVALUATE, *models, data), lambda: here.wright("eval", models[0], *words, good=(0, 1, 6))
        )
        return {**beside(ours, bare), "limits": {"cpu_ratio": 1.5}}
