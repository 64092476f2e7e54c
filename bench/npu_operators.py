"""Which operators QNN computes on integers: its own compiler is asked, with ONNX's own node tests.

Every operator of `onnx.backend.test.case.node` with float inputs and outputs gets up to `CASES` of its tests, as they
are and with all but the first input stored, between two quantized multiplications. Each is quantized by our own stage
in w8a8 and w8a16 and composed by QNN's HTP compiler for the chip that `qnn-npu` assumes. The graph that it composes
tells the types: a test counts as quantized where QNN takes all of it and computes nothing with floats, as float where
it takes the float test. `python -m bench.npu_operators` asks and writes `targets/eps/qnn_operators.toml`, which the
quantize stage reads through the adapter.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from bench.node_tests import Case, all_cases
from bench.written import environment
from modelwright.data import DataSource, samples
from modelwright.errors import WrightError
from modelwright.graph import load
from modelwright.stages.quantize import QuantizeParams, steps_of
from modelwright.stages.quantize._model import prepare
from modelwright.stages.quantize._save import save
from modelwright.stages.quantize._static import CalibrationSamples, quantize_static
from modelwright.vocabulary import Data

TABLE = Path(__file__).parents[1] / "src/modelwright/targets/eps/qnn_operators.toml"
WIDTHS = {"a8": "w8a8", "a16": "w8a16"}
CASES = 6
# QNN's types are 0x02nn for floats, 0x03nn and 0x04nn for fixed point.
_FLOAT = 0x02
_NEIGHBOUR = "Mul"
CHILD = """
import glob, json, os, sys, tempfile
import onnxruntime as ort, onnxruntime_qnn as qnn
ort.register_execution_provider_library(qnn.get_ep_name(), qnn.get_library_path())
devices = [d for d in ort.get_ep_devices() if d.ep_name == qnn.get_ep_name()]
for model in sys.argv[1:]:
    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        options.add_provider_for_devices(devices, {
            "backend_path": qnn.get_qnn_htp_path(), "htp_arch": "73", "soc_model": "60",
            "htp_graph_finalization_optimization_mode": "1", "dump_json_qnn_graph": "1", "json_qnn_graph_dir": folder})
        found = {"model": model, "left": [], "types": []}
        try:
            session = ort.InferenceSession(model, options)
            for part in session.get_provider_graph_assignment_info():
                if part.ep_name == "CPUExecutionProvider":
                    found["left"] += [node.op_type for node in part.get_nodes()]
        except Exception as error:
            found["error"] = str(error)[:300]
        for path in glob.glob(os.path.join(folder, "*.json")):
            graph = json.load(open(path)).get("graph")
            for node in (graph or {"nodes": {}})["nodes"].values():
                names = (*node["input_names"], *node["output_names"])
                found["types"].append([node["type"], [graph["tensors"][name]["data_type"] for name in names]])
        print("FOUND" + json.dumps(found), flush=True)
