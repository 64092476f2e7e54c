"""An honest contribution: a model whose everyday int8 is useless, and the recipe that mends it."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import modelwright as mw

RECIPE = 'precision = "w8a8"\n\n[quantize]\nnodes_to_exclude = ["second"]\n'
SEEDS = 2


def outlier_model(path, scale=4000.0):
    """One channel is so large that 8 bits leave nothing of the others, which alone make the answer."""
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(64, 256)).astype("f4"), rng.normal(size=(256, 192)).astype("f4")
    first[:, 0] *= scale
    second[0] = 0
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], name="first"),
        helper.make_node("Relu", ["m"], ["a"], name="relu"),
        helper.make_node("MatMul", ["a", "v"], ["y"], name="second"),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 192])],
        [numpy_helper.from_array(first, "w"), numpy_helper.from_array(second, "v")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return path


def rows_file(path, seed=0):
    np.savez(path, x=np.random.default_rng(seed).normal(size=(400, 64)).astype("f4"))
    return path


def contributed(place: Path, recipe=RECIPE, **said):
    """The folder of a run, with its report; model and data beside it."""
    folder = place / "acme_net"
    folder.mkdir(parents=True)
    (folder / "recipe.toml").write_text(recipe)
    model, data = outlier_model(place / "net.onnx"), rows_file(place / "rows.npz")
    asked = {"recipe": folder / "recipe.toml", "data": str(data), "seeds": SEEDS, "ceiling": "L2", **said}
    mw.support.run(model, folder, **asked)
    mw.support.report(folder)
    return folder
