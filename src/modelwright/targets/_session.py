"""The one place where an InferenceSession is made. Runs in a child.

Imported by foreign interpreters too, so: standard library, numpy and onnxruntime only.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from types import TracebackType
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import ExecutionError, InputError
from modelwright.targets._binding import (
    CPU_EP,
    PLACEMENT,
    Binding,
    NotBound,
    SessionSpec,
    bind,
    resolved_threads,
    session_config,
    session_options,
)
from modelwright.targets._one_cpu import keep_to_one_cpu
from modelwright.targets._probe import one_line
from modelwright.targets._target import Target
from modelwright.targets.eps import Explanation

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime as ort
else:
    np = lazy("numpy")
    ort = lazy("onnxruntime")

# onnxruntime's exceptions that blame the file, by class name: the classes live in its native module.
_FILE_ERRORS = ("NoSuchFile", "InvalidProtobuf", "NoModel")


class InputsRefusedError(InputError):
    """The model was opened, and did not take what it was fed."""


class RunFailedError(ExecutionError):
    """The model was opened and took its inputs, and did not get to its end."""


@dataclass(frozen=True)
class ModelBytes:
    """A model from memory. Its external data lies in `folder`, and is mapped from there; or `files` holds it by
    location, and onnxruntime copies it."""

    data: bytes
    files: Mapping[str, Any] = field(default_factory=dict)
    folder: str | None = None


@dataclass(frozen=True)
class SessionTensor:
    """One input or output as onnxruntime names it: `float32`, `int64`…; a symbolic dimension is its name."""

    name: str
    dtype: str
    shape: tuple[int | str | None, ...]


@dataclass(frozen=True)
class SessionFacts:
    """What was asked for and what was bound, as read back from the session. `assumed` says which chip stands in for one
    that was not named."""

    target: str
    ep: str
    providers: tuple[str, ...]
    hardware: str
    hardware_vendor: str | None
    ep_version: str | None
    onnxruntime: str
    options: Mapping[str, str]
    config: Mapping[str, str]
    graph_optimization: str
    threads: int
    nodes_per_ep: Mapping[str, int]
    simulated: bool
    create_s: float
    assumed: str | None = None

    @property
    def engine(self) -> str:
        """What computes, with versions: `onnxruntime 1.31.1`, and the EP's own where it is not a part of that."""
        own = "" if self.ep_version in (None, self.onnxruntime) else f", {self.ep} {self.ep_version}"
        return f"onnxruntime {self.onnxruntime}{own}"

    @property
    def placed_share(self) -> float | None:
        """How much of the graph runs on the EP; None where the session does not tell."""
        nodes = self.nodes_per_ep
        return nodes.get(self.ep, 0) / sum(nodes.values()) if nodes else None

    @property
    def timing_valid(self) -> bool:
        """False where a simulator computes: such a run says nothing about speed."""
        return not self.simulated


@dataclass(frozen=True)
class AssignedNode:
    name: str
    domain: str
    op_type: str


@dataclass(frozen=True)
class AssignedGroup:
    """Nodes one EP took together: a compiled partition, or a single node of an EP that compiles nothing."""

    ep_name: str
    nodes: tuple[AssignedNode, ...]


class BoundSession:
    """A session and the facts about it. Close it: native objects that outlive their turn crash at exit.

    `native` is onnxruntime's session, for what this class does not offer; do not keep it.
    """

    def __init__(self, session: Any, facts: SessionFacts, give_back: Callable[[], None], *, profiling: bool) -> None:
        self.facts = facts
        self.inputs = tuple(_tensor_spec(node) for node in session.get_inputs())
        self.outputs = tuple(_tensor_spec(node) for node in session.get_outputs())
        self.profile: str | None = None
        self._session = session
        self._give_back = give_back
        self._profiling = profiling

    @property
    def native(self) -> Any:
        if self._session is None:
            raise RuntimeError("the session is closed")
        return self._session

    def run(self, feeds: Mapping[str, Any], outputs: Sequence[str] | None = None) -> dict[str, np.ndarray]:
        """Outputs by name. A failure at run time raises; nothing is retried on another EP."""
        names = list(outputs) if outputs is not None else [spec.name for spec in self.outputs]
        try:
            values = self.native.run(names, dict(feeds))
        except Exception as error:  # noqa: BLE001 - onnxruntime raises its own C++ exception types here
            if type(error).__name__ == "InvalidArgument":
                raise InputsRefusedError(
                    "the model refused its inputs",
                    cause=one_line(error),
                    fix="give every input under its name, with the type and shape the model declares; where inputs are "
                    "made up, say their sizes (`dims`) or give real ones (`data`)",
                ) from None
            raise RunFailedError(
                f"{self.facts.target} failed while running",
                cause=one_line(error),
                fix="try other sizes (`dims`) or real inputs (`data`)"
                if self.facts.ep == CPU_EP
                else "compare with `target` cpu; the worker's log has the EP's own words",
            ) from None
        return dict(zip(names, values, strict=True))

    def assignment(self) -> tuple[AssignedGroup, ...]:
        """The partitioner's answer, for the graph as onnxruntime rewrote it."""
        return _assignment(self.native)

    def close(self) -> None:
        """End the profile, then free the native session, even while a traceback holds the Python one."""
        session, self._session = self._session, None
        if session is None:
            return
        try:
            if self._profiling:
                self.profile = session.end_profiling()
        finally:
            vars(session).clear()
            self._give_back()

    def __enter__(self) -> BoundSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_session(
    model: str | ModelBytes, target: Target, spec: SessionSpec | None = None, *, virtual: bool = False
) -> BoundSession:
    """Bind the target's own device, or raise: no fallback, no selection policy, no other EP."""
    spec = spec or SessionSpec()
    binding = bind(target, spec, virtual=virtual)
    give_back = keep_to_one_cpu() if binding.simulated else lambda: None
    try:
        return _opened(model, binding, spec, give_back)
    except BaseException:
        give_back()
        raise


