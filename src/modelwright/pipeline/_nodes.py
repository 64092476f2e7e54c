"""The stages of a recipe as nodes of a plan: which stage, with which inputs and parameters."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright._json import digest
from modelwright.data import DataSource, specs_as_taken
from modelwright.models import HfSource, file_digest
from modelwright.pipeline._recipe import Recipe
from modelwright.plans import Model, ModelInput, Node, Ref
from modelwright.stages.check import CHECK, CheckOutcome, TargetGate
from modelwright.stages.compile import COMPILE, CompileOutcome, CompileParams
from modelwright.stages.export import EXPORT, GENERAL, ExportOutcome, ExportParams
from modelwright.stages.inputs import INPUTS
from modelwright.stages.optimize import OPTIMIZE, OptimizeOutcome, OptimizeParams, find_pass
from modelwright.stages.place import CLAIM, ClaimParams
from modelwright.stages.quantize import QUANTIZE, QuantizeOutcome, QuantizeParams, integer_products, steps_of
from modelwright.stages.validate import VALIDATE, Gate, judged_as
from modelwright.targets import parse_target, read_cpu
from modelwright.vocabulary import Data, InputSpec

READER = "unknown until the reader runs"


@dataclass(frozen=True)
class BuildSubject:
    """One component on its way: its name in labels, what it is fed, and the export everything is compared with.

    `data` are its samples, where they are not the recipe's as they are; `sized` is false while the user's own function
    is to say dimensions of the model, and `waits` is why the samples are not known yet.
    """

    name: str
    label: str
    inputs: InputSpec
    exported: ModelInput
    data: DataSource | None = None
    sized: bool = True
    waits: str | None = None


@dataclass(frozen=True)
class Route:
    """What one component goes through for one target: nodes that make the model, the gate, the compiler, and the target
    itself, which is asked about what they made."""

    subject: BuildSubject
    makers: tuple[Node[Any, Any], ...]
    gate: Node[Any, Any]
    compiled: Node[Any, Any] | None
    check: Node[Any, Any] | None

    @property
    def model(self) -> ModelInput | Ref:
        """What is judged and delivered, before it is compiled."""
        return Ref(self.makers[-1]) if self.makers else self.subject.exported

    @property
    def nodes(self) -> tuple[Node[Any, Any], ...]:
        last = (node for node in (self.compiled, self.check) if node is not None)
        return (*self.makers, self.gate, *last)

    @property
    def judges(self) -> tuple[Node[Any, Any], ...]:
        """Those that make no model."""
        return (self.gate,) if self.check is None else (self.gate, self.check)


def route(subject: BuildSubject, recipe: Recipe, *, force: bool = False) -> Route:
    """`force` lets passes through that the target's EP does not claim."""
    makers: list[Node[Any, Any]] = []
    model: Model | Ref = subject.exported
    needs: tuple[Node[Any, Any], ...] = ()
    if recipe.inputs is not None:
        makers.append(Node(INPUTS, recipe.inputs, {"model": model}, subject.label))
        model = Ref(makers[0])
        subject = replace(subject, inputs=specs_as_taken(subject.inputs, recipe.inputs))
    reference = model
    if (optimized := optimize_node(subject, model, recipe)) is not None:
        makers.append(optimized)
        model = Ref(optimized)
        needs = () if force else tuple(_claims(subject, model, recipe))
    if (quantized := quantize_node(subject, model, recipe, needs)) is not None:
        makers.append(quantized)
        model = Ref(quantized)
    gate = _gate(subject, (model, reference), recipe, needs)
    compiled = _compiled(subject, model, recipe, gate)
    return Route(subject, tuple(makers), gate, compiled, _check(subject, model, compiled, recipe, gate))


def export_node(source: HfSource, recipe: Recipe) -> Node[ExportParams, ExportOutcome]:
    params = recipe.export
    assert params is not None, "Hugging Face sources have an export section"
    return Node(
        EXPORT,
        params,
        {},
        source.name,
        given={"source": source},
        marks={"source": digest(source.identity()), **_family(params)},
        data_bytes=source.weight_bytes(),
    )


def _family(params: ExportParams) -> dict[str, str]:
    """A file of the user's counts by its content."""
    named = params.family
    return {} if named in (None, GENERAL) else {"family": file_digest(Path(str(named)))}


def optimize_node(
    subject: BuildSubject, model: Model | Ref, recipe: Recipe
) -> Node[OptimizeParams, OptimizeOutcome] | None:
    """None where there is nothing to do."""
    params = recipe.optimize
    if params is None or not (params.passes or params.fix_dims or params.opset or not subject.sized):
        return None
    waits = None if subject.sized else READER
    return Node(OPTIMIZE, params, {"model": model}, subject.label, open=waits)


def _claims(subject: BuildSubject, model: Ref, recipe: Recipe) -> Iterator[Node[Any, Any]]:
    """Operators outside standard ONNX are for the EP to claim; the CPU takes all of them."""
    suspects = _suspects(recipe.optimize.passes if recipe.optimize is not None else ())
    if suspects and parse_target(recipe.target).ep != "cpu":
        yield Node(CLAIM, ClaimParams(recipe.target, suspects), {"model": model}, subject.label)


