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
OPENS, COMPUTES, DIFFERS = "it does not open", "it fails while computing", "it computes something else"
NO_NUMBERS = "its answers are no numbers"


USUAL_SAMPLES = 2


@dataclass(frozen=True)
class CheckParams:
    """`target` in its text form. More `samples` than usual are all computed; else a simulator stops where it has said
    enough. `limit_s` bounds what a simulator may compute; a device always ends. `look` is for the
    smallest part that fails, where the target fails on the model."""

    target: str
    samples: int = USUAL_SAMPLES
    limit_s: float = 60.0
    look: bool = True
    provider_options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, kw_only=True)
class TargetGate(CheckParams):
    """With the precision that the artifact claims, and what is known about its outputs: how far the target's answers
    may be from the CPU's."""

    precision: str
    outputs: Mapping[str, OutputKind] = field(default_factory=dict, hash=False)
    task: str | None = None


@dataclass(frozen=True)
class Avoided:
    """What was tried on the failing part alone: the words for it, how a recipe says it, and whether it passed."""

    title: str
    how: str
    passed: bool | None
    result: str


@dataclass(frozen=True)
class FailingPart:
    """Operators that fail on the target by themselves as the whole model does, on made-up inputs. `minimal`: none of
    them can be left out; else the time or the tries were over."""

    operators: tuple[str, ...]
    of: int
    reason: str
    minimal: bool
    avoided_by: tuple[Avoided, ...]
    tries: int
    seconds: float

    @property
    def words(self) -> str:
        shown = ", ".join(self.operators[:4]) + (f" and {len(self.operators) - 4} more" if self.operators[4:] else "")
        rest = "" if self.minimal else "; there may be less that does"
        found = f"{len(self.operators)} of {self.of} operators, {self.tries} tries, {self.seconds:.0f} s{rest}"
        return f"what fails alone: {shown} ({found}): {self.reason}"


def kind_of_failure(reason: str) -> str:
    """How it fails, without what it says about the model at hand."""
    return next((kind for kind in (OPENS, COMPUTES, DIFFERS, NO_NUMBERS) if reason.startswith(kind)), "")


@dataclass(frozen=True)
class CheckOutcome:
    """`passed`: the target opened the artifact and computed what the CPU computes. None: it could not be asked, or did
    not compute; `reason` and `fix` say why, as they do for a no.

    `part` is the smallest part of the model that fails alone, where one was found.
    `nodes` counts what runs, `on_target` what the target has of it, `left` the operators it leaves to another EP;
    `in_float` are those of a quantized model that it takes in float only. `random_inputs`: the samples were made up.
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
    part: FailingPart | None = None
    in_float: tuple[OpTally, ...] = ()
    random_inputs: bool = False

    @property
    def agrees(self) -> bool:
        """Its answers were the CPU's, within the bounds, whatever was asked."""
        near = (item.reason is None and all(measure.passed for measure in item.measures) for item in self.outputs)
        return bool(self.outputs) and all(near)

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
    """What a simulator computes, the same library computes tomorrow. Any other no may be another answer, and so may an
    unknown of an EP that is installed: devices come and go, and a busy machine may be quiet."""
    if outcome.passed is None and (outcome.reason or "").startswith(TOO_LONG):
        return False
    answered = outcome.passed is None or (outcome.simulated and bool(outcome.outputs))
    return outcome.passed is True or not outcome.installed or (outcome.opened and answered)


def _leaves(outcome: CheckOutcome) -> bool:
    """An EP that is not there was not registered either: the next one may be asked in the same process."""
    return outcome.installed or outcome.opened


CHECK = Stage(
    name="check",
    version="8",
    params=TargetGate,
    outcome=CheckOutcome,
    task=RemoteTask("modelwright.stages.check._run:run_check"),
    packages=("onnxruntime", *(name for name in catalogue().packages() if name != "onnxruntime")),
    patience_s=3600.0,
    # EPs are registered with the process, and what one leaves there the next one sees.
    last=True,
    leaves=_leaves,
    host=_library,
    keeps=_settled,
)