def _opened(
    model: str | ModelBytes, binding: Binding, spec: SessionSpec, give_back: Callable[[], None]
) -> BoundSession:
    started = time.perf_counter()
    session = _create(model, binding, spec)
    elapsed = time.perf_counter() - started
    try:
        facts = _verified(session, binding, spec, elapsed)
        return BoundSession(session, facts, give_back, profiling=spec.profile_prefix is not None)
    except BaseException:
        vars(session).clear()
        raise


def _create(model: str | ModelBytes, binding: Binding, spec: SessionSpec) -> Any:
    options = session_options(binding, spec)
    if isinstance(model, ModelBytes) and model.files:
        names, buffers = list(model.files), list(model.files.values())
        options.add_external_initializers_from_files_in_memory(names, buffers, [len(item) for item in buffers])
    if isinstance(model, ModelBytes) and model.folder is not None:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", model.folder)
    source = model.data if isinstance(model, ModelBytes) else str(model)
    try:
        return ort.InferenceSession(source, options, providers=binding.providers, enable_fallback=0)
    except Exception as error:  # noqa: BLE001 - onnxruntime raises its own C++ exception types here
        cause = one_line(error)
        if type(error).__name__ in _FILE_ERRORS:
            fix = "check the path, and the model with `wright inspect`"
            raise InputError("onnxruntime cannot read the model", cause=cause, fix=fix) from None
        said = explained(binding.target, cause)
        raise ExecutionError(f"{binding.target} cannot open the model", cause=said.cause, fix=said.fix) from None


def explained(target: Target, words: str) -> Explanation:
    """What the EP's words about a failure mean for this target; its own words where it says so itself."""
    fix = f"run `wright analyze --target {target}` to see what the EP takes"
    return target.adapter.explain(words, target.soc) or Explanation(words, fix)


def _verified(session: Any, binding: Binding, spec: SessionSpec, elapsed: float) -> SessionFacts:
    providers = tuple(session.get_providers())
    if not providers or providers[0] != binding.ep_name:
        raise NotBound(
            f"{binding.target} was not bound",
            cause=f"the session uses {', '.join(providers) or 'no provider'} instead of {binding.ep_name}",
            fix=f"needs a worker that has this device: {_device_name(binding.target)}",
        )
    return SessionFacts(
        target=str(binding.target),
        ep=binding.ep_name,
        providers=providers,
        hardware=binding.hardware,
        hardware_vendor=binding.hardware_vendor,
        ep_version=binding.ep_version,
        onnxruntime=ort.__version__,
        options=_effective(session, binding),
        config=dict(sorted(session_config(spec).items())),
        graph_optimization=spec.graph_optimization,
        threads=resolved_threads(spec),
        nodes_per_ep=_used(session, binding, spec),
        simulated=binding.simulated,
        create_s=elapsed,
        assumed=binding.target.assumption,
    )


def _device_name(target: Target) -> str:
    return f"{target.provider.vendor} {target.device.upper()}"


def _assignment(session: Any) -> tuple[AssignedGroup, ...]:
    return tuple(
        AssignedGroup(
            group.ep_name,
            tuple(AssignedNode(node.name, node.domain, node.op_type) for node in group.get_nodes()),
        )
        for group in session.get_provider_graph_assignment_info()
    )


def _used(session: Any, binding: Binding, spec: SessionSpec) -> dict[str, int]:
    """Nodes per EP. One that breaks when asked claims nothing, and onnxruntime goes on with the CPU."""
    if session_config(spec)[PLACEMENT] == "0":
        return {}
    counts = Counter[str]()
    for group in session.get_provider_graph_assignment_info():
        counts[group.ep_name] += len(group.get_nodes())
    if counts and binding.ep_name not in counts and not spec.allow_unused:
        raise ExecutionError(
            f"{binding.target} takes no node of the model",
            cause=f"all of it would run on {', '.join(counts)}",
            fix=f"run `wright analyze --target {binding.target}` to see why",
        )
    return dict(sorted(counts.items()))


def _effective(session: Any, binding: Binding) -> dict[str, str]:
    """The EP options as the session reports them; one that got lost on the way is an error.

    Some EPs inside a wheel report nothing at all; then what was asked is all there is.
    """
    reported = dict(session.get_provider_options().get(binding.ep_name, {}))
    if not reported and binding.device is None:
        reported = dict(binding.options)
    lost = sorted(key for key in binding.options if key not in reported)
    if lost:
        raise ExecutionError(
            f"{binding.ep_name} dropped its option {lost[0]}",
            cause=f"the session reports only {', '.join(sorted(reported)) or 'no options'}",
            fix=f"leave {lost[0]} out, or use an EP version that knows it",
        )
    return {key: str(reported[key]) for key in sorted(binding.options)}


def _tensor_spec(node: Any) -> SessionTensor:
    shape = tuple(dim if isinstance(dim, int | str) else None for dim in node.shape)
    return SessionTensor(node.name, _dtype(node.type), shape)


def _dtype(text: str) -> str:
    """`tensor(float)` → `float32`; what is no tensor stays as onnxruntime writes it."""
    element = text.removeprefix("tensor(").removesuffix(")")
    return {"float": "float32", "double": "float64"}.get(element, element)
