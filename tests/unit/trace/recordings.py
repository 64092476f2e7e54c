"""Recordings as onnxruntime and QNN write them, made from a few words."""

from __future__ import annotations

import json
from pathlib import Path

from modelwright.graph import load
from modelwright.measure.traces._monitor import Recorded
from modelwright.measure.traces._names import ModelNodes
from modelwright.measure.traces._profile import Profile, read_profile
from modelwright.measure.traces._types import OpTrace, TraceRequested, empty_trace
from modelwright.targets import SessionFacts
from support.models import mlp, save

CPU, QNN = "CPUExecutionProvider", "QNNExecutionProvider"
CSV_HEADER = "Msg Timestamp,Message,Time,Unit of Measurement,Timing Source,Event Level,Event Identifier,ONNX Source Ops"


def node(name: str, start: int, duration: int, op_type: str = "Relu", index: int = 0, provider: str = CPU):
    args = {"op_name": op_type, "provider": provider, "node_index": str(index)}
    args |= {"input_type_shape": [{"float": [1, 4]}], "output_type_shape": [{"float": [1, 4]}]}
    args |= {"activation_size": "16", "parameter_size": "0", "output_size": "16"}
    return _event("Node", f"{name}_kernel_time", start, duration, args)


def model_run(start: int, duration: int):
    return _event("Session", "model_run", start, duration, {})


def profile_text(*events: dict) -> str:
    """The layout onnxruntime uses: one event per line, spaces around colons, no comma after the last."""
    lines = [json.dumps(event, separators=(",", " : ")) for event in events]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def profile(folder: Path, *events: dict) -> Profile:
    path = folder / "profile.json"
    path.write_text(profile_text(*events))
    return read_profile(path)


def block(us: int, cycles: int, *ops: tuple[str, int, str]) -> list[str]:
    """The rows of one execution of one partition."""
    rows = ["0,BACKEND,4,COUNT,BACKEND,ROOT,Number of HVX threads used,"]
    rows += [f"0,BACKEND,{cycles},CYCLES,BACKEND,ROOT,Accelerator (execute) time (cycles),"]
    rows += [f"0,NODE,{count},CYCLES,BACKEND,SUB-EVENT,{name} (cycles),{sources}" for name, count, sources in ops]
    rows += [f"0,BACKEND,{us},US,BACKEND,ROOT,Accelerator (execute) time,"]
    rows += [f"0,EXECUTE,{us + 100},US,BACKEND,ROOT,QNN (execute) time,"]
    return rows


def csv_text(*blocks: list[str], header: str = CSV_HEADER) -> str:
    finalize = ["0,FINALIZE,47654,US,BACKEND,ROOT,QNN (finalize) time,"]
    unknown = ["0,UNKNOWN,UNKNOWN,OBJECT,BACKEND,ROOT,Some object,"]
    return "\n".join([header, *finalize, *unknown, *(row for rows in blocks for row in rows)]) + "\n"


def facts(simulated: bool = False, provider: str = CPU) -> SessionFacts:
    return SessionFacts(
        target="cpu",
        ep=provider,
        providers=(provider,),
        hardware="cpu",
        hardware_vendor=None,
        ep_version="1.0",
        onnxruntime="1.31.1",
        options={},
        config={},
        graph_optimization="all",
        threads=2,
        nodes_per_ep={},
        simulated=simulated,
        create_s=0.1,
    )


def recorded(found: Profile | None, *, warmup: int = 0, measured: int = 1, **fields) -> Recorded:
    return Recorded(facts(fields.pop("simulated", False)), warmup, measured, found, **{"problem": None, **fields})


def empty(runs: int = 1, warmup: int = 0, level: str = "detail") -> OpTrace:
    return empty_trace("model.onnx", TraceRequested("cpu", CPU, "cpu", level), runs, warmup)


def mlp_nodes(folder: Path) -> ModelNodes:
    """first (MatMul), bias (Add), act (Relu), second (MatMul)."""
    return ModelNodes(load(save(mlp(), folder)))


def _event(category: str, name: str, start: int, duration: int, args: dict) -> dict:
    return {"cat": category, "pid": 1, "tid": 7, "dur": duration, "ts": start, "ph": "X", "name": name, "args": args}
