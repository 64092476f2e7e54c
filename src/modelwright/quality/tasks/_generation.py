"""Texts that a sequence-to-sequence model writes: translation and summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.quality.tasks._base import Context, EvalTask, Metric, Outputs, Row, Run, field, pick
from modelwright.quality.tasks._libraries import library

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

_DECODER = "decoder_input_ids"


class _Written(EvalTask):
    """Greedy, one graph with `decoder_input_ids`; or a graph whose output already is token ids.

    `start` and `end` are token ids, `longest` is a number of tokens. A `label` of ids is compared without a tokenizer.
    """

    defaults: ClassVar[Mapping[str, str]] = {"start": "0", "end": "1", "longest": "64"}
    compares_outputs = False

    def answer(self, run: Run, row: Row) -> tuple[Outputs, ...]:
        start, end, longest = (int(self.number(key)) for key in ("start", "end", "longest"))
        ids = [start]
        while len(ids) <= longest:
            outputs = run({**row, _DECODER: np.array(ids, np.int64)})
            whole = [value for value in outputs.values() if value.dtype.kind == "i" and value.ndim == 1]
            if whole:
                ids = [start, *(int(token) for token in whole[0] if token != start)]
                break
            logits = pick(outputs, ("logits",), 2)
            if not np.isfinite(logits[len(ids) - 1]).all():
                return ({"ids": np.array([np.nan])},)
            ids.append(int(logits[len(ids) - 1].argmax()))
            if ids[-1] == end:
                break
        return ({"ids": np.array([token for token in ids[1:] if token != end], np.int64)},)

    def texts(self, row: Row, outputs: Sequence[Outputs]) -> tuple[str, str]:
        """What is wanted and what was written."""
        ids = [int(token) for token in outputs[0]["ids"]]
        label = field(row, "label", "the text that should come out, or its token ids")
        if not isinstance(label, str):
            wanted = [int(token) for token in np.asarray(label).reshape(-1) if token >= 0]
            return " ".join(map(str, wanted)), " ".join(map(str, ids))
        if self.context.tokenizer is None:
            raise InputError(
                "there is no tokenizer to read the model's answer with",
                cause="the labels are text and the model answers token ids",
                fix="Give the folder of the model's tokenizer with --processor, or labels as token ids.",
            )
        return label, str(self.context.tokenizer().decode(ids, skip_special_tokens=True))


class Translation(_Written):
    """BLEU by sacrebleu, as a fraction. The numbers of a sample are BLEU's own counts, which add up."""

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        super().__init__(context, settings)
        self.metric = Metric("bleu", form="sums", worst=None)

    def score(self, row: Row, outputs: Sequence[Outputs]) -> Any:
        wanted, written = self.texts(row, outputs)
        found = library("sacrebleu").sentence_bleu(written, [wanted])
        return (*found.counts, *found.totals, found.sys_len, found.ref_len)

    def value(self, numbers: NDArray[Any]) -> float:
        counts, totals = ([round(number) for number in part] for part in (numbers[:4], numbers[4:8]))
        bleu = library("sacrebleu").BLEU.compute_bleu(counts, totals, round(numbers[8]), round(numbers[9]))
        return float(bleu.score) / 100


class Summarization(_Written):
    """ROUGE-L: F1 of the longest common subsequence of words."""

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        super().__init__(context, settings)
        self.metric = Metric("rouge_l")

    def score(self, row: Row, outputs: Sequence[Outputs]) -> float:
        wanted, written = (text.lower().split() for text in self.texts(row, outputs))
        common = common_subsequence(wanted, written)
        return 2 * common / (len(wanted) + len(written)) if wanted or written else 1.0


def common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the longest one."""
    lengths = [0] * (len(other) + 1)
    for word in one:
        diagonal = 0
        for place, against in enumerate(other, start=1):
            above = lengths[place]
            lengths[place] = diagonal + 1 if word == against else max(above, lengths[place - 1])
            diagonal = above
    return lengths[-1]
