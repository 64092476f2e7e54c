"""What each level needs to know about one artifact, measured: nothing is judged here."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.errors import UsageError, WrightError
from modelwright.models import HfSource, OnnxSource, check_build, fetch, read_build
from modelwright.stages.decode import Arrangement, Parts, Writing, arranged, read_generation, writing_of
from modelwright.stages.export import UNKNOWN_REASON, Link, StockAsked, StockPart, StockSeen, run_stock
from modelwright.stages.validate import Gate, is_quantized, judged_as
from modelwright.support._answers import (
    RunsAsked,
    compare_answers,
    prepare_texts,
    run_on_target,
    run_reference,
    write_texts,
)
from modelwright.support._case import AnySource, BuildSurroundings, CaseBuild, CasePart
from modelwright.support._levels import (
    INPUTS,
    SEEDS,
    TEXTS,
    Hindrance,
    OutputSeen,
    OwedSeen,
    ParitySeen,
    RunsSeen,
    StructureSeen,
    parity_cosine,
)
from modelwright.targets import SessionSpec, parse_target
from modelwright.vocabulary import Data, OnProgress
from modelwright.worker import ChildError, run

_LIMIT_S, _SIMULATED_S = 1800.0, 300.0
_TOKENS, _PROMPT = 12, 8


@dataclass(frozen=True)
class Retry:
    """Something to do otherwise where the target refuses."""

    change: str
    spec: SessionSpec


RETRIES = (
    Retry("the EP's options without graph optimization", SessionSpec(graph_optimization="disabled")),
    Retry("one thread", SessionSpec(threads=1)),
)


class Climb:
    """One build, looked at. What several levels need is asked once; files lie in `place`, a folder for now."""

    def __init__(self, built: CaseBuild, place: Path, before: BuildSurroundings, tell: OnProgress) -> None:
        self.built, self.place, self.before, self.tell = built, place, before, tell
        self.claim, self.source = built.asked.claim, _here(built.source)
        self._runs: dict[str, RunsSeen] = {}
        self._otherwise: dict[str, Retry] = {}
        self._stock: StockSeen | WrightError | None = None
        self.arrangement = arranged([part.name for part in built.parts], built.links)

    # L0

    def structure(self, part: CasePart | None) -> StructureSeen:
        """Of one graph; None is the whole: what lies around it, how its graphs fit, what its model takes."""
        if part is not None and len(self.built.parts) > 1:
            return self._graph(part)
        only = self._graph(self.built.parts[0]) if len(self.built.parts) == 1 else StructureSeen()
        stock = self.stock()
        strangers = (*check_build(self.built.folder).extra, *self.before.added())
        only = replace(only, strangers=strangers, links=tuple(_links(self.built)))
        if stock is None:
            return only
        if isinstance(stock, WrightError):
            if "lacks weights" in stock.problem:
                return replace(only, new_weights=(stock.cause,))
            return replace(only, unasked=(f"what its forward takes is not known: {stock.problem}: {stock.cause}",))
        found = only.vocabulary[1], only.labels[1]
        return replace(
            only,
            owed=tuple(self._owed(stock)),
            vocabulary=(stock.vocabulary if found[0] is not None else None, found[0]),
            labels=(stock.labels if found[1] is not None else None, found[1]),
        )

    def _graph(self, part: CasePart) -> StructureSeen:
        seen, recipe = part.seen, self.built.recipe
        asked = recipe.optimize.opset if recipe.optimize is not None and recipe.optimize.opset else None
        if asked is None and recipe.export is not None:
            asked = recipe.export.opset
        compiled = part.artifact != part.plain and recipe.compile is not None
        return StructureSeen(
            checker=seen.checker,
            opset=(asked, seen.opset),
            precision=(None, None) if compiled else (self.built.asked.case.precision, seen.precision),
            vocabulary=(None, seen.vocabulary),
            labels=(None, seen.classes),
            outside=seen.outside,
        )

    def _owed(self, stock: StockSeen) -> Iterator[OwedSeen]:
        listed = {one.argument: one.reason for part in self.built.parts for one in part.left_out}
        for one in stock.owed:
            reason = listed.get(one.argument)
            yield OwedSeen(one.argument, one.changes, reason, general=reason == UNKNOWN_REASON)

    # L1

    def runs(self, part: CasePart) -> RunsSeen:
        if part.name not in self._runs:
            self._runs[part.name] = self._ran(part, self._otherwise.get(part.name))
        return self._runs[part.name]

    def otherwise(self, part: CasePart, retry: Retry) -> None:
        """From now on in another way."""
        self._otherwise[part.name] = retry
        self._runs.pop(part.name, None)

    def _ran(self, part: CasePart, retry: Retry | None) -> RunsSeen:
        case, target = self.built.asked.case, parse_target(self.built.asked.case.target)
        data = self.claim.data
        real = data is not None and not data.asked.random and len(self.built.parts) == 1
        seeds = self.claim.seeds("inputs", SEEDS) if not real else self.claim.seeds("data", SEEDS)
        wanted = RunsSeen(wanted=target.provider.name, seeds=seeds)
        asked = RunsAsked(
            name=part.name,
            artifact=str(part.artifact),
            plain=str(part.plain),
            target=case.target,
            inputs=part.inputs,
            data=self._read(data.asked) if real and data is not None else None,
            seeds=seeds,
            count=INPUTS,
            limit_s=_SIMULATED_S,
            bears=self.source.path if isinstance(self.source, OnnxSource) else None,
            spec=SessionSpec() if retry is None else retry.spec,
        )
        call = run(run_on_target.call(str(self.place), asked), timeout=_LIMIT_S, on_progress=self.tell)
        try:
            return call.unwrap()
        except ChildError as error:
            said = f"{error.problem}: {error.cause}"
            if error.kind in ("timeout", "stalled"):
                return replace(wanted, hindrance=Hindrance("timeout", said))
            return replace(wanted, failure=said, exit=1)
        except UsageError as error:
            return replace(wanted, hindrance=Hindrance("harness", f"{error.problem}: {error.cause}"))
        except WrightError as error:
            by = Hindrance("data", f"{error.problem}: {error.cause}")
            return replace(wanted, hindrance=by)

    def _read(self, data: Data) -> Data:
        """A model of Hugging Face brings what reads data as people have it."""
        if data.processor is not None or not isinstance(self.source, HfSource):
            return data
        return replace(data, processor=self.source.folder)

    # L2

    def stock(self) -> StockSeen | WrightError | None:
        """PyTorch's answers to what every graph was fed; None where the model is no model of PyTorch."""
        if not isinstance(self.source, HfSource) or self.built.model_class is None:
            return None
        if self._stock is None:
            self._stock = self._asked_stock(self.source, self.built.model_class)
        return self._stock

    def _asked_stock(self, source: HfSource, model_class: str) -> StockSeen | WrightError:
        export = self.built.recipe.export
        assert export is not None, "Hugging Face sources are exported"
        for part in self.built.parts:
            self.runs(part)
        parts = tuple(
            StockPart(part.name, part.inputs, part.outputs, self._runs[part.name].inputs) for part in self.built.parts
        )
        writing = self._writing()
        try:
            texts = self._prepare() if self.writes and writing is not None else 0
        except WrightError as error:
            return error
        asked = StockAsked(
            model_class,
            replace(export, family=None),
            _kind(self.arrangement, len(parts)),
            self._ordered(parts),
            () if writing is None else writing.start,
            (),
            () if writing is None else writing.never,
            texts,
            _TOKENS,
        )
        try:
            return run(run_stock.call(source, str(self.place), asked), timeout=_LIMIT_S, on_progress=self.tell).unwrap()
        except WrightError as error:
            return error

    @property
    def writes(self) -> bool:
        return self.arrangement is not None and self.arrangement.writes

    def _ordered(self, parts: tuple[StockPart, ...]) -> tuple[StockPart, ...]:
        if self.arrangement is None:
            return parts
        by_name = {part.name: part for part in parts}
        return by_name[self.arrangement.first], by_name[self.arrangement.second]

    def _writing(self) -> Writing | None:
        if not self.writes or not isinstance(self.source, HfSource):
            return None
        found = writing_of(read_generation(self.source.folder))
        starts = found.start or self.arrangement is None or self.arrangement.kind == "language-model"
        return found if starts else None

    def _prepare(self) -> int:
        assert self.arrangement is not None, "it writes"
        first = next(part for part in self.built.parts if part.name == self.arrangement.first)
        most = _PROMPT if self.arrangement.kind == "language-model" else None
        call = prepare_texts.call(str(self.place), first.inputs, self.claim.seeds("inputs", TEXTS), most)
        return run(call, timeout=_LIMIT_S).unwrap()

    def parity(self, part: CasePart) -> ParitySeen:
        """One graph beside what it was made from."""
        runs = self.runs(part)
        seen = self._parity(runs)
        if runs.failure is not None or runs.hindrance is not None:
            return replace(seen, hindrance=runs.hindrance, failure=runs.failure)
        stock = self.stock()
        if isinstance(stock, WrightError):
            return replace(seen, hindrance=Hindrance("harness", f"{stock.problem}: {stock.cause}"))
        try:
            engine = self._given_answers(part, runs.inputs) if stock is None else _engine(stock)
            outputs = self._compared(part.name, runs.inputs, seen)
        except WrightError as error:
            return replace(seen, failure=f"{error.problem}: {error.cause}")
        uncompared = () if stock is None else tuple(one for one in stock.uncompared if one.startswith(f"{part.name}."))
        foreign = () if stock is None else stock.foreign
        return replace(seen, reference=engine, outputs=outputs, uncompared=uncompared, foreign=foreign)

    def _parity(self, runs: RunsSeen) -> ParitySeen:
        precision = self.precision
        on_chip = parse_target(self.built.asked.case.target).ep != "cpu"
        return ParitySeen(precision=precision, on_chip=on_chip, real=runs.real, samples=runs.inputs, seeds=runs.seeds)

    def _given_answers(self, part: CasePart, count: int) -> str:
        """Those of the .onnx file that was given."""
        assert isinstance(self.source, OnnxSource), "what is no model of PyTorch is a graph"
        call = run_reference.call(str(self.place), part.name, self.source.path, count)
        return run(call, timeout=_LIMIT_S, on_progress=self.tell).unwrap()

    def _compared(self, name: str, count: int, seen: ParitySeen) -> tuple[OutputSeen, ...]:
        claimed = seen.precision if is_quantized(seen.precision) or not seen.on_chip else "fp16"
        gate = Gate(
            precision=claimed,
            min_cosine=parity_cosine(seen.precision, on_chip=seen.on_chip),
            outputs=self.built.recipe.validation.outputs,
            task=self.task,
            elsewhere=seen.on_chip,
        )
        call = compare_answers.call(str(self.place), name, count, gate, not seen.real)
        return run(call, timeout=_LIMIT_S, on_progress=self.tell).unwrap()

    def written(self) -> ParitySeen:
        """All graphs together: every step of PyTorch's own texts, and whether the same is written."""
        stock, writing, runs = self.stock(), self._writing(), self._runs
        seen = replace(
            self._parity(next(iter(runs.values()))), writes=True, seeds=self.claim.seeds("inputs", TEXTS), samples=0
        )
        broken = next((one for one in runs.values() if one.failure or one.hindrance), None)
        if broken is not None:
            return replace(seen, hindrance=broken.hindrance, failure=broken.failure)
        if writing is None:
            said = "with which token a text starts is unknown: no configuration says it"
            return replace(seen, hindrance=Hindrance("harness", said))
        if not isinstance(stock, StockSeen):
            said = "no reference" if stock is None else f"{stock.problem}: {stock.cause}"
            return replace(seen, hindrance=Hindrance("harness", said))
        try:
            call = write_texts.call(str(self.place), self._parts(), self.built.asked.case.target, writing, stock.texts)
            equal = run(call, timeout=_LIMIT_S, on_progress=self.tell).unwrap()
            outputs = self._compared("text", len(stock.texts), seen)
        except WrightError as error:
            return replace(seen, failure=f"{error.problem}: {error.cause}")
        return replace(
            seen,
            reference=_engine(stock),
            foreign=stock.foreign,
            outputs=outputs,
            samples=sum(map(len, stock.texts)),
            steps=min(map(len, stock.texts), default=0),
            texts=(sum(equal), len(equal)),
        )

    def _parts(self) -> Parts:
        assert self.arrangement is not None, "it writes"
        build = read_build(self.built.folder)
        links = tuple(Link(**link) for link in build.links)
        first, second = self.arrangement.first, self.arrangement.second
        return Parts(self.arrangement.kind, str(build.model(first)), str(build.model(second)), links, (first, second))

    # L5

    @property
    def precision(self) -> str:
        """By whose bounds it is judged."""
        recipe = self.built.recipe
        return judged_as(recipe.precision) if recipe.quantize is None else recipe.quantize.precision

    @property
    def task(self) -> str | None:
        return None if self.built.recipe.export is None else self.built.recipe.export.task

    def moved_model(self, folder: Path, part: CasePart) -> Path:
        return folder / next(one.model for one in read_build(folder).parts if one.name == part.name)

    def moved(self, place: Path) -> Path:
        """The folder somewhere else: nothing in it may point back."""
        shutil.copytree(self.built.folder, place, symlinks=False)
        return place


def _kind(found: Arrangement | None, parts: int) -> Any:
    return "one" if found is None or parts == 1 else found.kind


def _engine(stock: StockSeen) -> str:
    return f"{stock.model_class}, {stock.engine}"


def _here(source: AnySource) -> AnySource:
    return fetch(source) if isinstance(source, HfSource) and source.folder is None else source


def _links(built: CaseBuild) -> Iterator[str]:
    """Outputs that feed inputs have their type and their shape."""
    values = {part.name: {name: (dtype, shape) for name, dtype, shape in part.seen.values} for part in built.parts}
    for link in built.links:
        one = values.get(link.component, {}).get(link.output)
        other = values.get(link.to_component, {}).get(link.to_input)
        told = f"{link.component}.{link.output} feeds {link.to_component}.{link.to_input}"
        if one is None or other is None:
            yield f"{told}, and one of both is not there"
        elif one[0] != other[0] or not _fit(one[1], other[1]):
            yield f"{told} of another type or shape"


def _fit(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(not (isinstance(a, int) and isinstance(b, int)) or a == b for a, b in pairs)
