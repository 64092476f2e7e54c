"""What a recipe says twice must be the same, and it must be about what it is used for."""

from __future__ import annotations

from typing import Any

from modelwright.errors import InputError, UsageError
from modelwright.models import HfSource, OnnxSource
from modelwright.pipeline._recipe import Layer
from modelwright.stages.quantize import canonical
from modelwright.targets import Target, on_this_host, parse_target


def refuse_conflicts(recipe: Layer, source: OnnxSource | HfSource, target: Target) -> None:
    """Raises for the first contradiction; nothing of a recipe is ever left out in silence."""
    if not recipe:
        return
    if "target" in recipe and on_this_host(parse_target(str(recipe["target"]))) != target:
        raise UsageError(
            "the recipe is for another target",
            cause=f"it says {recipe['target']}, the call says {target}",
            fix=f"leave `target` out, or use `target` {recipe['target']}",
        )
    if recipe.get("export") is not None and isinstance(source, OnnxSource):
        raise UsageError(
            "an .onnx file is already exported",
            cause="the recipe has an export section, which is for Hugging Face models",
            fix="leave export out of the recipe, or give the model that the file was exported from",
        )
    quantize, compiled, check, data = (_section(recipe, name) for name in ("quantize", "compile", "check", "data"))
    if quantize and _word(recipe.get("precision")) == "fp32":
        raise _conflict("precision", "fp32", "[quantize]", ", ".join(quantize))
    pairs = (
        ("precision", _word(recipe.get("precision")), "quantize.precision", _word(quantize.get("precision"))),
        ("target", str(target), "compile.target", _target(compiled.get("target"))),
        ("target", str(target), "check.target", _target(check.get("target"))),
        ("data.samples", data.get("samples"), "quantize.samples", quantize.get("samples")),
    )
    for one, said, other, also in pairs:
        if None not in (said, also) and said != also:
            raise _conflict(one, said, other, also)


def _section(recipe: Layer, name: str) -> dict[str, Any]:
    found = recipe.get(name)
    return found if isinstance(found, dict) else {}


def _word(precision: Any) -> str | None:
    return None if precision in (None, "auto") else canonical(str(precision))


def _target(text: Any) -> str | None:
    return None if text is None else str(on_this_host(parse_target(str(text))))


def _conflict(one: str, said: object, other: str, also: object) -> InputError:
    return InputError(
        "the recipe contradicts itself",
        cause=f"{one} is {said}, but {other} says {also}",
        fix="keep one of them",
    )
