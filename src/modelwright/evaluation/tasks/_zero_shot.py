"""Classes that are named at run time, by texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.evaluation.tasks._base import Outputs, Row, pick
from modelwright.evaluation.tasks._classification import Classification

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

_CLASS_EMBEDS, _TEXT_EMBEDS = "class_embeds", "text_embeds"


class ZeroShotImage(Classification):
    """`logits_per_image` of a whole CLIP-like model, `image_embeds` and `text_embeds` of its two halves, or the image
    half alone against `class_embeds` of the data."""

    def scores(self, row: Row, outputs: Sequence[Outputs]) -> Any:
        if "logits_per_image" in outputs[0]:
            return np.asarray(outputs[0]["logits_per_image"], np.float64).reshape(-1)
        classes = outputs[0].get(_TEXT_EMBEDS, (self.context.shared or {}).get(_CLASS_EMBEDS))
        if classes is None:
            raise InputError(
                "the classes of a zero-shot model are unknown",
                cause=f"the model gives no logits_per_image or {_TEXT_EMBEDS}, the data no shared.{_CLASS_EMBEDS}",
                fix=f"Put the text embeddings of the classes, one row each, into the data as shared.{_CLASS_EMBEDS}.",
            )
        image = pick(outputs[0], ("image_embeds", "pooler_output"), 1)
        texts = np.asarray(classes, np.float64)
        return texts @ image / (np.linalg.norm(texts, axis=1) * max(np.linalg.norm(image), 1e-12))


class ZeroShotText(Classification):
    """An entailment model says for each class whether the text is about it.

    The inputs of a row have one line per class: (classes, tokens). `entailment` is that class of the head.
    """

    defaults: ClassVar[Mapping[str, str]] = {"top": "1", "entailment": "-1"}

    def views(self, row: Row) -> Sequence[Row]:
        lines = {name: value for name, value in row.items() if isinstance(value, np.ndarray) and value.ndim == 2}
        counts = {len(value) for value in lines.values()}
        if len(counts) != 1:
            raise InputError(
                "the rows have no line per class",
                cause="zero-shot inputs have the shape (classes, tokens) in each row",
                fix="Tokenize the text with each class name, and stack the results.",
            )
        return [{name: value[index] for name, value in lines.items()} for index in range(counts.pop())]

    def scores(self, row: Row, outputs: Sequence[Outputs]) -> Any:
        index = int(self.number("entailment"))
        return np.array([pick(output, ("logits",), 1)[index] for output in outputs])
