"""What the target decides about quantization: the bits that 8-bit weights may use, and which tensors carry pairs."""

from __future__ import annotations

from dataclasses import replace

from modelwright.stages.quantize import Pairs, QuantizeParams, integer_products, steps_of
from modelwright.targets import Target, read_cpu

WIDE = 16


def settled_weights(params: QuantizeParams, target: Target, asked: Target) -> tuple[QuantizeParams, str | None]:
    """What nobody said (`reduce_range`, `pairs`, `scope`, `float_where_faster`, `wide_where_noisy`) as values, and why
    the bits.

    `asked` is the target before this host was put in for `isa=host`.
    """
    matters = integer_products(params)
    policy = matters and target.exact_products is False
    said = policy if params.reduce_range is None else params.reduce_range
    why = _reason(target, asked) if said == policy else "it was asked for"
    cpu = matters and target.ep == "cpu"
    pairs: Pairs = "needed" if cpu else "all"
    faster = cpu if params.float_where_faster is None else params.float_where_faster
    scope = params.scope or _scope(params, target)
    wide = scope is not None if params.wide_where_noisy is None else params.wide_where_noisy
    params = replace(params, reduce_range=said, pairs=params.pairs or pairs, float_where_faster=faster, scope=scope)
    params = replace(params, wide_where_noisy=wide)
    return params, why if matters else None


def _scope(params: QuantizeParams, target: Target) -> str | None:
    """With 16 bits every operator carries pairs, whoever takes it, so that targets share one quantized model."""
    step = steps_of(params.precision)[0]
    if target.device != "npu" or step.kind != "static" or step.activation_bits >= WIDE or params.op_types:
        return None
    return target.ep if target.adapter.operators(step.activation_bits) is not None else None


def _reason(target: Target, asked: Target) -> str | None:
    if target.exact_products is None:
        return None
    if target.isa is None:
        reason = f"{target} builds may run on CPUs whose 8-bit products saturate; {target}:isa=vnni keeps 8 bits"
    elif target.exact_products:
        reason = f"CPUs with {target.isa} add 8-bit products up exactly"
    else:
        reason = f"CPUs with {target.isa} and no more add 8-bit products in 16 bits, which saturate"
    return reason if target == asked else f"{_host()}: {reason}"


def _host() -> str:
    cpu = read_cpu()
    flags = ", ".join(cpu.features or ()) or cpu.features_reason or "no flags"
    return f"this host ({cpu.model or 'unknown CPU'}; {flags})"
