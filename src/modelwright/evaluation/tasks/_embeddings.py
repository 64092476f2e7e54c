"""Vectors: how alike two texts are, and whether neighbours are of the same class."""

from __future__ import annotations

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

PAIR = "_pair"
_POOLED = ("sentence_embedding", "image_embeds", "text_embeds", "pooler_output")
_TOKENS = ("last_hidden_state", "token_embeddings")


def embedding(row: Row, outputs: Outputs, pooling: str) -> NDArray[Any]:
    """A vector per sample: `mean` of the tokens that are no padding, the first token (`cls`), or `output` as it is."""
    tokens = {name: value for name, value in outputs.items() if value.ndim == 2}
    if pooling == "output" or not tokens:
        return np.ravel(pick({name: np.squeeze(value) for name, value in outputs.items()}, _POOLED, 1))
    states = pick(tokens, _TOKENS, 2)
    if pooling == "cls":
        return np.asarray(states[0])
    mask = np.asarray(row.get("attention_mask", np.ones(len(states)))).reshape(-1)[: len(states)]
    return np.asarray((states * mask[:, None]).sum(axis=0) / max(float(mask.sum()), 1.0))


class SentenceSimilarity(EvalTask):
    """Spearman correlation of the cosine of two texts with a human score.

    The second text's inputs are called like the first's with `_pair` behind.
    """

    defaults: ClassVar[Mapping[str, str]] = {"pooling": "mean"}

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        super().__init__(context, settings)
        # The pair that people find most alike, called the least so, takes 6 / n from the correlation.
        self.metric = Metric("cosine_spearman", unit="correlation", form="set", span=6.0, worst=None)
        self._pooling = self.choice("pooling", ("mean", "cls", "output"))

    def views(self, row: Row) -> Sequence[Row]:
        second = {name.removesuffix(PAIR): value for name, value in row.items() if name.endswith(PAIR)}
        if not second:
            raise InputError(
                "the rows hold one text, not two",
                cause=f"no array has a name that ends in {PAIR}",
                fix=f"Add the inputs of the second text as input_ids{PAIR}, attention_mask{PAIR}, …",
            )
        return (row, second)

    def score(self, row: Row, outputs: Sequence[Outputs]) -> tuple[float, float]:
        label = float(np.asarray(field(row, "label", "how alike the two are")).reshape(()))
        first, second = (
            embedding(view, output, self._pooling) for view, output in zip(self.views(row), outputs, strict=True)
        )
        norms = float(np.linalg.norm(first) * np.linalg.norm(second))
        return float(first @ second) / norms if norms else 0.0, label

    def value(self, numbers: NDArray[Any]) -> float:
        return spearman(numbers[:, 0], numbers[:, 1])


class Neighbours(EvalTask):
    """Is the label the one of most of the `k` nearest other samples, by cosine? Each sample is left out in its turn."""

    defaults: ClassVar[Mapping[str, str]] = {"k": "5", "pooling": "mean"}

    def __init__(self, context: Context, settings: Mapping[str, str]) -> None:
        super().__init__(context, settings)
        self._k = int(self.number("k"))
        self._pooling = self.choice("pooling", ("mean", "cls", "output"))
        self.metric = Metric(f"knn{self._k}_accuracy")
        self._classes = 0

    def score(self, row: Row, outputs: Sequence[Outputs]) -> tuple[int, NDArray[Any]]:
        label = int(np.asarray(field(row, "label", "the class of the sample")).reshape(()))
        return label, embedding(row, outputs[0], self._pooling)

    def collect(self, numbers: Sequence[Any]) -> list[NDArray[Any] | None]:
        kept = [index for index, item in enumerate(numbers) if item is not None]
        found: list[NDArray[Any] | None] = [None] * len(numbers)
        labels = np.array([numbers[index][0] for index in kept])
        self._classes = len(set(labels.tolist()))
        if len(kept) <= self._k:
            raise InputError(
                f"{len(kept)} samples are too few for {self._k} neighbours",
                cause="every sample is compared with the others",
                fix="Use more samples, or fewer neighbours with `settings` k=1.",
            )
        right = neighbours_agree(np.stack([numbers[index][1] for index in kept]), labels, self._k)
        for index, value in zip(kept, right, strict=True):
            found[index] = np.array([float(value)])
        return found

    def chance(self) -> float | None:
        return 1.0 / self._classes if self._classes > 1 else None


def neighbours_agree(vectors: NDArray[Any], labels: NDArray[Any], k: int) -> NDArray[Any]:
    """For each vector, whether most of its k nearest others (ties: the nearest decides) have its label."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    agree = np.zeros(len(unit), bool)
    for index, vector in enumerate(unit):
        near = unit @ vector
        near[index] = -np.inf
        chosen = labels[np.argsort(-near, kind="stable")[:k]]
        # `unique` sorts; the earliest position among the commonest labels is the nearest one.
        values, first, counts = np.unique(chosen, return_index=True, return_counts=True)
        commonest = counts == counts.max()
        agree[index] = values[commonest][first[commonest].argmin()] == labels[index]
    return agree


def spearman(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Correlation of ranks, ties sharing theirs; 0 where one side never varies."""
    first, second = ranks(one), ranks(other)
    first, second = first - first.mean(), second - second.mean()
    norm = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / norm if norm else 0.0


def ranks(values: NDArray[Any]) -> NDArray[Any]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return np.asarray((ends - (counts - 1) / 2.0)[inverse])
