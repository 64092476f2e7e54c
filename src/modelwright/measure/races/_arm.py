"""An arm of a comparison, ready to be opened: model, target, session options, interpreter, inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._json import digest
from modelwright.data import check_inputs
from modelwright.graph import ModelSummary, fingerprint, load, summary
from modelwright.measure.races._arm_spec import Arm
from modelwright.measure.races._outputs import tolerance
from modelwright.measure.timing._subject import InputChoice, Subject, make_subject
from modelwright.models import FileDigest, model_files, onnx_of
from modelwright.targets import SessionSpec, Target, parse_target, resolved_threads
from modelwright.worker import Runtime, find_runtime

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class ReadyArm:
    """`identity` is equal for two arms that would be the same thing measured twice."""

    name: str
    path: Path
    fingerprint: str
    files: tuple[FileDigest, ...]
    target: Target
    spec: SessionSpec
    runtime: Runtime | None
    feeds: Mapping[str, NDArray[Any]]
    precision: str | None
    tolerance: str

    @property
    def is_one_thread(self) -> bool:
        """All of a run happens in the thread that calls it; what other EPs start is not known."""
        return self.target.ep == "cpu" and resolved_threads(self.spec) == 1

    @property
    def rests(self) -> bool:
        """Nothing of the session uses a CPU between two runs."""
        spins = (self.spec.config or {}).get("session.intra_op.allow_spinning") != "0"
        return self.is_one_thread or (self.target.ep == "cpu" and not spins)

    @property
    def identity(self) -> str:
        spec, runtime = self.spec, self.runtime
        return digest(
            [
                self.fingerprint,
                str(self.target),
                spec.threads,
                spec.graph_optimization,
                dict(spec.provider_options or {}),
                dict(spec.config or {}),
                [str(runtime.python), runtime.versions] if runtime else None,
            ]
        )


def inputs_digest(arm: ReadyArm | Subject) -> str:
    """Of the arrays an arm, or a subject, is fed: their names, types, shapes and bytes."""
    found = hashlib.sha256()
    for name, array in sorted(arm.feeds.items()):
        found.update(f"{name}:{array.dtype.str}:{array.shape};".encode() + array.tobytes())
    return found.hexdigest()


def make_arms(specs: Sequence[Arm], inputs: InputChoice, target: str, threads: int | None) -> tuple[ReadyArm, ...]:
    """Resolve every arm; all get the base's inputs, in the sizes that an arm has fixed and with floats in the type each
    arm declares."""
    base = make_subject(specs[0].model, inputs, like=[onnx_of(spec.model) for spec in specs[1:]])
    return tuple(ready_arm(spec, base, target, threads) for spec in specs)


def ready_arm(spec: Arm, base: Subject, target: str, threads: int | None) -> ReadyArm:
    """One arm, fed what the base is fed."""
    subject = _subject_like(base, spec.model)
    return ReadyArm(
        name=spec.name,
        path=subject.path,
        fingerprint=fingerprint(subject.graph),
        files=subject.files,
        target=parse_target(spec.target or target),
        spec=SessionSpec(
            threads=spec.threads or threads,
            config=spec.config,
            provider_options=spec.options,
            graph_optimization=spec.level or "all",
        ),
        runtime=find_runtime(spec.runtime) if spec.runtime else None,
        feeds=subject.feeds,
        precision=subject.model.precision.label,
        tolerance=tolerance(subject.model.precision),
    )


def _subject_like(base: Subject, text: str) -> Subject:
    path = onnx_of(text)
    if path == base.path:
        return base
    graph = load(path)
    model = summary(graph)
    feeds = {name: _as_declared(array, name, model) for name, array in base.feeds.items()}
    check_inputs(feeds, model.inputs, origin=f"what {base.path.name} is fed")
    return Subject(path, graph, model, feeds, model_files(path))


def _as_declared(array: NDArray[Any], name: str, model: ModelSummary) -> NDArray[Any]:
    declared = next((value.dtype for value in model.inputs if value.name == name), None)
    is_float = array.dtype.kind == "f" and declared in ("float16", "float32", "float64")
    return array.astype(declared) if is_float else array
