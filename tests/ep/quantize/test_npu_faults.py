"""Three things of which QNN's HTP compiler makes something else in 16 bits: builds keep clear of them.

Each model here was written after a family that failed on the simulator (Swin, MobileViT), cut down to the fault.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import modelwright as mw
from ep.quantize.faults import faint, narrow, pooled
from modelwright.store import Store

pytest.importorskip("onnxruntime_qnn")


@pytest.mark.parametrize("made", [pooled, faint, narrow])
def test_what_the_compiler_gets_wrong_is_built_so_that_it_does_not(tmp_path, made):
    source = made()
    onnx.save(source, tmp_path / "model.onnx")
    sizes = [dim.dim_value for dim in source.graph.input[0].type.tensor_type.shape.dim]
    rows = np.random.default_rng(0).normal(size=(16, *sizes[1:])).astype(np.float32)
    np.savez(tmp_path / "rows.npz", x=rows)
    with Store(tmp_path / "store") as store:
        built = mw.build(
            tmp_path / "model.onnx", "qnn-npu", precision="w8a16", data=str(tmp_path / "rows.npz"), store=store
        )
    checked = built[0].components[0].check
    assert checked.passed
    assert checked.sqnr_db > 30
