"""Our own passes by name. Each edits the model in place and says how many things it changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from modelwright.stages.optimize._cleanup import (
    dedupe_initializers,
    lift_constants,
    remove_dropout,
    remove_identity,
    remove_unused,
)
from modelwright.stages.optimize._doubles import narrow_doubles
from modelwright.stages.optimize._narrow import swish_in_one_batch
from modelwright.stages.optimize._shapes import lower_rank_transpose, reduce_fewer_axes, static_split_to_slice
from modelwright.stages.optimize._surgery import clamp_infinities, clamp_mask_constants, drop_isnan_guard
from modelwright.stages.optimize._table import outside_pass
from modelwright.stages.optimize._unfuse import unfuse_conv, unfuse_gemm, unfuse_matmul

if TYPE_CHECKING:
    import onnx_ir as ir

_EDITS: Mapping[str, Callable[[ir.Model], int]] = {
    edit.__name__: edit
    for edit in (
        unfuse_conv,
        unfuse_gemm,
        unfuse_matmul,
        remove_identity,
        remove_dropout,
        lift_constants,
        reduce_fewer_axes,
        swish_in_one_batch,
        lower_rank_transpose,
        static_split_to_slice,
        dedupe_initializers,
        remove_unused,
        clamp_infinities,
        clamp_mask_constants,
        drop_isnan_guard,
        narrow_doubles,
    )
}


def edit_of(name: str) -> Callable[[ir.Model], int]:
    """Ours, or the one another package brings."""
    return _EDITS[name] if name in _EDITS else outside_pass(name).edit
