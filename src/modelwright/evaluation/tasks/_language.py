"""How surprised a language model is by real text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.evaluation.tasks._base import (
    IGNORED,
    Context,
    EvalTask,
    Metric,
    Outputs,
    Row,
    field,
    labels_of,
    log_softmax,
    pick,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

_LOG_MAX = 700.0


class _Perplexity(EvalTask):
    """exp of the mean surprise per token. The numbers of a sample are: surprise (nats), tokens, right guesses."""

    name = "perplexity"

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        super().__init__(context, settings)
        self.metric = Metric(self.name, unit="perplexity", higher_is_better=False, form="sums", span=None, worst=None)

    def value(self, numbers: NDArray[Any]) -> float:
        surprise, tokens, _ = numbers
        return math.exp(min(surprise / tokens, _LOG_MAX)) if tokens else 1.0

    def spoiled(self, numbers: NDArray[Any]) -> NDArray[Any]:
        surprise, tokens, right = numbers
        worse = math.log(self.value(numbers) + (self.metric.span or 0.0))
        return np.array([max(surprise, tokens * worse), tokens, right])

    def more(self, numbers: NDArray[Any]) -> dict[str, float]:
        surprise, tokens, right = numbers.sum(axis=0)
        return {"nats_per_token": surprise / tokens, "token_accuracy": right / tokens} if tokens else {}


class FillMask(_Perplexity):
    """At the masked positions: `label` holds the hidden token there, -100 elsewhere."""

    name = "pseudo_perplexity"

    def score(self, row: Row, outputs: Sequence[Outputs]) -> Any:
        logits = pick(outputs[0], ("logits",), 2)
        labels = labels_of(row, *logits.shape)
        places = np.flatnonzero(labels != IGNORED)
        if not len(places):
            raise InputError(
                "a row has nothing to fill in",
                cause="every label is -100",
                fix="Mask at least one token of each row, and give the hidden one as its label.",
            )
        return surprise(logits[places], labels[places])


class NextToken(_Perplexity):
    """Each token from those before it; padding does not count."""

    def score(self, row: Row, outputs: Sequence[Outputs]) -> Any:
        logits = pick(outputs[0], ("logits",), 2)
        ids = np.asarray(field(row, "input_ids", "the text as token ids")).reshape(-1)
        if len(ids) != len(logits):
            raise InputError(
                "the model answers only part of the text",
                cause=f"{len(logits)} positions come out for {len(ids)} tokens that go in",
                fix="Evaluate the graph that gives logits for every position (prefill), not the one for single steps.",
            )
        if ids.max() >= logits.shape[1]:
            raise InputError(
                f"token {int(ids.max())} does not fit the model",
                cause=f"its vocabulary has {logits.shape[1]} tokens",
                fix="Tokenize the data with the tokenizer of this model.",
            )
        mask = np.asarray(row.get("attention_mask", np.ones(len(ids)))).reshape(-1).astype(bool)
        both = mask[1:] & mask[:-1]
        return surprise(logits[:-1][both], ids[1:][both])


def surprise(logits: NDArray[Any], wanted: NDArray[Any]) -> tuple[float, int, int]:
    wanted = wanted.astype(np.int64)
    logs = log_softmax(logits)[np.arange(len(wanted)), wanted]
    return -float(logs.sum()), len(wanted), int((logits.argmax(axis=-1) == wanted).sum())
