"""EPContext through onnxruntime's ModelCompiler. Needs a process of its own: see `run_compile`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import ExecutionError, InputError
from modelwright.graph import Graph, load
from modelwright.stages.compile._types import CompileOutcome, CompileParams, OutsideOp
from modelwright.targets import (
    Binding,
    SessionFacts,
    SessionSpec,
    Target,
    bind,
    explained,
    mapped_data,
    one_line,
    open_session,
    parse_target,
    session_options,
)
from modelwright.worker import progress, task

if TYPE_CHECKING:
    import onnx
    import onnxruntime as ort
else:
    onnx = lazy("onnx")
    ort = lazy("onnxruntime")

MAIN_FILE = "model.onnx"
_EP_CONTEXT = "EPContext"
_compiled_here: list[str] = []


@task
def run_compile(model: str, workdir: str, params: CompileParams) -> CompileOutcome:
    """Compile into `workdir` and load the result back. Whatever fails, nothing counts as compiled.

    One call per process: compilers number their graphs from the start of the process, so the bytes of a second
    compilation depend on the first. What the CPU computed there before does not shape them. The model goes in as bytes:
    its path would shape the result too.
    """
    target = parse_target(params.target)
    _require_compiler(target)
    graph = load(model)
    _refuse_compiled(graph)
    _require_fresh_process(target)
    spec = SessionSpec(provider_options=dict(params.provider_options), graph_optimization="disabled")
    binding = bind(target, spec)
    progress("compiling", 0.0)
    started = time.perf_counter()
    output = Path(workdir, MAIN_FILE)
    _compile(graph, binding, spec, params.embed, output)
    compile_s = time.perf_counter() - started
    progress("loading it back", 0.8)
    with open_session(str(output), target, spec) as session:
        return _outcome(graph, load(output), session.facts, compile_s)


def _compile(graph: Graph, binding: Binding, spec: SessionSpec, embed: bool, output: Path) -> None:
    options = session_options(binding, spec)
    if binding.device is None:
        options.add_provider(binding.ep_name, dict(binding.options))
    files = mapped_data(graph)
    if files:
        buffers = list(files.values())
        options.add_external_initializers_from_files_in_memory(list(files), buffers, [len(data) for data in buffers])
    flags = ort.OrtCompileApiFlags
    try:
        compiler = ort.ModelCompiler(
            options,
            graph.path.read_bytes(),
            embed_compiled_data_into_model=embed,
            flags=flags.ERROR_IF_NO_NODES_COMPILED | flags.ERROR_IF_OUTPUT_FILE_EXISTS,
        )
        compiler.compile_to_file(str(output))
    except Exception as error:  # noqa: BLE001 - onnxruntime raises its own C++ exception types here
        raise _failed(graph, binding.target, error) from None
    if not output.is_file():
        raise _failed(graph, binding.target, FileNotFoundError("the compiler wrote no file"))


def _failed(graph: Graph, target: Target, error: Exception) -> ExecutionError:
    said = explained(target, one_line(error))
    text, fix = said.cause, said.fix
    known = {schema.name for schema in onnx.defs.get_function_ops()}
    functions = sorted({node.op_type for node in graph.model.graph.node if node.op_type in known})
    if "invalid node" in text and functions:
        # Functions without a kernel are expanded after the EP was asked; onnxruntime cannot write the result.
        fix = f"expand what is a function first (one of {', '.join(functions)}); onnxruntime does it too late"
    elif _has_doubles(graph):
        fix = "it computes in double precision, which NPUs do not have: add the pass narrow_doubles to `passes`"
    return ExecutionError(f"{target} could not compile the model", cause=text, fix=fix)


def _has_doubles(graph: Graph) -> bool:
    main = graph.model.graph
    values = (*main.input, *main.output, *main.value_info)
    kinds = {value.type.tensor_type.elem_type for value in values} | {tensor.data_type for tensor in main.initializer}
    casts = {attr.i for node in main.node if node.op_type == "Cast" for attr in node.attribute if attr.name == "to"}
    return onnx.TensorProto.DOUBLE in kinds | casts


def _outcome(graph: Graph, compiled: Graph, facts: SessionFacts, compile_s: float) -> CompileOutcome:
    nodes = list(compiled.model.graph.node)
    contexts = [node for node in nodes if node.op_type == _EP_CONTEXT]
    outside: dict[str, list[str]] = {}
    for node in nodes:
        if node.op_type != _EP_CONTEXT:
            outside.setdefault(node.op_type, []).append(node.name or node.output[0])
    folder = compiled.path.parent
    return CompileOutcome(
        target=facts.target,
        ep=facts.ep,
        ep_version=facts.ep_version,
        sdk_version=_text(contexts[0], "ep_sdk_version") if contexts else None,
        simulated=facts.simulated,
        options=tuple((key, value) for key, value in facts.options.items() if not Path(value).is_absolute()),
        nodes=len(graph.model.graph.node),
        partitions=len(contexts),
        outside=tuple(OutsideOp(op_type, tuple(names)) for op_type, names in sorted(outside.items())),
        files=tuple(sorted(path.name for path in folder.iterdir())),
        compile_s=compile_s,
        load_s=facts.create_s,
    )


def _text(node: Any, name: str) -> str | None:
    return next((item.s.decode(errors="replace") for item in node.attribute if item.name == name), None)


def _require_compiler(target: Target) -> None:
    if not target.provider.ep_context:
        raise ExecutionError(
            f"{target} has no compiler",
            cause=f"{target.provider.title} cannot write EPContext models; it compiles when a session opens",
            fix="leave compile out for this target",
        )


def _refuse_compiled(graph: Graph) -> None:
    if any(node.op_type == _EP_CONTEXT for body in graph.bodies for node in body.nodes):
        raise InputError(
            f"{graph.path.name} is compiled already",
            cause="it contains EPContext nodes",
            fix="compile the model it was made from",
        )


def _require_fresh_process(target: Target) -> None:
    used = {device.ep_name for device in ort.get_ep_devices()} | set(_compiled_here)
    if target.provider.name in used:
        raise ExecutionError(
            f"{target} needs a process of its own to compile",
            cause=f"{target.provider.name} was used in this one, which changes the bytes of what follows",
            fix="call it through modelwright.worker.run",
        )
    _compiled_here.append(target.provider.name)
