"""`modelwright.support`: what a model needs to be built, what is claimed of it, and what is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.api._kept import kept, verb
from modelwright.api._opened import opened
from modelwright.api._reviewing import report, review, shown
from modelwright.errors import UsageError
from modelwright.judge import as_allowance
from modelwright.models import SourceChoices
from modelwright.store import Store
from modelwright.vocabulary import Data, OnProgress, as_data, silent

if TYPE_CHECKING:
    import modelwright.support as adding
    from modelwright import evaluation, measure
    from modelwright.evaluation import EvalResult
    from modelwright.measure import CompareResult, PerfResult
    from modelwright.support import GateResult, SupportBatch, SupportProbe, SupportRun, SupportWish
else:
    adding = lazy("modelwright.support")
    evaluation = lazy("modelwright.evaluation")
    measure = lazy("modelwright.measure")

__all__ = ["batch", "gate", "probe", "report", "review", "run", "shown"]


def probe(
    model: str | Path,
    *,
    task: str | None = None,
    revision: str | None = None,
    random_weights: bool = False,
    trust_remote_code: bool = False,
) -> SupportProbe:
    """The least that it takes to build a Hugging Face model, without loading its weights: `none`, `recipe` (a setting),
    `family` (a file for its type) or `shared` (something that other models would share)."""
    return adding.probe(
        str(model),
        task=task,
        revision=revision,
        random_weights=random_weights,
        trust_remote_code=trust_remote_code,
    )


@verb
def run(
    model: str | Path,
    output: str | Path,
    *,
    recipe: str | Path | None = None,
    family: str | Path | None = None,
    targets: Sequence[str] = ("cpu",),
    precisions: Sequence[str] = (),
    ceiling: adding.Level = "L2",
    effort: adding.Effort | None = None,
    outcome: adding.Outcome | None = None,
    data: Data | str | None = None,
    metric: str | None = None,
    max_drop: str | None = None,
    max_p50_ms: float | None = None,
    faster: bool = False,
    seeds: int = 5,
    ladder_only: bool = False,
    task: str | None = None,
    revision: str | None = None,
    random_weights: bool = False,
    trust_remote_code: bool = False,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> SupportRun:
    """Freeze a claim in the folder `output`, ask the gate whether there is anything to contribute, and climb the ladder
    to `ceiling`: L0 structure, L1 runs, L2 parity, L3 task, L4 speed, L5 portable. With `ladder_only` the gate is not
    asked.

    The contribution is a `recipe`, a `family` (a file with a `FAMILY`, or a model type that is known here), both, or
    nothing: then the tool itself is what is claimed. Every attempt is a line of `evidence.jsonl`. A call that was ended
    goes on where it stood when it is made again.
    """
    return kept(_marched(_wish(locals()), Path(output), store, on_progress, gate=not ladder_only))


@verb
def gate(
    model: str | Path,
    output: str | Path,
    *,
    recipe: str | Path | None = None,
    family: str | Path | None = None,
    targets: Sequence[str] = ("cpu",),
    precisions: Sequence[str] = (),
    data: Data | str | None = None,
    seeds: int = 5,
    task: str | None = None,
    revision: str | None = None,
    random_weights: bool = False,
    trust_remote_code: bool = False,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> GateResult:
    """Is there anything to contribute? The tool without the contribution, with and without its task, against with it:
    each with `seeds` seeds, each build in an empty store, compared by effect."""
    found = _marched(_wish({**locals(), "ceiling": "L0"}), Path(output), store, on_progress, ladder=False)
    assert found.gate is not None, "the gate was asked"
    return kept(found.gate)


@verb
def batch(
    models: str | Path,
    output: str | Path,
    *,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> SupportBatch:
    """`run` for every row of a list (TOML), each into a folder of its own; each ends in a state."""

    def one(wish: SupportWish, folder: Path) -> SupportRun:
        return _marched(wish, folder, store, on_progress)

    return kept(adding.run_batch(adding.read_batch(Path(models)), Path(output), one))


def _wish(said: Mapping[str, Any]) -> SupportWish:
    """From the arguments of a verb, by name."""
    if isinstance(said["targets"], str) or isinstance(said["precisions"], str):
        raise UsageError("several are given as a list", cause="a text was given", fix='targets=["cpu"]')
    taken: dict[str, Callable[[Any], Any]] = {
        "model": str, "recipe": Path, "family": str, "data": as_data, "targets": _texts, "precisions": tuple,
    }  # fmt: skip
    names = {item.name for item in fields(adding.SupportWish)} & said.keys()
    read = {name: taken[name](said[name]) if name in taken and said[name] is not None else said[name] for name in names}
    return adding.SupportWish(
        about=SourceChoices(**{item.name: said[item.name] for item in fields(SourceChoices)}), **read
    )


def _texts(said: Sequence[Any]) -> tuple[str, ...]:
    return tuple(map(str, said))


def _marched(
    wish: SupportWish,
    folder: Path,
    store: Store | None,
    on_progress: OnProgress | None,
    *,
    gate: bool = True,
    ladder: bool = True,
) -> SupportRun:
    tell = on_progress or silent
    claim, given = adding.freeze(wish)
    adding.frozen(claim, folder, given)
    with opened(store) as place:
        notebook = adding.Notebook(claim, folder, tell)
        march = adding.March(claim, given, notebook, place, LevelVerbs(place, tell), tell)
        return adding.run_march(march, gate=gate, ladder=ladder)


@dataclass(frozen=True, eq=False)
class LevelVerbs:
    """What the levels ask; every answer is kept."""

    store: Store
    tell: OnProgress

    def evaluate(self, model: Path, reference: str, **said: Any) -> EvalResult:
        data, task = said.pop("data"), said.pop("task")
        options = evaluation.EvalOptions(**{**said, "max_drop": as_allowance(said.get("max_drop"))})
        found = evaluation.evaluate(model, reference, data, task, options, on_progress=self.tell)
        return kept(replace(found, candidate=replace(found.candidate, model=str(model))))

    def perf(self, model: Path, target: str, **said: Any) -> PerfResult:
        inputs = measure.InputChoice(recorded=said.pop("inputs") or None)
        options = measure.PerfOptions(**said, inputs=inputs)
        return kept(measure.perf(model, target, options, on_progress=self.tell))

    def compare(self, base: Path, other: Path, target: str) -> CompareResult:
        options = measure.CompareOptions(target=target, allow_different=True)
        return kept(measure.compare([base, other], options, on_progress=self.tell))
