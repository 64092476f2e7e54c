"""What compile is asked for and what it answers."""

from __future__ import annotations

from modelwright._dataclass import dataclass
from modelwright.stages.stage import Stage
from modelwright.targets import catalogue, library_digest, parse_target
from modelwright.worker import RemoteTask


@dataclass(frozen=True)
class CompileParams:
    """`target` in its text form (`qnn-npu:soc=x-elite`). `embed` puts the binary into the .onnx file."""

    target: str
    embed: bool = False
    provider_options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class OutsideOp:
    """Nodes that stayed outside the compiled part, by type."""

    op_type: str
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class CompileOutcome:
    """Facts of a compiled model that was loaded back."""

    target: str
    ep: str
    ep_version: str | None
    sdk_version: str | None
    simulated: bool
    options: tuple[tuple[str, str], ...]
    nodes: int
    partitions: int
    outside: tuple[OutsideOp, ...]
    files: tuple[str, ...]
    compile_s: float
    load_s: float

    @property
    def outside_count(self) -> int:
        return sum(len(op.nodes) for op in self.outside)


def _library(params: CompileParams) -> dict[str, str]:
    found = library_digest(parse_target(params.target).provider)
    return {} if found is None else {"ep_library": found}


COMPILE = Stage(
    name="compile",
    version="3",
    params=CompileParams,
    outcome=CompileOutcome,
    task=RemoteTask("modelwright.stages.compile._compile:run_compile"),
    packages=tuple(catalogue().packages(compilers=True)),
    patience_s=3600.0,
    last=True,
    host=_library,
)
