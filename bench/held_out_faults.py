"""Faults that no rule of `diagnose` was written with: other models, most of them trained, other operators, other ways
to go wrong. They were written before their author had read the rules; `bench/diagnose.py` counts them apart."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import modelwright as mw
from bench import zoo
from bench.planted_faults import F32, Fault, build, normal, save


def _rows(path: Path, name: str, samples: list[Any], edit: Callable[[Any], Any] = lambda row: row) -> str:
    """Samples of a batch of one as a data file, each edited."""
    arrays: dict[str, Any] = {name: np.stack([edit(sample[name][0]) for sample in samples])}
    np.savez(path, **arrays)
    return str(path)


def _int8(folder: Path, model: Path, data: str, **how: Any) -> Path:
    mw.build(str(model), "cpu", precision="w8a8", data=mw.Data(data), output=folder / "b", **how)
    return folder / "b" / "model.onnx"


def _nan_in_constant(folder: Path) -> Fault:
    """The weights of this file are Constant nodes."""
    proto = onnx.load(zoo.trained("ppocr-cls").path)
    sized = [node for node in proto.graph.node if node.op_type == "Constant" and len(node.attribute[0].t.dims) == 4]
    tensor = sized[20].attribute[0].t
    array = numpy_helper.to_array(tensor).copy()
    array.flat[3] = np.nan
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    data = _rows(folder / "d.npz", "x", list(zoo.trained("ppocr-cls").judged[:8]))
    return Fault("NaN in a Constant node", "weight-not-finite", save(proto, folder), {"data": data}, cured=False)


def _bytes_as_pixels(folder: Path) -> Fault:
    trained = zoo.trained("fashion")
    raw = _rows(folder / "raw.npz", "image", list(trained.calibration), lambda row: row * 255)
    data = _rows(folder / "d.npz", "image", list(trained.judged[:64]))
    made = _int8(folder, trained.path, raw)
    asked = {"reference": str(trained.path), "data": data}
    return Fault("calibrated on pixels of 0 to 255", "ranges-too-wide", made, asked)


def _dark(folder: Path) -> Fault:
    trained = zoo.trained("digits")
    dark = _rows(folder / "dark.npz", "image", list(trained.calibration), lambda row: row * np.float32(0.05))
    data = _rows(folder / "d.npz", "image", list(trained.judged[:64]))
    made = _int8(folder, trained.path, dark)
    return Fault("calibrated in the dark", "ranges-too-narrow", made, {"reference": str(trained.path), "data": data})


def _channels_last(folder: Path) -> Fault:
    trained = zoo.trained("wakeword")
    data = _rows(folder / "d.npz", "input_1", list(trained.judged[:8]), lambda row: row.transpose(2, 0, 1))
    return Fault("channels first where last are taken", "wrong-layout", trained.path, {"data": data})


def _wide_integers(folder: Path) -> Fault:
    trained = zoo.trained("magika")
    data = _rows(folder / "d.npz", "bytes", list(trained.judged[:8]), lambda row: row.astype(np.float64))
    return Fault("doubles for bytes", "wrong-type", trained.path, {"data": data})


def _unnamed_batch(folder: Path) -> Fault:
    return Fault("a batch of any size", "dynamic-sizes", zoo.trained("wakeword").path, {"target": "qnn-npu"})


def _fixed(model: Path, batch: int = 1) -> onnx.ModelProto:
    proto = onnx.load(model)
    for value in (*proto.graph.input, *proto.graph.output):
        value.type.tensor_type.shape.dim[0].dim_value = batch
    return proto


def _saved_by_onnxruntime(folder: Path) -> Fault:
    """What `optimized_model_filepath` writes at the extended level."""
    plain = save(_fixed(zoo.trained("fashion").path), folder, "plain.onnx")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(folder / "model.onnx")
    ort.InferenceSession(str(plain), options, providers=["CPUExecutionProvider"])
    return Fault("saved by a CPU session", "fused-operators", folder / "model.onnx", {"target": "qnn-npu"})


def _bias_gelu(folder: Path) -> Fault:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="up"),
        helper.make_node("BiasGelu", ["h", "b"], ["g"], name="gelu", domain="com.microsoft"),
        helper.make_node("MatMul", ["g", "v"], ["y"], name="down"),
    ]
    weights = {"w": normal(32, 64, scale=0.1), "b": normal(64), "v": normal(64, 32, scale=0.1)}
    proto = build(nodes, {"x": [1, 8, 32]}, {"y": [1, 8, 32]}, weights, domains=("com.microsoft",))
    return Fault("BiasGelu for an NPU", "fused-operators", save(proto, folder), {"target": "qnn-npu"}, cured=False)


def _squares(folder: Path) -> Fault:
    """A norm whose squares do not fit into float16: what is divided by infinity is a zero, not an infinity."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="up"),
        helper.make_node("Mul", ["h", "h"], ["sq"], name="squares"),
        helper.make_node("ReduceMean", ["sq"], ["m"], name="mean", axes=[-1]),
        helper.make_node("Sqrt", ["m"], ["root"], name="root"),
        helper.make_node("Div", ["h", "root"], ["n"], name="norm"),
        helper.make_node("MatMul", ["n", "v"], ["y"], name="down"),
    ]
    weights = {"w": normal(32, 32), "v": normal(32, 16, seed=1)}
    plain = save(build(nodes, {"x": [1, 32]}, {"y": [1, 16]}, weights), folder, "float.onnx")
    data = folder / "d.npz"
    np.savez(data, x=normal(16, 32, seed=2, scale=150.0))
    mw.build(str(plain), "cpu", precision="fp16", output=folder / "b")
    asked = {"reference": str(plain), "data": str(data)}
    return Fault("squares too large for float16", "fp16-overflow", folder / "b" / "model.onnx", asked)


