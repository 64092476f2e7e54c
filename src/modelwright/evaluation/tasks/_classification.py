"""One class per sample: images, texts and sounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from modelwright._lazy import lazy
from modelwright.evaluation.tasks._base import Context, EvalTask, Metric, Outputs, Row, label_of, pick

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")


class Classification(EvalTask):
    """1 when the label is among the `top` best classes."""

    defaults: ClassVar[Mapping[str, str]] = {"top": "1"}

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        super().__init__(context, settings)
        self.top = int(self.number("top"))
        self.metric = Metric("accuracy" if self.top == 1 else f"top{self.top}_accuracy")
        self._classes = 0

    def scores(self, row: Row, outputs: Sequence[Outputs]) -> Any:
        """The score of each class."""
        return np.squeeze(pick({name: np.squeeze(value) for name, value in outputs[0].items()}, ("logits",), 1))

    def score(self, row: Row, outputs: Sequence[Outputs]) -> float:
        scores = self.scores(row, outputs)
        self._classes = len(scores)
        label = label_of(row, len(scores))
        # Ties are broken by position, as argmax does, so that a constant output gets no credit for them.
        best = np.argsort(-scores, kind="stable")[: self.top]
        return float(label in best)

    def chance(self) -> float | None:
        return self.top / self._classes if self._classes > self.top else None
