"""Extractive question answering: where the answer starts and ends."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.evaluation.tasks._base import Context, EvalTask, Metric, Outputs, Row, field, pick

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")


class QuestionAnswering(EvalTask):
    """F1 of words against the best of `answers`, as SQuAD defines it; with a `label` [start, end], of tokens.

    The numbers of a sample are F1 and exact match.
    """

    defaults: ClassVar[Mapping[str, str]] = {"longest": "30"}

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        super().__init__(context, settings)
        self.metric = Metric("f1")
        self._longest = int(self.number("longest"))

    def score(self, row: Row, outputs: Sequence[Outputs]) -> tuple[float, float]:
        start, end = (pick(outputs[0], (name,), 1) for name in ("start_logits", "end_logits"))
        first, last = best_span(start, end, _usable(row, len(start)), self._longest)
        if "answers" in row and "offsets" in row:
            begin, stop = int(row["offsets"][first][0]), int(row["offsets"][last][1])
            return best_text_score(str(row["context"])[begin:stop], _answers(row["answers"]))
        wanted = np.asarray(field(row, "label", "the first and last token of the answer")).reshape(-1)
        if len(wanted) != 2 or not 0 <= wanted[0] <= wanted[1] < len(start):
            raise InputError(
                f"the answer {wanted.tolist()} does not fit the model",
                cause=f"it must be [first token, last token] within {len(start)} tokens",
                fix="Check the labels, and that the inputs are those of this model.",
            )
        return _overlap(first, last, int(wanted[0]), int(wanted[1]))

    def more(self, numbers: NDArray[Any]) -> dict[str, float]:
        return {"exact_match": float(numbers[:, 1].mean())}


def best_span(start: NDArray[Any], end: NDArray[Any], usable: NDArray[Any], longest: int) -> tuple[int, int]:
    """The allowed span with the highest sum of scores; the first of equals."""
    scores = start[:, None] + end[None, :]
    rows, columns = np.indices(scores.shape)
    allowed = usable[:, None] & usable[None, :] & (columns >= rows) & (columns < rows + longest)
    if not allowed.any():
        return 0, 0
    return divmod(int(np.where(allowed, scores, -np.inf).argmax()), len(end))


def best_text_score(found: str, answers: Sequence[str]) -> tuple[float, float]:
    """F1 and exact match against the best answer; no answer at all is the right one for an empty list."""
    scores = [_text_score(found, answer) for answer in answers or ("",)]
    return max(f1 for f1, _ in scores), max(exact for _, exact in scores)


def _text_score(found: str, answer: str) -> tuple[float, float]:
    got, wanted = _words(found), _words(answer)
    if not got or not wanted:
        same = float(got == wanted)
        return same, same
    common = sum((Counter(got) & Counter(wanted)).values())
    return 2 * common / (len(got) + len(wanted)), float(got == wanted)


def _words(text: str) -> list[str]:
    """SQuAD's normal form: lower case, no punctuation, no articles."""
    plain = "".join(letter for letter in text.lower() if letter not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", plain).split()


def _overlap(first: int, last: int, wanted_first: int, wanted_last: int) -> tuple[float, float]:
    common = max(0, min(last, wanted_last) - max(first, wanted_first) + 1)
    total = (last - first + 1) + (wanted_last - wanted_first + 1)
    return 2 * common / total, float((first, last) == (wanted_first, wanted_last))


def _usable(row: Row, length: int) -> NDArray[Any]:
    """Positions an answer may lie in: those of the context, or at least of no padding."""
    for name in ("context_mask", "attention_mask"):
        if name in row:
            return np.asarray(row[name]).reshape(-1).astype(bool)
    return np.ones(length, bool)


def _answers(value: Any) -> list[str]:
    """A list of texts, one text, or SQuAD's {"text": [...]}."""
    texts = value.get("text", []) if isinstance(value, Mapping) else value
    return [str(texts)] if isinstance(texts, str) else [str(text) for text in texts]
