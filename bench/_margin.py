"""Whether a model with random weights has answers that 8-bit weights could keep at all.

A control that has nothing of ours in it: PyTorch's float model, its weights rounded to 8 bits for each output channel,
everything else as it was. Where that alone changes the answers by more than a gate allows (for w8a16: cosine 0.95,
1 detection in 40; here every box counts, however sure the model is of it), a gate says nothing about who quantized.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

COSINE, DETECTIONS_LOST, SAME_BOX = 0.95, 1 / 40, 0.5


def lost_by_rounding(folder: Path, inputs: Mapping[str, np.ndarray]) -> str | None:
    """What 8-bit weights cost this model, where that is more than a gate allows."""
    config = transformers.AutoConfig.from_pretrained(folder)
    torch.manual_seed(0)
    model = getattr(transformers, json.loads((folder / "config.json").read_text())["architectures"][0])(config).eval()
    before = _answers(model, inputs)
    for part in model.modules():
        if isinstance(part, torch.nn.Linear | torch.nn.Conv2d):
            part.weight.data = _rounded(part.weight.data)
    after = _answers(model, inputs)
    if "pred_boxes" in before:
        lost = 1 - _boxes_kept(before["pred_boxes"], after["pred_boxes"])
        return f"{lost:.0%} of its detections" if lost > DETECTIONS_LOST else None
    first, second = (np.asarray(next(iter(found.values())), np.float64).ravel() for found in (before, after))
    cosine = float(first @ second / np.linalg.norm(first) / np.linalg.norm(second))
    return f"cosine {cosine:.3f}" if cosine < COSINE else None


def _answers(model: Any, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    with torch.no_grad():
        found = model(**{name: torch.from_numpy(value) for name, value in inputs.items()})
    kept = ("pred_boxes", "logits", "predicted_depth")
    return {name: found[name].numpy() for name in kept if name in found}


def _rounded(weight: torch.Tensor) -> torch.Tensor:
    step = weight.abs().amax(tuple(range(1, weight.dim())), keepdim=True).clamp(min=1e-12) / 127
    return (weight / step).round() * step


def _boxes_kept(before: np.ndarray, after: np.ndarray) -> float:
    """The share of boxes that overlap with one of the others by half."""
    return float(np.mean([_overlaps(a, b).max(1) >= SAME_BOX for a, b in zip(before, after, strict=True)]))


def _overlaps(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    one, two = _corners(first)[:, None], _corners(second)[None]
    sides = np.clip(np.minimum(one[..., 2:], two[..., 2:]) - np.maximum(one[..., :2], two[..., :2]), 0, None)
    common = sides.prod(-1)
    return np.asarray(common / (first[:, None, 2:].prod(-1) + second[None, :, 2:].prod(-1) - common))


def _corners(boxes: np.ndarray) -> np.ndarray:
    return np.concatenate([boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2], 1)
