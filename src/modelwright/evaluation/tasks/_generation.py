"""Texts that a sequence-to-sequence model writes: translation and summaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from modelwright._lazy import lazy
from modelwright.errors import InputError, UsageError
from modelwright.evaluation.tasks._base import Context, EvalTask, Metric, Outputs, Row, Run, field, nothing_right, pick
from modelwright.evaluation.tasks._libraries import library
from modelwright.stages.decode import Writing, writing_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

_DECODER = "decoder_input_ids"
_AUTO = "auto"


class WritingTask(EvalTask):
    """A text that the model writes token by token, greedily: no beams, no sampling. Or token ids that a graph answers.

    `start` (one or more token ids) and `end` are what the model's folder says, unless they are given; `longest` is a
    number of tokens. A `label` of ids is compared without a tokenizer.
    """

    defaults: ClassVar[Mapping[str, str]] = {"start": _AUTO, "end": _AUTO, "longest": "64"}
    compares_outputs = False

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        super().__init__(context, settings)
        self._longest = int(self.number("longest"))
        # A graph that answers token ids knows its own start and end.
        known = writing_of(context.generation)
        self._start = self._tokens("start", known.start) if context.writes else []
        self._end = self._tokens("end", known.end) if context.writes else []
        self._writing = Writing(end=tuple(self._end), never=tuple(set(known.never) - set(self._end)))

    def answer(self, run: Run, row: Row) -> tuple[Outputs, ...] | None:
        ids: list[int] = []
        while len(ids) < self._longest and not set(ids[-1:]) & set(self._end):
            outputs = run({**row, _DECODER: np.array([*self._start, *ids], np.int64)})
            whole = [value for value in outputs.values() if value.dtype.kind == "i" and value.ndim == 1]
            if whole:
                ids = [int(token) for token in whole[0]]
                break
            logits = pick(outputs, ("logits",), 2)[-1]
            if np.isnan(logits).any() or np.isposinf(logits).any():
                return ({"ids": np.array([np.nan])},)
            ids.append(int(self._writing.allowed(logits).argmax()))
        return ({"ids": np.array([token for token in ids if token not in self._end], np.int64)},)

    def texts(self, row: Row, outputs: Sequence[Outputs], **decoding: Any) -> tuple[str, str]:
        """What is wanted and what was written; `decoding` goes to the tokenizer."""
        label = field(row, "label", "the text that should come out, or its token ids")
        ids = [int(token) for token in outputs[0]["ids"]]
        if not isinstance(label, str):
            return self._plain(np.asarray(label).reshape(-1)), self._plain(ids)
        if self.context.tokenizer is None:
            raise InputError(
                "there is no tokenizer to read the model's answer with",
                cause="the labels are text and the model answers token ids",
                fix="Give the folder of the model's tokenizer with `processor`, or labels as token ids.",
            )
        return label, str(self.context.tokenizer().decode(ids, skip_special_tokens=True, **decoding))

    def _plain(self, ids: Iterable[int]) -> str:
        """Negative ids are padding."""
        skipped = {*self._start, *self._end}
        return " ".join(str(token) for token in ids if token >= 0 and token not in skipped)

    def _tokens(self, key: str, known: Sequence[int]) -> list[int]:
        word = self.settings[key]
        if word != _AUTO:
            try:
                return [int(token) for token in word.split(",")]
            except ValueError as error:
                raise UsageError(
                    f"`settings` {key}={word} is no list of token ids",
                    cause=str(error),
                    fix=f"`settings` {key}=2,50264",
                ) from error
        if not known:
            raise UsageError(
                f"with which token an answer {key}s is unknown",
                cause="neither `settings` nor the configuration of a `processor` folder says it",
                fix=f"Give the model's own folder with `processor`, or the token id with `settings` {key}=ID.",
            )
        return list(known)


class Translation(WritingTask):
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

    def spoiled(self, numbers: NDArray[Any]) -> NDArray[Any]:
        return nothing_right(numbers, 4)


class Summarization(WritingTask):
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
