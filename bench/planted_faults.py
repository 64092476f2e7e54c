"""Models with one fault each, and models without any: what `bench/diagnose.py` asks about, made on the spot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.external_data_helper
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

import modelwright as mw

F32, F16 = TensorProto.FLOAT, TensorProto.FLOAT16
Weights = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Fault:
    """`rule` is what must be named first; `cured` whether a cure can be tried here and has to hold."""

    name: str
    rule: str
    model: Path
    asked: dict[str, Any] = field(default_factory=dict)
    cured: bool = True


def build(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, list[Any]],
    outputs: dict[str, list[Any]],
    weights: Weights | None = None,
    *,
    opset: int = 17,
    ir: int = 9,
    kind: int = F32,
    domains: tuple[str, ...] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(domain, 1) for domain in domains)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir)


def normal(*shape: int, seed: int = 0, scale: float = 1.0) -> NDArray[Any]:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def conv_net(batch: Any = 1, size: Any = 16, channels: int = 8, seed: int = 0, **more: Any) -> onnx.ModelProto:
    """Two convolutions, a pool and a classifier."""
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], name="conv1", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], name="conv2", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c2"], ["r2"], name="relu2"),
        helper.make_node("GlobalAveragePool", ["r2"], ["p"], name="pool"),
        helper.make_node("Flatten", ["p"], ["f"], name="flat"),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"], name="head"),
    ]
    weights = {
        "w1": normal(channels, 3, 3, 3, seed=seed, scale=0.3),
        "b1": normal(channels, seed=seed + 1, scale=0.1),
        "w2": normal(channels, channels, 3, 3, seed=seed + 2, scale=0.2),
        "b2": normal(channels, seed=seed + 3, scale=0.1),
        "w3": normal(channels, 10, seed=seed + 4, scale=0.5),
        "b3": normal(10, seed=seed + 5, scale=0.1),
    }
    return build(nodes, {"x": [batch, 3, size, size]}, {"y": [batch, 10]}, weights, **more)


def dense(width: int = 64, depth: int = 3, batch: Any = 1, act: str = "Relu", seed: int = 0) -> onnx.ModelProto:
    nodes, weights, last = [], {}, "x"
    for place in range(depth):
        weights[f"w{place}"] = normal(width, width, seed=seed + place, scale=width**-0.5)
        nodes += [
            helper.make_node("MatMul", [last, f"w{place}"], [f"m{place}"], name=f"mm{place}"),
            helper.make_node(act, [f"m{place}"], [f"a{place}"], name=f"act{place}"),
        ]
        last = f"a{place}"
    nodes.append(helper.make_node("Identity", [last], ["y"], name="out"))
    return build(nodes, {"x": [batch, width]}, {"y": [batch, width]}, weights)


def save(proto: onnx.ModelProto, folder: Path, name: str = "model.onnx") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(proto.SerializeToString())
    return path


def changed(proto: onnx.ModelProto, name: str, edit: Callable[[NDArray[Any]], NDArray[Any]]) -> onnx.ModelProto:
    """With one weight edited."""
    for tensor in proto.graph.initializer:
        if tensor.name == name:
            array = edit(numpy_helper.to_array(tensor).copy())
            tensor.CopyFrom(numpy_helper.from_array(array.astype(np.float32), name))
    return proto


def samples(path: Path, count: int = 16, shape: tuple[int, ...] = (3, 16, 16), scale: float = 1.0, **more: Any) -> Path:
    rng = np.random.default_rng(7)
    np.savez(
        path, **{more.get("key", "x"): (rng.standard_normal((count, *shape)) * scale).astype(more.get("dtype", "f4"))}
    )
    return path


def _opset_too_new(folder: Path) -> Fault:
    proto = conv_net()
    proto.opset_import[0].version = 99
    return Fault("opset 99", "opset-too-new", save(proto, folder))


def _ir_too_new(folder: Path) -> Fault:
    return Fault("IR version 99", "ir-version", save(conv_net(ir=99), folder))


def _missing_input(folder: Path) -> Fault:
    data = samples(folder / "d.npz", key="pixels")
    return Fault("an input under another name", "missing-input", save(conv_net(), folder), {"data": str(data)})


def _wrong_layout(folder: Path) -> Fault:
    data = samples(folder / "d.npz", shape=(16, 16, 3))
    return Fault("channels last", "wrong-layout", save(conv_net(), folder), {"data": str(data)})


def _wrong_size(folder: Path) -> Fault:
    data = samples(folder / "d.npz", shape=(3, 20, 20))
    return Fault("another size", "wrong-size", save(conv_net(), folder), {"data": str(data)}, cured=False)


def _wrong_type(folder: Path) -> Fault:
    nodes = [helper.make_node("Gather", ["table", "ids"], ["y"], name="embed")]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, [1, 8])],
        [helper.make_tensor_value_info("y", F32, [1, 8, 4])],
        [numpy_helper.from_array(normal(30, 4), "table")],
    )
    path = save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), folder)
    np.savez(folder / "d.npz", ids=np.arange(16, dtype=np.float32).reshape(2, 8))
    return Fault("floats for token ids", "wrong-type", path, {"data": str(folder / "d.npz")})


def _external_data(folder: Path) -> Fault:
    path = save(conv_net(), folder)
    onnx.save(onnx.load(path), path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (folder / "w.bin").unlink()
    return Fault("weights file gone", "external-data", path, cured=False)


def _custom_operator(folder: Path) -> Fault:
    nodes = [helper.make_node("Frobnicate", ["x"], ["y"], name="frob", domain="acme.ops")]
    proto = build(nodes, {"x": [1, 4]}, {"y": [1, 4]}, domains=("acme.ops",))
    return Fault("custom operator", "custom-operator", save(proto, folder), cured=False)


def _damaged(folder: Path) -> Fault:
    path = save(conv_net(), folder)
    path.write_bytes(path.read_bytes()[:1500])
    return Fault("half a file", "file-damaged", path, cured=False)


def _dangling(folder: Path) -> Fault:
    proto = conv_net()
    proto.graph.node[2].input[0] = "nowhere"
    return Fault("a value nobody makes", "graph-flaw", save(proto, folder), cured=False)


def _kernel_missing(folder: Path) -> Fault:
    nodes = [
        helper.make_node("Cast", ["x"], ["h"], name="half", to=TensorProto.BFLOAT16),
        helper.make_node("Erf", ["h"], ["e"], name="erf"),
        helper.make_node("Cast", ["e"], ["y"], name="back", to=F32),
    ]
    return Fault(
        "no kernel for bfloat16 Erf",
        "kernel-missing",
        save(build(nodes, {"x": [1, 8]}, {"y": [1, 8]}), folder),
        cured=False,
    )


def _ep_missing(folder: Path) -> Fault:
    return Fault("EP not installed", "ep-missing", save(conv_net(), folder), {"target": "dml-gpu"})


def _no_device(folder: Path) -> Fault:
    return Fault("EP without a device", "ep-no-device", save(conv_net(), folder), {"target": "openvino-gpu"})


def _size_in_graph(folder: Path) -> Fault:
    nodes = [
        helper.make_node("Reshape", ["x", "shape"], ["r"], name="flat"),
        helper.make_node("MatMul", ["r", "w"], ["y"], name="mm"),
    ]
    weights = {"shape": np.array([1, 12], np.int64), "w": normal(12, 5)}
    path = save(build(nodes, {"x": ["batch", 3, 4]}, {"y": ["batch", 5]}, weights), folder)
    return Fault("batch of 1 written into a Reshape", "size-written-into-graph", path, {"dims": {"batch": 4}})


def _chip_without_fp16(folder: Path) -> Fault:
    proto = dense(act="Gelu")
    proto.opset_import[0].version = 20
    asked = {"target": "qnn-npu:soc=sm8350"}
    return Fault("float on a chip without fp16", "chip-without-fp16", save(proto, folder), asked)


def _fused(folder: Path) -> Fault:
    plain = str(save(conv_net(), folder, "plain.onnx"))
    mw.build(plain, "cpu", passes=["conv_activation_fusion"], output=folder / "b")
    return Fault(
        "convolutions fused for the CPU", "fused-operators", folder / "b" / "model.onnx", {"target": "qnn-npu"}
    )


def _dynamic(folder: Path) -> Fault:
    return Fault("dynamic sizes", "dynamic-sizes", save(conv_net("batch", "side"), folder), {"target": "qnn-npu"})


def _unsupported(folder: Path) -> Fault:
    proto = dense(width=32)
    proto.graph.node[-1].CopyFrom(helper.make_node("Det", ["sq"], ["y"], name="det"))
    proto.graph.node.insert(
        len(proto.graph.node) - 1, helper.make_node("Reshape", ["a2", "four"], ["sq"], name="square")
    )
    proto.graph.initializer.append(numpy_helper.from_array(np.array([2, 4, 4], np.int64), "four"))
    del proto.graph.output[0].type.tensor_type.shape.dim[:]
    proto.graph.output[0].type.tensor_type.shape.dim.add().dim_value = 2
    return Fault("an operator QNN does not have", "nodes-left", save(proto, folder), {"target": "qnn-npu"}, cured=False)


def _nan_weight(folder: Path) -> Fault:
    def edit(w: NDArray[Any]) -> NDArray[Any]:
        w.flat[5] = np.nan
        return w

    return Fault("NaN in a weight", "weight-not-finite", save(changed(conv_net(), "w2", edit), folder), cured=False)


def _inf_weight(folder: Path) -> Fault:
    def edit(w: NDArray[Any]) -> NDArray[Any]:
        w.flat[0] = np.inf
        return w

    return Fault("infinity in a bias", "weight-not-finite", save(changed(conv_net(), "b3", edit), folder), cured=False)


def quantized(folder: Path, proto: onnx.ModelProto, data: Path, **how: Any) -> tuple[Path, Path]:
    """The float model and an int8 one made with these settings."""
    plain = save(proto, folder, "float.onnx")
    mw.build(str(plain), "cpu", precision="w8a8", data=mw.Data(str(data)), output=folder / "b", **how)
    return plain, folder / "b" / "model.onnx"


def _narrow(folder: Path) -> Fault:
    """Calibrated on a tenth of what comes."""
    plain, made = quantized(folder, conv_net(), samples(folder / "small.npz", scale=0.1))
    data = samples(folder / "d.npz")
    return Fault("calibrated on small numbers", "ranges-too-narrow", made, {"reference": str(plain), "data": str(data)})


def _wide(folder: Path) -> Fault:
    plain, made = quantized(folder, conv_net(), samples(folder / "large.npz", scale=60.0))
    data = samples(folder / "d.npz")
    return Fault("calibrated on large numbers", "ranges-too-wide", made, {"reference": str(plain), "data": str(data)})


def _outlier(folder: Path) -> Fault:
    """A channel of weights four hundred times as large as the others, which a bias keeps from ever being seen."""

    def large(w: NDArray[Any]) -> NDArray[Any]:
        w[0] *= 400
        return w

    def dead(b: NDArray[Any]) -> NDArray[Any]:
        b[0] = -2e4
        return b

    data = samples(folder / "d.npz")
    proto = changed(changed(conv_net(), "w2", large), "b2", dead)
    plain, made = quantized(folder, proto, data, recipe={"quantize": {"per_channel": False}})
    return Fault("one large channel, one scale", "outlier-channel", made, {"reference": str(plain), "data": str(data)})


def _half_overflow(folder: Path) -> Fault:
    proto = dense(width=64)
    big = changed(changed(proto, "w0", lambda w: w * 300), "w1", lambda w: w * 300)
    plain = save(big, folder, "float.onnx")
    mw.build(str(plain), "cpu", precision="fp16", output=folder / "b")
    data = samples(folder / "d.npz", shape=(64,), scale=30.0)
    asked = {"reference": str(plain), "data": str(data)}
    return Fault("numbers too large for float16", "fp16-overflow", folder / "b" / "model.onnx", asked)


def _context_of_another_chip(folder: Path) -> Fault:
    plain, data = save(conv_net(), folder, "float.onnx"), samples(folder / "d.npz")
    mw.build(str(plain), "qnn-npu:soc=sm8650", precision="w8a8", data=mw.Data(str(data)), output=folder / "b")
    made = folder / "b" / "model.onnx"
    return Fault(
        "compiled for 8 Gen 3", "context-of-another-chip", made, {"target": "qnn-npu:soc=x-elite"}, cured=False
    )


def _context_on_cpu(folder: Path) -> Fault:
    plain, data = save(conv_net(), folder, "float.onnx"), samples(folder / "d.npz")
    mw.build(str(plain), "qnn-npu:soc=sm8650", precision="w8a8", data=mw.Data(str(data)), output=folder / "b")
    return Fault("compiled for QNN, run on the CPU", "context-of-another-ep", folder / "b" / "model.onnx", cured=False)


def _ep_of_another_version(folder: Path) -> Fault:
    """A library that is none of the EP: what an update that broke looks like."""
    library = folder / "libacme.so"
    library.write_text("an old library")
    env = {"MODELWRIGHT_EP_LIBRARIES": f"VitisAIExecutionProvider={library}"}
    asked = {"target": "vitisai-npu", "env": env}
    return Fault("an EP library that does not load", "ep-broken", save(conv_net(), folder), asked)


def _threads(folder: Path) -> Fault:
    path = save(dense(width=256, depth=8), folder)
    return Fault("64 threads", "too-many-threads", path, {"symptom": "slow", "threads": 64, "budget_s": 120.0})


def _level(folder: Path) -> Fault:
    nodes, weights, last = [], {}, "x"
    for place in range(40):
        weights[f"s{place}"] = normal(64, 1, 1, seed=place) + 2
        weights[f"c{place}"] = normal(64, 64, 1, 1, seed=place, scale=0.1)
        nodes += [
            helper.make_node("Conv", [last, f"c{place}"], [f"v{place}"], name=f"conv{place}"),
            helper.make_node("Mul", [f"v{place}", f"s{place}"], [f"t{place}"], name=f"mul{place}"),
            helper.make_node("Relu", [f"t{place}"], [f"r{place}"], name=f"relu{place}"),
        ]
        last = f"r{place}"
    nodes.append(helper.make_node("Identity", [last], ["y"], name="out"))
    proto = build(nodes, {"x": [1, 64, 24, 24]}, {"y": [1, 64, 24, 24]}, weights)
    asked = {"symptom": "slow", "level": "disabled", "threads": 1, "budget_s": 120.0}
    return Fault("graph optimizations off", "optimizations-off", save(proto, folder), asked)


def _denormal(folder: Path) -> Fault:
    proto = dense(width=512, depth=4, act="Identity")
    for place in range(4):
        proto = changed(proto, f"w{place}", lambda w: w * np.float32(1e-38))
    asked = {"symptom": "slow", "threads": 1, "budget_s": 120.0}
    return Fault("denormal weights", "denormal-weights", save(proto, folder), asked)


def _cold_start(folder: Path) -> Fault:
    """Constants multiplied with each other: work that every start does again."""
    width, weights = 900, {"w0": normal(900, 900, scale=0.03)}
    nodes = [helper.make_node("MatMul", ["w0", "w0"], ["k0"], name="k0")]
    nodes += [helper.make_node("MatMul", [f"k{i}", "w0"], [f"k{i + 1}"], name=f"k{i + 1}") for i in range(24)]
    nodes.append(helper.make_node("MatMul", ["x", "k24"], ["y"], name="mm"))
    proto = build(nodes, {"x": [1, width]}, {"y": [1, width]}, weights)
    return Fault("constant work at every start", "cold-start", save(proto, folder), {"symptom": "slow", "threads": 1})


def _packed(folder: Path) -> Fault:
    proto = dense(width=2048, depth=6, batch=8)
    return Fault("a second copy of the weights", "packed-weights", save(proto, folder), {"symptom": "memory"})


def _arena(folder: Path) -> Fault:
    """Large pictures through small filters: nearly all of its memory is what the arena asks for ahead."""
    weights = {"w": normal(24, 24, 3, 3, scale=0.05), "first": normal(24, 3, 3, 3)}
    nodes = [helper.make_node("Conv", ["x", "first"], ["c0"], name="c0", pads=[1] * 4)]
    nodes += [helper.make_node("Conv", [f"c{i}", "w"], [f"c{i + 1}"], name=f"c{i + 1}", pads=[1] * 4) for i in range(5)]
    proto = build(nodes, {"x": [1, 3, 704, 704]}, {"c5": [1, 24, 704, 704]}, weights)
    return Fault("an arena for large pictures", "memory-arena", save(proto, folder), {"symptom": "memory"})


def healthy(folder: Path) -> Iterator[Fault]:
    """Twenty-five models with nothing wrong; the rule is what must not be said: anything."""
    for seed in range(6):
        yield Fault(f"convolutions {seed}", "", save(conv_net(seed=10 * seed), folder / f"c{seed}"))
    for seed, act in enumerate(("Relu", "Tanh", "Sigmoid", "Elu", "Softplus", "LeakyRelu")):
        yield Fault(f"dense {act}", "", save(dense(act=act, seed=seed), folder / f"d{seed}"))
    for seed in range(3):
        path = save(conv_net("batch", "side", seed=seed), folder / f"v{seed}")
        yield Fault(f"dynamic on the CPU {seed}", "", path, {"dims": {"batch": 1 + seed, "side": 16}})
    for seed in range(3):
        path = save(conv_net(seed=seed), folder / f"q{seed}")
        yield Fault(f"on the NPU {seed}", "", path, {"target": "qnn-npu"})
    for seed in range(4):
        place = folder / f"i{seed}"
        place.mkdir(parents=True)
        data = samples(place / "d.npz")
        plain, made = quantized(place, conv_net(seed=7 * seed), data)
        yield Fault(f"int8 {seed}", "", made, {"reference": str(plain), "data": str(data)})
    for seed in range(3):
        place = folder / f"s{seed}"
        path = save(conv_net(seed=seed), place)
        yield Fault(f"real samples {seed}", "", path, {"data": str(samples(place / "d.npz")), "symptom": "fails"})


FAULTS: tuple[Callable[[Path], Fault], ...] = (
    _opset_too_new,
    _ir_too_new,
    _missing_input,
    _wrong_layout,
    _wrong_size,
    _wrong_type,
    _external_data,
    _custom_operator,
    _damaged,
    _dangling,
    _kernel_missing,
    _ep_missing,
    _no_device,
    _size_in_graph,
    _chip_without_fp16,
    _fused,
    _dynamic,
    _unsupported,
    _nan_weight,
    _inf_weight,
    _narrow,
    _wide,
    _outlier,
    _half_overflow,
    _context_of_another_chip,
    _context_on_cpu,
    _ep_of_another_version,
    _threads,
    _level,
    _denormal,
    _cold_start,
    _packed,
    _arena,
)
