"""Several graphs as the one model they make: what the float graphs write feeds the second one, and judges a build."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from modelwright._dataclass import dataclass
from modelwright._json import digest
from modelwright.data import DataSource, Drawn, DrawnRow
from modelwright.models import HfSource, OnnxSource
from modelwright.pipeline._nodes import BuildSubject, Route, calibrated, gate_conditions
from modelwright.pipeline._recipe import Recipe
from modelwright.plans import Node, StageResult
from modelwright.stages.decode import (
    AGREE,
    DECODE,
    AgreeOutcome,
    AgreeParams,
    DecodeOutcome,
    DecodeParams,
    arranged,
    read_generation,
    writing_of,
)
from modelwright.stages.export import Link
from modelwright.store import Artifact
from modelwright.vocabulary import Data

UNWRITTEN = "unknown until the float model has written"
_FEWEST_TEXTS, _MOST_TEXTS = 4, 32


@dataclass(frozen=True)
class Decoding:
    """The node in which the float graphs write about the samples, and what came of it."""

    node: Node[DecodeParams, DecodeOutcome]
    data: DataSource
    done: StageResult[DecodeOutcome] | None = None

    def fed(self, subjects: Sequence[BuildSubject]) -> tuple[BuildSubject, ...]:
        """Every graph with its samples: those of the data, or what it was fed while the float model wrote."""
        if self.done is None:
            return tuple(replace(one, data=self.data, waits=self._waits(one.name)) for one in subjects)
        outcome, names = self.done.outcome, self.node.params.arrangement
        rows = {names.first: outcome.first, names.second: outcome.second}
        return tuple(replace(one, data=self._samples(rows[one.name])) for one in subjects)

    def agreement(self, recipe: Recipe, routes: Sequence[Route]) -> Node[AgreeParams, AgreeOutcome]:
        """Of one target: the finished graphs against the float texts."""
        names, models = self.node.params.arrangement, {one.subject.name: one.model for one in routes}
        precision, exact, kernels = gate_conditions(recipe)
        texts = () if self.done is None else self.done.outcome.texts
        samples = {} if self.data.unread else {"data": self.data.identity(len(texts))}
        return Node(
            AGREE,
            AgreeParams(self.node.params, precision, exact, recipe.validation.min_agreement),
            {"first": models[names.first], "second": models[names.second]},
            self.node.label,
            given={"data": self.data, "texts": texts},
            marks={**samples, "texts": digest(texts), **kernels},
            data_bytes=self.data.size_bytes(),
            open=UNWRITTEN if self.done is None else None,
        )

    def _waits(self, name: str) -> str | None:
        """An encoder takes the data as it is."""
        names = self.node.params.arrangement
        return None if names.kind == "encoder-decoder" and name == names.first else UNWRITTEN

    def _samples(self, rows: Sequence[DrawnRow]) -> DataSource:
        if not rows:
            return self.data
        assert self.done is not None
        drawn = _stored(f"{self.done.outcome.kind}, decoded", rows, self.done.artifact)
        return DataSource(Data(self.data.data.source), drawn=drawn)


def decoding(
    source: OnnxSource | HfSource,
    recipe: Recipe,
    data: DataSource,
    subjects: Sequence[BuildSubject],
    links: tuple[Link, ...],
) -> Decoding | None:
    """None where nothing is written: one graph, towers, or made-up inputs, about which no text says anything."""
    arrangement = arranged([subject.name for subject in subjects], links)
    if arrangement is None or not arrangement.writes or data.random or not isinstance(source, HfSource):
        return None
    samples = recipe.quantize.samples if recipe.quantize and calibrated(recipe.quantize) else recipe.validation.samples
    texts = min(max(-(-samples // DecodeParams.steps), _FEWEST_TEXTS), _MOST_TEXTS)
    params = DecodeParams(
        arrangement, links, writing_of(read_generation(source.folder)), texts=texts, prompts=max(samples, texts)
    )
    models = {subject.name: subject.exported for subject in subjects}
    node = Node(
        DECODE,
        params,
        {"first": models[arrangement.first], "second": models[arrangement.second]},
        source.name,
        given={"data": data},
        marks={} if data.unread else {"data": data.identity(params.prompts)},
        data_bytes=data.size_bytes(),
        open=UNWRITTEN if data.unread else None,
    )
    return Decoding(node, data)


def _stored(kind: str, rows: Sequence[DrawnRow], artifact: Artifact) -> Drawn:
    """Rows whose files are where the store keeps them."""

    def placed(row: DrawnRow) -> DrawnRow:
        return replace(row, arrays=tuple((n, t, str(artifact.path_of(file))) for n, t, file in row.arrays))

    return Drawn("", kind, tuple(map(placed, rows)))