def _other_domain_too_new(folder: Path) -> Fault:
    nodes = [helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", name="s", offset=[0.5], scale=[2.0])]
    proto = build(nodes, {"x": [1, 4]}, {"y": [1, 4]})
    proto.opset_import.append(helper.make_opsetid("ai.onnx.ml", 99))
    return Fault("ai.onnx.ml 99", "opset-too-new", save(proto, folder))


def _half_of_the_weights(folder: Path) -> Fault:
    path = folder / "model.onnx"
    proto = onnx.load(zoo.trained("digits").path)
    onnx.save(proto, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    whole = (folder / "weights.bin").read_bytes()
    (folder / "weights.bin").write_bytes(whole[: len(whole) // 2])
    return Fault("half of the weights file", "external-data", path, cured=False)


def _no_mask(folder: Path) -> Fault:
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["e"], name="embed"),
        helper.make_node("Cast", ["attention_mask"], ["m"], name="cast", to=F32),
        helper.make_node("Unsqueeze", ["m", "last"], ["m3"], name="mask"),
        helper.make_node("Mul", ["e", "m3"], ["y"], name="masked"),
    ]
    inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, [1, 8]) for n in ("input_ids", "attention_mask")]
    weights = [numpy_helper.from_array(normal(30, 4), "table"), numpy_helper.from_array(np.array([2]), "last")]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", F32, [1, 8, 4])], weights)
    path = save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder)
    np.savez(folder / "d.npz", input_ids=np.arange(16).reshape(2, 8))
    return Fault("data without a mask", "missing-input", path, {"data": str(folder / "d.npz")}, cured=False)


def _positions(folder: Path) -> Fault:
    """Position embeddings of sixteen places, and twenty-four are asked for."""
    nodes = [
        helper.make_node("Add", ["x", "places"], ["p"], name="places_added"),
        helper.make_node("MatMul", ["p", "w"], ["y"], name="mm"),
    ]
    weights = {"places": normal(1, 16, 8), "w": normal(8, 8)}
    path = save(build(nodes, {"x": [1, "seq", 8]}, {"y": [1, "seq", 8]}, weights), folder)
    return Fault("positions for sixteen", "size-written-into-graph", path, {"dims": {"seq": 24}})


