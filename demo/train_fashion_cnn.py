"""Trains demo/fashion_cnn.onnx and cuts demo/fashion_test.npz from Fashion-MNIST (MIT licence).

Needs torch and the Debian package dataset-fashion-mnist. Run once; both files are committed:

    python demo/train_fashion_cnn.py
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import nn

DATA = Path("/usr/share/datasets/fashion-mnist")
HERE = Path(__file__).parent
CALIBRATION, HELD_OUT, EPOCHS = 128, 1000, 6


def read(name: str, header: int) -> np.ndarray:
    return np.frombuffer(gzip.decompress((DATA / f"{name}.gz").read_bytes()), np.uint8, offset=header)


def images(name: str) -> np.ndarray:
    return read(f"{name}-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)


class Separable(nn.Sequential):
    """A depthwise and a pointwise convolution: the pair that per-tensor int8 hurts most."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False),
            nn.BatchNorm2d(inputs),
            nn.ReLU6(),
            nn.Conv2d(inputs, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU6(),
        )


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, 1, 1, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU6(),
        Separable(32, 64, 2),
        Separable(64, 128, 1),
        Separable(128, 128, 2),
        Separable(128, 256, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(256, 10),
    )


def train(model: nn.Module) -> None:
    x = torch.from_numpy(images("train").astype(np.float32) / 255.0)
    y = torch.from_numpy(read("train-labels-idx1-ubyte", 8).astype(np.int64))
    steps = EPOCHS * (len(x) // 256)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, steps + 1)
    for epoch in range(EPOCHS):
        for rows in torch.randperm(len(x)).split(256)[: len(x) // 256]:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch + 1}: test accuracy {accuracy(model):.4f}", flush=True)


@torch.no_grad()
def accuracy(model: nn.Module) -> float:
    model.eval()
    x = torch.from_numpy(images("t10k").astype(np.float32) / 255.0)
    y = torch.from_numpy(read("t10k-labels-idx1-ubyte", 8).astype(np.int64))
    right = sum(
        (model(part).argmax(1) == label).sum().item() for part, label in zip(x.split(500), y.split(500), strict=True)
    )
    model.train()
    return right / len(x)


def export(model: nn.Module) -> None:
    model.eval()
    path = HERE / "fashion_cnn.onnx"
    # Without constant folding the batch norms stay visible, so that the optimizer has something to do.
    torch.onnx.export(
        model,
        (torch.zeros(1, 1, 28, 28),),
        str(path),
        dynamo=False,
        opset_version=17,
        input_names=["image"],
        output_names=["logits"],
        dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}},
        training=torch.onnx.TrainingMode.PRESERVE,
        do_constant_folding=False,
    )
    onnx.checker.check_model(onnx.load(path), full_check=True)


def cut_test_set() -> None:
    x, y = images("t10k"), read("t10k-labels-idx1-ubyte", 8)
    rows = np.random.default_rng(0).permutation(len(x))[: CALIBRATION + HELD_OUT]
    np.savez_compressed(HERE / "fashion_test.npz", image=x[rows], label=y[rows])


def main() -> None:
    torch.manual_seed(0)
    model = network()
    train(model)
    export(model)
    cut_test_set()


if __name__ == "__main__":
    main()
