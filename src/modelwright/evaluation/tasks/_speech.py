"""Speech to text: CTC heads, and decoders that write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from modelwright._lazy import lazy
from modelwright.evaluation.tasks._base import Context, Metric, Outputs, Row, Run, pick
from modelwright.evaluation.tasks._generation import WritingTask
from modelwright.evaluation.tasks._libraries import library

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")


class SpeechRecognition(WritingTask):
    """Word error rate by jiwer. A `label` of token ids is compared token by token, without a tokenizer.

    `blank` is the CTC blank; the other settings are for decoders. The numbers of a sample are: errors, words.
    """

    defaults: ClassVar[Mapping[str, str]] = {"blank": "0", **WritingTask.defaults}

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        super().__init__(context, settings)
        self.metric = Metric("wer", higher_is_better=False, form="sums", span=None, worst=None)
        self.compares_outputs = not context.writes
        self._blank = int(self.number("blank"))

    def answer(self, run: Run, row: Row) -> tuple[Outputs, ...] | None:
        return super().answer(run, row) if self.context.writes else None

    def score(self, row: Row, outputs: Sequence[Outputs]) -> tuple[int, int]:
        if self.context.writes:
            wanted, said = self.texts(row, outputs)
        else:
            ids = collapsed(pick(outputs[0], ("logits",), 2).argmax(axis=1), self._blank)
            wanted, said = self.texts(row, [{"ids": np.array(ids, np.int64)}], group_tokens=False)
        return word_errors(wanted.lower(), said.lower())

    def value(self, numbers: NDArray[Any]) -> float:
        errors, words = numbers
        return float(errors / words) if words else 0.0

    def spoiled(self, numbers: NDArray[Any]) -> NDArray[Any]:
        errors, words = numbers
        return np.array([errors + (self.metric.span or 0.0) * words, words])


def collapsed(path: NDArray[Any], blank: int) -> list[int]:
    """CTC: repeats become one, then blanks go."""
    new = np.append(True, path[1:] != path[:-1])
    return [int(token) for token in path[new] if token != blank]


def word_errors(wanted: str, said: str) -> tuple[int, int]:
    if not wanted.split():
        return len(said.split()), 0
    found = library("jiwer").process_words(wanted, said)
    return found.substitutions + found.deletions + found.insertions, len(wanted.split())