def _context_of_newer_chip(folder: Path) -> Fault:
    trained = zoo.trained("digits")
    data = _rows(folder / "c.npz", "image", list(trained.calibration))
    mw.build(str(trained.path), "qnn-npu:soc=sm8750", precision="w8a8", data=mw.Data(data), output=folder / "b")
    asked = {"target": "qnn-npu:soc=x-elite"}
    return Fault("compiled for 8 Elite", "context-of-another-chip", folder / "b" / "model.onnx", asked, cured=False)


def _library_without_entry(folder: Path) -> Fault:
    """A real shared library, of something else."""
    (folder / "empty.c").write_text("int nothing_of_an_ep(void) { return 0; }\n")
    library = folder / "libep.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(folder / "empty.c")], check=True)
    env = {"MODELWRIGHT_EP_LIBRARIES": f"VitisAIExecutionProvider={library}"}
    asked = {"target": "vitisai-npu", "env": env}
    return Fault("a library without an EP in it", "ep-broken", zoo.trained("digits").path, asked)


def _threads_of_a_server(folder: Path) -> Fault:
    asked = {"symptom": "slow", "threads": 48, "budget_s": 120.0, "batch": 1}
    return Fault("48 threads for a small net", "too-many-threads", zoo.trained("fashion").path, asked)


def _int8_without_gain(folder: Path) -> Fault:
    """Quantized operator by operator with float activations between: conversions everywhere."""
    trained = zoo.trained("wakeword")
    plain = save(_fixed(trained.path), folder, "float.onnx")
    data = _rows(folder / "c.npz", "input_1", list(trained.calibration))
    from_tool = folder / "model.onnx"
    _dynamic_int8(plain, from_tool)
    asked = {"reference": str(plain), "symptom": "slow", "threads": 1, "data": data, "budget_s": 120.0}
    return Fault("dynamic int8 convolutions", "slower-than-float", from_tool, asked, cured=False)


def _dynamic_int8(plain: Path, made: Path) -> None:
    script = "import sys; from onnxruntime.quantization import quantize_dynamic as q; q(sys.argv[1], sys.argv[2])"
    subprocess.run([sys.executable, "-c", script, str(plain), str(made)], check=True, capture_output=True)


def _half_on_cpu(folder: Path) -> Fault:
    trained = zoo.trained("wakeword")
    mw.build(str(trained.path), "cpu", precision="fp16", output=folder / "b")
    asked = {"reference": str(trained.path), "symptom": "slow", "threads": 1, "budget_s": 120.0}
    return Fault("float16 on a CPU", "half-on-cpu", folder / "b" / "model.onnx", asked)


def _hardmax(folder: Path) -> Fault:
    proto = onnx.load(zoo.trained("digits").path)
    proto.graph.node.append(helper.make_node("Hardmax", ["logits"], ["one_hot"], name="decide"))
    proto.graph.output[0].name = "one_hot"
    return Fault("Hardmax for an NPU", "nodes-left", save(proto, folder), {"target": "qnn-npu"}, cured=False)


def _folded_convolution(folder: Path) -> Fault:
    """A picture that never changes goes through convolutions at every start."""
    weights = {"still": normal(1, 32, 160, 160), "k": normal(32, 32, 3, 3, scale=0.05), "w": normal(32, 8)}
    nodes, last = [], "still"
    for place in range(20):
        nodes.append(helper.make_node("Conv", [last, "k"], [f"c{place}"], name=f"c{place}", pads=[1] * 4))
        last = f"c{place}"
    nodes += [
        helper.make_node("GlobalAveragePool", [last], ["pooled"], name="pool"),
        helper.make_node("Flatten", ["pooled"], ["flat"], name="flat"),
        helper.make_node("Add", ["x", "flat"], ["sum"], name="sum"),
        helper.make_node("MatMul", ["sum", "w"], ["y"], name="mm"),
    ]
    proto = build(nodes, {"x": [1, 32]}, {"y": [1, 8]}, weights)
    return Fault(
        "convolutions of a still picture", "cold-start", save(proto, folder), {"symptom": "slow", "threads": 1}
    )


