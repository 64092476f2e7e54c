"""Speech to text with CTC heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.quality.tasks._base import Context, EvalTask, Metric, Outputs, Row, field, pick
from modelwright.quality.tasks._libraries import library

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")


class SpeechRecognition(EvalTask):
    """Word error rate by jiwer. A `label` of token ids is compared token by token, without a tokenizer.

    `blank` is the CTC blank. The numbers of a sample are: errors, words.
    """

    defaults: ClassVar[Mapping[str, str]] = {"blank": "0"}

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        super().__init__(context, settings)
        self.metric = Metric("wer", higher_is_better=False, form="sums", span=None, worst=None)
        self._blank = int(self.number("blank"))

    def score(self, row: Row, outputs: Sequence[Outputs]) -> tuple[int, int]:
        ids = collapsed(pick(outputs[0], ("logits",), 2).argmax(axis=1), self._blank)
        label = field(row, "label", "what is said, as text or as token ids")
        if not isinstance(label, str):
            wanted = [int(token) for token in np.asarray(label).reshape(-1) if token >= 0]
            return word_errors(" ".join(map(str, wanted)), " ".join(map(str, ids)))
        if self.context.tokenizer is None:
            raise InputError(
                "there is no tokenizer to read the model's answer with",
                cause="the labels are text and the model answers token ids",
                fix="Give the folder of the model's processor with --processor, or labels as token ids.",
            )
        said = str(self.context.tokenizer().decode(ids, group_tokens=False))
        return word_errors(label.lower(), said.lower())

    def value(self, numbers: NDArray[Any]) -> float:
        errors, words = numbers
        return float(errors / words) if words else 0.0


def collapsed(path: NDArray[Any], blank: int) -> list[int]:
    """CTC: repeats become one, then blanks go."""
    new = np.append(True, path[1:] != path[:-1])
    return [int(token) for token in path[new] if token != blank]


def word_errors(wanted: str, said: str) -> tuple[int, int]:
    if not wanted.split():
        return len(said.split()), 0
    found = library("jiwer").process_words(wanted, said)
    return found.substitutions + found.deletions + found.insertions, len(wanted.split())