"""


def run(operators: Sequence[str] = ()) -> dict[str, Any]:
    """By operator: how many tests QNN took as integers of either width, as floats, and of how many."""
    by_operator: dict[str, list[Case]] = defaultdict(list)
    for case in all_cases():
        operator = _operator(case)
        if operator and (not operators or operator in operators):
            by_operator[operator].append(case)
    with tempfile.TemporaryDirectory() as folder:
        return {
            operator: _asked(operator, _spread(cases), Path(folder)) for operator, cases in sorted(by_operator.items())
        }


def _operator(case: Case) -> str | None:
    """Of a test of one float operator."""
    graph = case.model.graph
    float_in = [item for item in case.inputs if getattr(item, "dtype", None) == np.float32]
    float_out = [item for item in case.outputs if getattr(item, "dtype", None) == np.float32]
    known = len(graph.node) == 1 and graph.node[0].domain in ("", "ai.onnx")
    sizes = [value.type.tensor_type.shape.dim for value in graph.input]
    fixed = all(dim.HasField("dim_value") for dims in sizes for dim in dims)
    small = all(0 < getattr(item, "size", 0) < 1 << 16 for item in case.inputs)
    return graph.node[0].op_type if known and float_in and float_out and fixed and small else None


def _spread(cases: list[Case]) -> list[Case]:
    """A few of them, from the first to the last."""
    places = np.unique(np.linspace(0, len(cases) - 1, min(CASES, len(cases))).astype(int))
    return [cases[place] for place in places]


def _asked(operator: str, cases: list[Case], folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = {"tests": 0, "a8": 0, "a16": 0, "float": 0}
    made: dict[str, list[tuple[Path, str]]] = {"a8": [], "a16": [], "float": []}
    for case in cases:
        for stored in (False, True) if len(case.model.graph.input) > 1 else (False,):
            found["tests"] += 1
            for kind, path in _forms(operator, case, stored, folder / f"{operator}-{case.name}-{stored}"):
                made[kind].append((path, operator))
    for kind, models in made.items():
        found[kind] = sum(_took(answer, operator, kind) for answer in _ask([path for path, _ in models]))
    sys.stderr.write(f"{operator}: {found}\n")
    return found


def _forms(operator: str, case: Case, stored: bool, folder: Path) -> Iterator[tuple[str, Path]]:
    folder.mkdir(parents=True)
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    feeds = dict(case.feeds)
    _first_output(model)
    _between_products(model, next(name for name, value in feeds.items() if value.dtype == np.float32))
    if stored:
        for value in list(model.graph.input)[1:]:
            model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(feeds.pop(value.name)), value.name))
            model.graph.input.remove(value)
    path, data = folder / "float.onnx", folder / "data.npz"
    onnx.save(model, path)
    np.savez(data, **{name: np.asarray(value)[None] for name, value in feeds.items()})
    yield "float", path
    for kind, word in WIDTHS.items():
        (folder / kind).mkdir()
        try:
            yield (
                kind,
                _quantized(
                    path, data, folder / kind, QuantizeParams(word, op_types=tuple({operator, _NEIGHBOUR}), samples=1)
                ),
            )
        # What the quantizer cannot make, QNN is never asked for.
        except (WrightError, ValueError, KeyError, RuntimeError, AttributeError, AssertionError, IndexError, TypeError):
            continue


def _first_output(model: onnx.ModelProto) -> None:
    """Models read the result of a norm or a pooling, not what it may tell beside."""
    node = model.graph.node[0]
    schema = onnx.defs.get_schema(node.op_type)
    if not node.output[0]:
        return
    optional = [item.option == onnx.defs.OpSchema.FormalParameterOption.Optional for item in schema.outputs]
    while len(node.output) > 1 and len(node.output) <= len(optional) and optional[len(node.output) - 1]:
        dropped = node.output.pop()
        for value in [value for value in model.graph.output if value.name == dropped]:
            model.graph.output.remove(value)


def _between_products(model: onnx.ModelProto, source: str) -> None:
    """As it stands in a model: what it reads and what it writes belongs to quantized operators."""
    node = model.graph.node[0]
    output = next(value for value in model.graph.output if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT)
    factor = onnx.numpy_helper.from_array(np.full(1, 0.9, np.float32), "a factor")
    model.graph.initializer.append(factor)
    for place, name in enumerate(node.input):
        if name == source:
            node.input[place] = "before it"
    node.output[list(node.output).index(output.name)] = "behind it"
    before = onnx.helper.make_node(_NEIGHBOUR, [source, factor.name], ["before it"], name="before")
    model.graph.node.insert(0, before)
    model.graph.node.append(onnx.helper.make_node(_NEIGHBOUR, ["behind it", factor.name], [output.name], name="behind"))


def _quantized(path: Path, data: Path, folder: Path, params: QuantizeParams) -> Path:
    graph = load(path)
    drawn = samples(DataSource(Data(str(data))), graph, 1)
    prepared = prepare(graph, folder, integers=True, raise_opset=True)
    made = quantize_static(
        prepared, steps_of(params.precision)[0], params, CalibrationSamples(drawn, random=True), folder
    )
    return save(made.model, folder)


def _ask(models: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """A child for all; one more for what is left where it dies of one."""
    left = [str(path) for path in models]
    while left:
        done = subprocess.run([sys.executable, "-c", CHILD, *left], capture_output=True, text=True, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND")]
        yield from (json.loads(line.removeprefix("FOUND")) for line in lines)
        left = left[len(lines) + 1 :]


def _took(answer: dict[str, Any], operator: str, kind: str) -> bool:
    """A clamp that the pair behind it does is taken too: it is in no list of nodes that are left."""
    if answer.get("error") or operator in answer["left"] or _NEIGHBOUR in answer["left"] or not answer["types"]:
        return False
    floats = any(code >> 8 == _FLOAT for _, types in answer["types"] for code in types)
    return kind == "float" or not floats


def toml(found: dict[str, Any]) -> str:
    told = environment()
    versions = ", ".join(f"{key} {told['libraries'][key]}" for key in ("onnx", "onnxruntime", "onnxruntime-qnn"))  # type: ignore[index]
    lines = [
        "# What QNN's HTP compiler takes of each ONNX operator, asked with ONNX's own node tests between two products:",
        "# of `tests`, how many it composes with 8-bit (a8) and with 16-bit (a16) activations and no float inside, and",
        "# how many in float.",
        "# Written by `python -m bench.npu_operators`; do not edit.",
        f'source = "{versions}; soc_model 60, htp_arch 73; {told["date"]}"',
        "",
        "[operators]",
    ]
    for name, row in found.items():
        cells = ", ".join(f"{key} = {row[key]}" for key in ("tests", "a8", "a16", "float"))
        lines.append(f"{name} = {{ {cells} }}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    # Those named are asked again, the others stay.
    known = tomllib.loads(TABLE.read_text())["operators"] if sys.argv[1:] and TABLE.is_file() else {}
    TABLE.write_text(toml(dict(sorted({**known, **run(sys.argv[1:])}.items()))))
