"""MGP-STR reads a word three ways: by character, by byte pair and by word piece."""

from __future__ import annotations

from typing import Any

from modelwright.stages.export._family import ModelFamily
from modelwright.stages.export._part import Tensors

_HEADS = ("char_logits", "bpe_logits", "wp_logits")


def _answers(output: Any) -> Tensors:
    return dict(zip(_HEADS, output.logits, strict=True))


FAMILY = ModelFamily(classes={"image-to-text": "MgpstrForSceneTextRecognition"}, answers=_answers)
