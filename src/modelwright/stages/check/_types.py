"""What is asked of the target, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from modelwright._dataclass import dataclass
from modelwright.stages.stage import Stage
from modelwright.stages.validate import OutputKind, OutputParity
from modelwright.targets import OpTally, catalogue, library_digest, parse_target
from modelwright.worker import RemoteTask

TOO_LONG = "the simulated run did not end within"


@dataclass(frozen=True)
class CheckParams:
    """`target` in its text form. `limit_s` bounds what a simulator may compute; a device always ends."""

    target: str
    samples: int = 2
    limit_s: float = 60.0
    provider_options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class TargetGate(CheckParams):
    """With the precision that the artifact claims, and what is known about its outputs: how far the target's answers
    may be from the CPU's."""

    precision: str
    outputs: Mapping[str, OutputKind] = field(default_factory=dict, hash=False)
    task: str | None = None


@dataclass(frozen=True)
class CheckOutcome:
    """`passed`: the target opened the artifact and computed what the CPU computes. None: it could not be asked, or did
    not compute; `reason` and `fix` say why, as they do for a no.

    `nodes` counts what runs, `on_target` what the target has of it, `left` the operators it leaves to another EP.
    """

    passed: bool | None
    reason: str | None
    fix: str | None
    chip: str | None
    engine: str | None
    simulated: bool
    opened: bool
    nodes: int
    on_target: int
    left: tuple[OpTally, ...]
    samples: int
    bound: float
    outputs: tuple[OutputParity, ...]
    compute_s: float | None
    installed: bool

    @property
    def worst_cosine(self) -> float | None:
        return min((item.cosine for item in self.outputs if item.cosine is not None), default=None)

    @property
    def sqnr_db(self) -> float | None:
        return min((item.sqnr_db for item in self.outputs if item.sqnr_db is not None), default=None)


def _library(params: CheckParams) -> dict[str, str]:
    """A library that the user named has no version that would tell two of them apart."""
    found = library_digest(parse_target(params.target).provider)
    return {} if found is None else {"ep_library": found}


def _settled(outcome: CheckOutcome) -> bool:
    """A no may be another answer tomorrow, and so may an unknown of an EP that is installed: devices come and go, and a
    machine that was busy may be quiet."""
    if outcome.passed is None and (outcome.reason or "").startswith(TOO_LONG):
        return False
    return outcome.passed is True or not outcome.installed or (outcome.opened and outcome.passed is None)


CHECK = Stage(
    name="check",
    version="2",
    params=TargetGate,
    outcome=CheckOutcome,
    task=RemoteTask("modelwright.stages.check._run:run_check"),
    packages=("onnxruntime", *(name for name in catalogue().packages() if name != "onnxruntime")),
    patience_s=3600.0,
    # EPs are registered with the process, and what one leaves there the next one sees.
    alone=True,
    host=_library,
    keeps=_settled,
)
