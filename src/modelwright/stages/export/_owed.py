"""What a model's forward takes beside its main inputs.

An export owes every argument that changes the answer: as an input where a value can be made up and a trial run shows
that it matters, else by name, with the reason why it was left out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import generate
from modelwright.errors import InputError, WrightError
from modelwright.stages.export._extras import Extra, extra
from modelwright.stages.export._load import Loaded, first_line, quiet_random
from modelwright.stages.export._part import Run, Tensors, tensors_from
from modelwright.stages.export._values import ExportParams, LeftOut
from modelwright.vocabulary import InputSpec, TensorSpec

if TYPE_CHECKING:
    import torch
else:
    torch = lazy("torch")

# Arguments that only a loss needs, and ones that stand for what another argument gives.
_TRAINING = re.compile(r"labels?$|^(start|end)_positions$|^is_impossible$|^(cls_index|p_mask)$|loss|answer$")
_INSTEAD = re.compile(
    r"inputs_embeds$|hidden_states$|outputs$|^past_key_values$|^(image|visual)_embed(ding)?s$|^cache$|^mems$"
    r"|^encoder_attention_mask$"
)
_SWITCH = re.compile(r"^(use|output|return|is)_")
_TENSOR = re.compile(r"\b\w*Tensor\b")
_NOT_A_TENSOR = re.compile(r"\b(tuple|list|dict|Cache|bool|int|slice)\b", re.IGNORECASE)
# Why an argument without an input is as it is.
_DEFAULTS: Mapping[str, str] = {
    "position_ids": "the model counts positions itself",
    "decoder_position_ids": "the model counts positions itself",
    "decoder_input_ids": "the model makes them from its other inputs",
    "decoder_attention_mask": "everything the decoder reads counts",
    "attention_mask": "the whole input counts, none of it is padding",
    "pixel_mask": "the whole image counts, none of it is padding",
    "pixel_attention_mask": "the whole image counts, none of it is padding",
    "bool_masked_pos": "no part of the image is hidden",
}
UNKNOWN_REASON = "no value for it can be made up here, so it is as when it is not given"


@dataclass(frozen=True)
class Owed:
    """All inputs of a graph, and what its model could take beside them."""

    inputs: InputSpec
    left_out: tuple[LeftOut, ...]


def complete(forward: Callable[..., Any], run: Run, inputs: InputSpec, loaded: Loaded, params: ExportParams) -> Owed:
    """The inputs with every further argument that the model needs or that changes its answer."""
    inputs = (*inputs, *_required(forward, inputs, loaded, params))
    wanted = list(unfed(forward, names(inputs)))
    inputs, answer = _running(run, inputs, wanted, loaded, params)
    refused: dict[str, str] = {}
    for name in wanted:
        more = extra(name, inputs, loaded, params)
        if more is None or more.only_if_needed or name in names(inputs):
            continue
        try:
            if differs(answer, _answer(run, (*inputs, other_value(more)))):
                inputs = (*inputs, more.spec)
                answer = _answer(run, inputs)
        except Exception as error:  # noqa: BLE001 - models raise anything; each becomes a recorded reason
            refused[name] = f"it cannot be given with made-up inputs: {first_line(error)}"
    return Owed(inputs, left_out(forward, names(inputs), refused, tried=_tried(wanted, inputs, loaded, params)))


def unfed(forward: Callable[..., Any], given: Iterable[str]) -> Iterator[str]:
    """Tensors that a forward could take beside `given`, but for those of training and other forms of the same."""
    for name, parameter in inspect.signature(forward).parameters.items():
        if name not in given and _is_tensor(parameter) and not (_TRAINING.search(name) or _INSTEAD.search(name)):
            yield name


def left_out(
    forward: Callable[..., Any],
    given: Iterable[str],
    why: Mapping[str, str] | None = None,
    tried: Iterable[str] = (),
) -> tuple[LeftOut, ...]:
    """Every argument that is neither given nor among those that were `tried` without changing anything."""
    reasons = {**_DEFAULTS, **(why or {})}
    missing = [name for name in unfed(forward, given) if name not in set(tried) - set(why or {})]
    return tuple(LeftOut(name, reasons.get(name, UNKNOWN_REASON)) for name in missing)


def names(inputs: InputSpec) -> frozenset[str]:
    return frozenset(spec.name for spec in inputs)


def explained(model: Any, inputs: Iterable[str], error: Exception) -> InputError:
    return InputError(
        f"{type(model).__name__} does not run on what can be made up for it",
        cause=f"with {', '.join(inputs)}: {first_line(error)}",
        fix="Export it yourself with the inputs it needs, and build from the .onnx file.",
    )


def _required(
    forward: Callable[..., Any], inputs: InputSpec, loaded: Loaded, params: ExportParams
) -> Iterator[TensorSpec]:
    variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    for name, parameter in inspect.signature(forward).parameters.items():
        if parameter.default is not inspect.Parameter.empty or parameter.kind in variable or name in names(inputs):
            continue
        more = extra(name, inputs, loaded, params)
        if more is None:
            raise InputError(
                f"{type(loaded.model).__name__} takes {name}, which cannot be made up here",
                cause="it has no default for it",
                fix="Export it yourself with the inputs it needs, and build from the .onnx file.",
            )
        inputs = (*inputs, more.spec)
        yield more.spec


def _running(
    run: Run, inputs: InputSpec, wanted: list[str], loaded: Loaded, params: ExportParams
) -> tuple[InputSpec, Tensors]:
    """The inputs with as many optional ones, in the model's order, as it takes for a run to end."""
    pending = iter(wanted)
    while True:
        try:
            return inputs, _answer(run, inputs)
        except WrightError:
            raise
        except Exception as error:
            more = next(filter(None, (extra(name, inputs, loaded, params) for name in pending)), None)
            if more is None:
                raise explained(loaded.model, [spec.name for spec in inputs], error) from error
        inputs = (*inputs, more.spec)


def _tried(wanted: list[str], inputs: InputSpec, loaded: Loaded, params: ExportParams) -> list[str]:
    found = {name: extra(name, inputs, loaded, params) for name in wanted}
    return [name for name, more in found.items() if more is not None and not more.only_if_needed]


def _answer(run: Run, inputs: InputSpec) -> Tensors:
    with torch.no_grad(), quiet_random(0):
        return run(tensors_from(generate(inputs)))


def other_value(more: Extra) -> TensorSpec:
    """A value that is as good as the usual one, but another."""
    return replace(more.spec, fill=more.other)


def differs(one: Tensors, other: Tensors) -> bool:
    if one.keys() != other.keys():
        return True
    return any(
        one[name].shape != other[name].shape or not torch.allclose(one[name], other[name], rtol=1e-5, atol=1e-6)
        for name in one
    )


def _is_tensor(parameter: inspect.Parameter) -> bool:
    if parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
        return False
    if parameter.annotation is inspect.Parameter.empty:
        return not isinstance(parameter.default, bool | int | float | str) and not _SWITCH.match(parameter.name)
    text = str(parameter.annotation)
    return bool(_TENSOR.search(text)) and not _NOT_A_TENSOR.search(text)
