"""A package with cpu, qnn-npu (compiled) and openvino variants, and what its selector takes on which machine.

Ten machines are described to the selector that lies in the package. Real ones are this environment, a runtime with
onnxruntime 1.24.2 and one with onnxruntime-openvino (about 200 MB once). Then one bit of a model is changed.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from types import ModuleType

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

import modelwright as mw
from modelwright.worker import create_runtime, runtime_names

QNN, OPENVINO, CPU = "QNNExecutionProvider", "OpenVINOExecutionProvider", "CPUExecutionProvider"
NPU = "qnn-npu:htp_arch=73,soc=x-elite"
RUNTIMES = {"bench-ort-124": "onnxruntime==1.24.2", "bench-openvino": "onnxruntime-openvino==1.24.1"}
# What is taken in each real place; QNN's plugin is in this one, and offers a simulator, which is no NPU.
REAL = {"here": "cpu", "bench-ort-124": "cpu", "bench-openvino": "openvino-cpu"}
MACHINES = {
    "a plain CPU": ("1.31.1", [(CPU, "cpu", "1.31.1")], "cpu"),
    "a Snapdragon": ("1.31.1", [(QNN, "npu", "0.1.0"), (CPU, "cpu", None)], NPU),
    "a Snapdragon, with OpenVINO beside": ("1.40.0", [(QNN, "npu", "9.9"), (OPENVINO, "cpu", None)], NPU),
    "QNN without its NPU": ("1.31.1", [(QNN, "cpu", "0.1.0"), (CPU, "cpu", None)], "cpu"),
    "a QNN older than the one it ran with": ("1.31.1", [(QNN, "npu", "0.0.9"), (CPU, "cpu", None)], "cpu"),
    "Intel, a flavour that lists no devices": ("1.31.1", [(OPENVINO, None, None), (CPU, "cpu", None)], "openvino-cpu"),
    "Intel, a plugin that has a GPU only": ("1.31.1", [(OPENVINO, "gpu", None), (CPU, "cpu", None)], "cpu"),
    "an onnxruntime that runs only the others": (
        "1.24.2",
        [(QNN, "npu", "9.9"), (OPENVINO, None, None)],
        "openvino-cpu",
    ),
    "an onnxruntime that nothing ran with": ("1.9.0", [(QNN, "npu", "0.1.0"), (CPU, "cpu", None)], None),
    "another vendor's GPU": ("1.32.0+cu12", [("CUDAExecutionProvider", "gpu", None), (CPU, "cpu", None)], "cpu"),
}


def run() -> dict[str, object]:
    for name, package in RUNTIMES.items():
        if name not in runtime_names():
            create_runtime(name, [package])
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        found = _shipped(folder)
        selector = _selector(found.folder)
        described = {
            name: _chosen(selector, found.folder, machine[0], machine[1]) for name, machine in MACHINES.items()
        }
        refused = _tampered(selector, found.folder)
    wrong = [name for name, (*_, expected) in MACHINES.items() if described[name] != expected]
    real = {one.place: {"chosen": one.chosen, "ran": one.ran, "onnxruntime": one.onnxruntime} for one in found.chosen}
    right = all(real[place] == {**real[place], "chosen": chosen, "ran": True} for place, chosen in REAL.items())
    return {
        "variants": [
            [one.target, one.carried, [f"{need.what} {need.version}" for need in one.needs]] for one in found.variants
        ],
        "gates": [[row.gate, row.target, row.word, row.reason] for row in found.gates],
        "described": described,
        "wrong": wrong,
        "real": real,
        "tampered": refused,
        "met": bool(len(MACHINES) >= 8 and not wrong and right and refused),
    }


def _shipped(folder: Path) -> mw.Result:
    model = _net(folder / "model.onnx")
    rows = np.random.default_rng(0).standard_normal((32, 3, 16, 16)).astype(np.float32)
    np.savez(folder / "rows.npz", x=rows)
    return mw.ship(
        model,
        ["cpu", "qnn-npu:soc=x-elite", "openvino-cpu"],
        output=folder / "package",
        data=str(folder / "rows.npz"),
        licence="Apache-2.0",
        runtimes=list(RUNTIMES),
        budget_s=120,
        store=mw.Store(folder / "store"),
    )


def _net(path: Path) -> Path:
    """Three convolutions and a product; random weights."""
    draw, nodes, weights, source = np.random.default_rng(1), [], [], "x"
    for index, (before, after) in enumerate([(3, 16), (16, 32), (32, 32)]):
        kernel = draw.standard_normal((after, before, 3, 3)).astype(np.float32) * (2 / (9 * before)) ** 0.5
        weights.append(numpy_helper.from_array(kernel, f"k{index}"))
        nodes.append(helper.make_node("Conv", [source, f"k{index}"], [f"c{index}"], pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [f"c{index}"], [source := f"r{index}"]))
    weights.append(numpy_helper.from_array(draw.standard_normal((32, 10)).astype(np.float32) / 6, "w"))
    nodes.append(helper.make_node("GlobalAveragePool", [source], ["pooled"]))
    nodes.append(helper.make_node("Flatten", ["pooled"], ["flat"]))
    nodes.append(helper.make_node("MatMul", ["flat", "w"], ["y"]))
    sides = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [1, 3, 16, 16]), ("y", [1, 10]))
    ]
    graph = helper.make_graph(nodes, "net", sides[:1], sides[1:], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), str(path))
    return path


def _selector(package: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("wright_select", package / "wright_select.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _chosen(selector: ModuleType, package: Path, version: str, devices: list[object]) -> str | None:
    machine = selector.UserMachine(version, devices)
    fitting = (one.name for one in selector.read_selection(package) if selector.unfit(one, machine) is None)
    return next(fitting, None)


def _tampered(selector: ModuleType, package: Path) -> str | None:
    """One bit of the model that would be taken."""
    model = package / selector.read_selection(package)[-1].models["model"]
    data = bytearray(model.read_bytes())
    data[len(data) // 2] ^= 1
    model.write_bytes(data)
    try:
        selector.open_session(package)
    except selector.PackageRefused as refused:
        return str(refused)
    return None


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