@functools.lru_cache(256)
def _suspects(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    found = [find_pass(name) for name in names]
    return tuple({operator: item.name for item in found if not item.portable for operator in item.produces}.items())


def quantize_node(
    subject: BuildSubject, model: Model | Ref, recipe: Recipe, needs: tuple[Node[Any, Any], ...] = ()
) -> Node[QuantizeParams, QuantizeOutcome] | None:
    params = recipe.quantize
    if params is None:
        return None
    data = calibration_of(subject, recipe) if calibrated(params) else None
    return Node(
        QUANTIZE,
        params,
        {"model": model},
        subject.label,
        given={"calibration": data},
        marks={} if data is None else _identity(subject, "calibration", data, params.samples),
        data_bytes=0 if data is None else data.size_bytes(),
        needs=needs,
        open=None if data is None else _open(subject, data),
    )


def calibrated(params: QuantizeParams) -> bool:
    """Does it look at samples?"""
    kinds = {step.kind for step in steps_of(params.precision)}
    return "static" in kinds or ("int4" in kinds and params.effort == "best")


def calibration_rows(recipe: Recipe) -> int:
    """How many rows of real data find ranges, at most."""
    params = recipe.quantize
    return params.samples if params is not None and calibrated(params) and not recipe.data.random else 0


def judged_rows(recipe: Recipe) -> tuple[Data, int]:
    """What judges a finished model on its task: all rows of its data; so many of them found its ranges and do not."""
    return replace(recipe.data, samples=None), calibration_rows(recipe)


def _gate(
    subject: BuildSubject,
    models: tuple[Model | Ref, Model | Ref],
    recipe: Recipe,
    needs: tuple[Node[Any, Any], ...],
) -> Node[Any, Any]:
    """The finished model, and what it was made from."""
    model, reference = models
    params = recipe.validation
    precision, exact, kernels = gate_conditions(recipe)
    data, used = calibration_of(subject, recipe, seed=params.seed), calibration_rows(recipe)
    return Node(
        VALIDATE,
        Gate(
            **vars(params),
            precision=precision,
            exact_products=exact,
            task=_task(recipe),
            inherited=recipe.quantize is None,
            calibrated=used,
            compiled=model is reference and recipe.compile is not None and recipe.check is not None,
        ),
        {"candidate": model, "reference": reference},
        subject.label,
        given={"data": data},
        marks={**_identity(subject, "data", data, params.samples + used), **kernels},
        data_bytes=data.size_bytes(),
        needs=needs,
        open=_open(subject, data),
    )


def gate_conditions(recipe: Recipe) -> tuple[str, bool, dict[str, str]]:
    """What a build claims to be, whether its machines never saturate 8-bit products, and marks of what computes it
    here. Which machines it is for matters only to integer kernels; all targets share the gate of everything else."""
    quantize = recipe.quantize
    integers = quantize is not None and integer_products(quantize)
    exact = integers and parse_target(recipe.target).exact_products is not False
    # Where integer kernels decide, so does the CPU that has them.
    kernels = {"cpu": digest(read_cpu().features)} if integers else {}
    return _claimed(recipe), exact, kernels


def _compiled(
    subject: BuildSubject, model: Model | Ref, recipe: Recipe, gate: Node[Any, Any]
) -> Node[CompileParams, CompileOutcome] | None:
    if recipe.compile is None:
        return None
    return Node(COMPILE, recipe.compile, {"model": model}, subject.label, needs=(gate,))


def _check(
    subject: BuildSubject, model: Model | Ref, compiled: Node[Any, Any] | None, recipe: Recipe, gate: Node[Any, Any]
) -> Node[TargetGate, CheckOutcome] | None:
    params = recipe.check
    if params is None:
        return None
    data = calibration_of(subject, recipe, seed=recipe.validation.seed)
    return Node(
        CHECK,
        TargetGate(**vars(params), precision=_claimed(recipe), outputs=recipe.validation.outputs, task=_task(recipe)),
        {"artifact": model if compiled is None else Ref(compiled), "plain": model},
        subject.label,
        given={"data": data},
        marks=_identity(subject, "data", data, params.samples),
        data_bytes=data.size_bytes(),
        needs=(gate,),
        open=_open(subject, data),
    )


def _task(recipe: Recipe) -> str | None:
    return None if recipe.export is None else recipe.export.task


def _claimed(recipe: Recipe) -> str:
    """The precision that was made, or that the model came with."""
    return judged_as(recipe.precision) if recipe.quantize is None else recipe.quantize.precision


def _identity(subject: BuildSubject, name: str, data: DataSource, samples: int) -> dict[str, str]:
    """Nothing for samples that nobody knows yet."""
    return {} if _open(subject, data) else {name: data.identity(samples)}


def _open(subject: BuildSubject, data: DataSource) -> str | None:
    return READER if data.unread else subject.waits


def calibration_of(subject: BuildSubject, recipe: Recipe, seed: int | None = None) -> DataSource:
    """The recipe's data; made-up samples are made from what the export knows about its inputs."""
    if recipe.data.random:
        if seed is None or seed == recipe.data.seed:
            return DataSource(recipe.data, subject.inputs)
        return DataSource(replace(recipe.data, seed=seed), subject.inputs)
    return subject.data or DataSource(recipe.data)
