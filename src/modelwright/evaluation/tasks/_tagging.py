"""A class for each token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.evaluation.tasks._base import (
    IGNORED,
    Context,
    EvalTask,
    Metric,
    Outputs,
    Row,
    labels_of,
    nothing_right,
    pick,
)
from modelwright.evaluation.tasks._libraries import library

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

_CHUNKS = ("B-", "I-", "E-", "S-", "L-", "U-")


class TokenClassification(EvalTask):
    """F1 of whole entities, as seqeval cuts them, when the class names say what an entity is; else of single tokens.

    The numbers of a sample are: found and right, found, there to be found, right tokens, tokens.
    """

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        super().__init__(context, settings)
        self._entities = any(name.startswith(_CHUNKS) for name in context.label_names)
        name = "entity_f1" if self._entities else "token_f1"
        self.metric = Metric(name, form="sums", worst=None)

    def score(self, row: Row, outputs: Sequence[Outputs]) -> Any:
        logits = pick(outputs[0], ("logits",), 2)
        labels = labels_of(row, *logits.shape)
        used = labels != IGNORED
        if "attention_mask" in row:
            used &= np.asarray(row["attention_mask"]).reshape(-1).astype(bool)
        wanted, got = labels[used].astype(int), logits[used].argmax(axis=1)
        right = int((wanted == got).sum())
        return (*(self._spans(wanted, got) if self._entities else _tokens(wanted, got)), right, len(wanted))

    def _spans(self, wanted: NDArray[Any], got: NDArray[Any]) -> tuple[int, int, int]:
        cut = library("seqeval.metrics.sequence_labeling", "seqeval").get_entities
        names = self.context.label_names
        truth, found = ({*cut([names[index] for index in tags])} for tags in (wanted, got))
        return len(truth & found), len(found), len(truth)

    def value(self, numbers: NDArray[Any]) -> float:
        right, found, wanted, *_ = numbers
        return float(2 * right / (found + wanted)) if found + wanted else 1.0

    def spoiled(self, numbers: NDArray[Any]) -> NDArray[Any]:
        return nothing_right(numbers, 1)

    def more(self, numbers: NDArray[Any]) -> dict[str, float]:
        right, found, wanted, hits, tokens = numbers.sum(axis=0)
        return {
            "precision": right / found if found else 0.0,
            "recall": right / wanted if wanted else 0.0,
            "token_accuracy": hits / tokens if tokens else 0.0,
        }


def _tokens(wanted: NDArray[Any], got: NDArray[Any]) -> tuple[int, int, int]:
    """Class 0 is "nothing here", as in every tagging scheme."""
    return int(((wanted == got) & (wanted > 0)).sum()), int((got > 0).sum()), int((wanted > 0).sum())
