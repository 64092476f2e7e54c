"""Spellings that were given up, and what stands in their place: whoever types one is told."""

from __future__ import annotations

_FILES = ("perf", "compare", "eval", "config")

RENAMED = {
    **{(command, word): "--save FILE" for command in _FILES for word in ("-o", "--output")},
    **{(command, "--input-data"): "--data FILE" for command in ("perf", "compare")},
    **{(command, "--calibration"): "--data FILE" for command in ("build", "quantize")},
    ("debug", "--calibration"): "--calibrated-on FILE",
    ("debug", "--float"): "--reference MODEL",
    ("debug", "--quant"): "the model as the argument: wright debug MODEL --reference FLOAT",
}


def renamed(command: str, word: str) -> str | None:
    """What to write instead of `word` in `command`, where it had that option once."""
    return RENAMED.get((command, word))
