"""The stages of a recipe as calls: which task, with which inputs and parameters."""

from __future__ import annotations

from dataclasses import dataclass

from modelwright._json import digest
from modelwright.data import CalibrationSource, RandomCalibration, calibration_identity, calibration_source, data_bytes
from modelwright.models import HfSource
from modelwright.pipeline._recipe import Recipe
from modelwright.plans import ModelInput, StageCall
from modelwright.stages import compile as compiling
from modelwright.stages import export as exporting
from modelwright.stages import optimize as optimizing
from modelwright.stages import quantize as quantizing
from modelwright.stages import validate as validating
from modelwright.targets import library_digest, parse_target, read_cpu
from modelwright.vocabulary import InputSpec

# Seconds without a sign of progress, for a model of no size; its bytes add to them. Simulated inference is slow, so
# what runs a compiled model gets longer than it would need on a device.
_LIMITS = {"export": 1800.0, "optimize": 600.0, "quantize": 900.0, "validate": 900.0, "compile": 3600.0}


@dataclass(frozen=True)
class Subject:
    """One component on its way: its name in labels, what it is fed, and the export everything is compared with.

    `data` are the samples of the user's own function, drawn.
    """

    label: str
    inputs: InputSpec
    exported: ModelInput
    data: CalibrationSource | None = None


def export_call(source: HfSource, recipe: Recipe) -> StageCall:
    params = recipe.export
    assert params is not None, "Hugging Face sources have an export section"
    return StageCall(
        stage=exporting.STAGE,
        version=str(exporting.VERSION),
        libraries=exporting.LIBRARIES,
        inputs={},
        params=params,
        task=lambda _, workdir: exporting.run_export.call(source, workdir, params),
        label=source.name,
        extra={"source": digest(source.identity())},
        timeout_s=_LIMITS["export"],
        size=source.weight_bytes(),
    )


def optimize_call(subject: Subject, model: ModelInput, recipe: Recipe) -> StageCall | None:
    params = recipe.optimize
    if params is None or not (params.passes or params.fix_dims or params.opset):
        return None
    return StageCall(
        stage=optimizing.STAGE,
        version=str(optimizing.VERSION),
        libraries=optimizing.LIBRARIES,
        inputs={"model": model},
        params=params,
        task=lambda models, workdir: optimizing.run_optimize.call(models["model"], workdir, params),
        label=subject.label,
        extra={},
        timeout_s=_LIMITS["optimize"],
        size=model.size,
    )


def quantize_call(subject: Subject, model: ModelInput, recipe: Recipe) -> StageCall | None:
    params = recipe.quantize
    if params is None:
        return None
    needs_data = any(step.kind == "static" for step in quantizing.steps_of(params.precision))
    data = calibration_of(subject, recipe) if needs_data else None
    return StageCall(
        stage=quantizing.STAGE,
        version=str(quantizing.VERSION),
        libraries=quantizing.LIBRARIES,
        inputs={"model": model},
        params=params,
        task=lambda models, workdir: quantizing.run_quantize.call(models["model"], workdir, params, data),
        label=subject.label,
        extra={"calibration": calibration_identity(data, params.samples)} if data is not None else {},
        timeout_s=_LIMITS["quantize"],
        size=_with_data(model.size, data),
    )


def validate_call(subject: Subject, model: ModelInput, recipe: Recipe) -> StageCall:
    params = recipe.validation
    claim = _claim(recipe)
    data = calibration_of(subject, recipe, seed=params.seed)
    # Where integer kernels decide, so does the CPU that has them.
    kernels = {"cpu": digest(read_cpu().features)} if _integer_products(recipe) else {}
    return StageCall(
        stage=validating.STAGE,
        version=str(validating.VERSION),
        libraries=validating.LIBRARIES,
        inputs={"candidate": model, "reference": subject.exported},
        params={**vars(claim), **vars(params)},
        task=lambda models, workdir: validating.run_validate.call(
            models["candidate"], models["reference"], workdir, claim, params, data
        ),
        label=subject.label,
        extra={"data": calibration_identity(data, params.samples), **kernels},
        timeout_s=_LIMITS["validate"],
        size=_with_data(model.size + subject.exported.size, data),
    )


def _claim(recipe: Recipe) -> validating.Claim:
    """Which machines it is for matters only to integer kernels; all targets share the gate of everything else."""
    if recipe.quantize is None:
        return validating.Claim("fp32")
    exact = _integer_products(recipe) and parse_target(recipe.target).exact_products is not False
    return validating.Claim(recipe.quantize.precision, exact)


def _integer_products(recipe: Recipe) -> bool:
    return recipe.quantize is not None and quantizing.integer_products(recipe.quantize)


def compile_call(subject: Subject, model: ModelInput, recipe: Recipe) -> StageCall | None:
    params = recipe.compile
    if params is None:
        return None
    library = library_digest(parse_target(params.target).provider)
    return StageCall(
        stage=compiling.STAGE,
        version=str(compiling.VERSION),
        libraries=compiling.LIBRARIES,
        inputs={"model": model},
        params=params,
        task=lambda models, workdir: compiling.run_compile.call([models["model"]], workdir, params, subject.inputs),
        label=subject.label,
        extra={} if library is None else {"ep_library": library},
        timeout_s=_LIMITS["compile"],
        size=model.size,
    )


def _with_data(size: int, data: CalibrationSource | None) -> int | None:
    more = 0 if data is None else data_bytes(data)
    return None if more is None else size + more


def calibration_of(subject: Subject, recipe: Recipe, seed: int | None = None) -> CalibrationSource:
    """The recipe's data; made-up samples are made from what the export knows about its inputs."""
    if recipe.data.random:
        return RandomCalibration(recipe.data.seed if seed is None else seed, subject.inputs)
    return subject.data or calibration_source(recipe.data)
