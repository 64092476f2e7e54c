"""Models of pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench.zoo._trained import Sample, Trained, each, rows

DEMO = Path(__file__).parents[2] / "demo"


def fashion() -> Trained:
    """The demo's classifier, on images of Fashion-MNIST that it was not trained on."""
    held = np.load(DEMO / "fashion_test.npz")
    samples: list[Sample] = [{"image": image[None].astype(np.float32) / 255} for image in held["image"]]
    judged = samples[128:]
    return Trained(
        name="fashion",
        path=DEMO / "fashion_cnn.onnx",
        kind="classification",
        metric="accuracy",
        labels="real",
        bound=0.02,
        calibration=samples[:128],
        judged=judged,
        score=each(judged, held["label"][128:], lambda found, label: float(found[0][0].argmax() == label)),
        task="image-classification",
        labelled=rows(judged, held["label"][128:]),
    )