def _level_none(folder: Path) -> Fault:
    asked = {"symptom": "slow", "threads": 1, "level": "disabled", "batch": 1, "budget_s": 120.0}
    return Fault("a trained net, nothing optimized", "optimizations-off", zoo.trained("fashion").path, asked)


def _uneven_channels(folder: Path) -> Fault:
    """One channel two hundred times as large, and the layer behind it makes up for that: float does not notice."""
    proto, trained = onnx.load(zoo.trained("digits").path), zoo.trained("digits")
    _scaled(proto, "0.weight", (slice(0, 1),), 200.0)
    _scaled(proto, "0.bias", (slice(0, 1),), 200.0)
    _scaled(proto, "2.weight", (slice(None), slice(0, 1)), 1 / 200.0)
    plain = save(proto, folder, "float.onnx")
    data = _rows(folder / "d.npz", "image", list(trained.judged[:64]))
    made = _int8(folder, plain, data, recipe={"quantize": {"per_channel": False}})
    return Fault("channels of unlike size", "outlier-channel", made, {"reference": str(plain), "data": data})


def _scaled(proto: onnx.ModelProto, name: str, where: tuple[slice, ...], factor: float) -> None:
    (tensor,) = (tensor for tensor in proto.graph.initializer if tensor.name == name)
    array: NDArray[Any] = numpy_helper.to_array(tensor).copy()
    array[where] *= np.float32(factor)
    tensor.CopyFrom(numpy_helper.from_array(array, name))


def healthy_trained(folder: Path) -> Iterator[Fault]:
    """Trained models as their packages ship them, and int8 of two that is as good."""
    for name in ("fashion", "digits", "magika", "wakeword", "basic-pitch"):
        yield Fault(f"{name} as it is", "", zoo.trained(name).path)
    trained = zoo.trained("ppocr-cls")
    samples = list(trained.judged[:8])
    yield Fault("ppocr-cls with data", "", trained.path, {"data": _rows(folder / "p.npz", "x", samples)})
    for name, key in (("fashion", "image"), ("digits", "image")):
        trained = zoo.trained(name)
        place = folder / name
        place.mkdir()
        made = _int8(place, trained.path, _rows(place / "c.npz", key, list(trained.calibration)))
        data = _rows(place / "d.npz", key, list(trained.judged[:64]))
        yield Fault(f"{name} in int8", "", made, {"reference": str(trained.path), "data": data})
    yield Fault("digits on the NPU", "", zoo.trained("digits").path, {"target": "qnn-npu"})


HELD_OUT: tuple[Callable[[Path], Fault], ...] = (
    _nan_in_constant,
    _dark,
    _channels_last,
    _wide_integers,
    _unnamed_batch,
    _saved_by_onnxruntime,
    _bias_gelu,
    _other_domain_too_new,
    _half_of_the_weights,
    _no_mask,
    _positions,
    _context_of_newer_chip,
    _library_without_entry,
    _hardmax,
    _threads_of_a_server,
    _int8_without_gain,
    _folded_convolution,
    _level_none,
)

NO_FAULTS: tuple[Callable[[Path], Fault], ...] = (_bytes_as_pixels, _squares, _uneven_channels, _half_on_cpu)
"""Meant as faults, and none here: int8 keeps 38 and 56 dB, and float16 is computed as float32 on a CPU, as fast."""

FIRST_LOOK = {
    "BiasGelu for an NPU": "nodes-left",
    "half of the weights file": "graph-flaw",
    "a library without an EP in it": "ep-no-device",
    "48 threads for a small net": None,
    "a trained net, nothing optimized": "crash",
}
"""What was named first before any rule was changed for them, where it was not the right one (the last asked for a level
that does not exist); the rules were then mended."""
