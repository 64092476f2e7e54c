"""What a package for users' machines is, and what was asked of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright.models import FileDigest
from modelwright.search import Carried
from modelwright.vocabulary import Result, weakest

GateName = Literal["complete", "accuracy", "speed", "inputs", "agreement", "chain"]
GATES: tuple[GateName, ...] = ("complete", "accuracy", "speed", "inputs", "agreement", "chain")
HERE = "here"
NOT_RUN = "not run"
"""So begins the reason of a gate that nobody could be asked about."""


@dataclass(frozen=True)
class LeastVersion:
    """The oldest `what` (onnxruntime, or an EP as its library calls itself) that a variant was seen to run with. Where
    `proof` is None nobody ran it: then it is the version that it was made with."""

    what: str
    version: str
    proof: str | None

    @property
    def words(self) -> str:
        """The number inside an EP's library is often not that of the package which installs it."""
        whose = "" if self.what == "onnxruntime" else " (by its library's own count)"
        return f"{self.what} {self.version}{whose}{'' if self.proof else ' (not run)'}"


@dataclass(frozen=True)
class VariantModel:
    """One graph of a variant: its name, and where it is in the package."""

    component: str
    path: str
    ir_version: int
    opsets: tuple[str, ...]


@dataclass(frozen=True)
class ShippedVariant:
    """One artifact of a package. `carried` says where it can go. `options` are of the EP; `where` are those that name
    the device to an EP that is told it by a word."""

    target: str
    ep: str
    device: str
    folder: str
    carried: Carried
    carried_because: str
    precision: str
    models: tuple[VariantModel, ...]
    files: tuple[FileDigest, ...]
    options: Mapping[str, str]
    where: Mapping[str, str]
    needs: tuple[LeastVersion, ...] = ()

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class VariantTrial:
    """One variant, opened and run in one place: `here`, or a runtime by its name. Without `ran`, `reason` says why not.

    `inputs` are so many different ones, numbers all of them where `fed_finite`; `finite` and `different` (from the CPU
    variant, how) are about their answers; `nothing`: only because both answer next to nothing.
    """

    target: str
    place: str
    ran: bool
    reason: str | None
    engine: str | None = None
    onnxruntime: str | None = None
    simulated: bool = False
    inputs: int = 0
    finite: bool | None = None
    different: str | None = None
    nothing: bool = False
    compared: bool = False
    fed_finite: bool = True


@dataclass(frozen=True)
class ChosenVariant:
    """What the selector in the package took in a place, really, and why none before it."""

    place: str
    onnxruntime: str | None
    chosen: str | None
    tried: tuple[tuple[str, str], ...]
    ran: bool
    reason: str | None
    devices: tuple[tuple[str, str | None, str | None], ...] = ()


@dataclass(frozen=True)
class ChainStep:
    """On a machine that lacks these EPs the selector takes `chosen`. `expected` is what is next in the order."""

    missing: tuple[str, ...]
    expected: str
    chosen: str | None


@dataclass(frozen=True)
class Waiver:
    """Why a gate need not hold, for all variants or for one, and until which day."""

    gate: GateName
    target: str | None
    reason: str
    until: str


@dataclass(frozen=True)
class GateRow:
    """The answer of one gate about one variant, or about the package. None: nobody could say, `reason` is why and `fix`
    what would tell."""

    gate: GateName
    target: str | None
    passed: bool | None
    reason: str
    record: str | None = None
    fix: str | None = None
    waiver: Waiver | None = None
    expired: bool = False

    @property
    def holds(self) -> bool | None:
        """With its waiver, as long as that lasts."""
        if self.passed is True or (self.waiver is not None and not self.expired):
            return True
        return False if self.expired else self.passed

    @property
    def word(self) -> str:
        if self.passed is True:
            return "passed"
        if self.waiver is not None:
            return "waiver expired" if self.expired else "waived"
        if self.passed is False:
            return "failed"
        return NOT_RUN if self.reason.startswith(NOT_RUN) else "undecided"


@dataclass(frozen=True)
class ShipResult(Result):
    """A package that was written to `folder`. `selection_seal` is what a selector can be given to notice any change.

    `passed` is false when a gate says no, or its waiver is over; None where one could not be asked.
    """

    kind: ClassVar[str] = "ship"

    model: str
    folder: Path
    selection_seal: str
    licence: str | None
    variants: tuple[ShippedVariant, ...]
    gates: tuple[GateRow, ...]
    chain: tuple[ChainStep, ...]
    trials: tuple[VariantTrial, ...]
    chosen: tuple[ChosenVariant, ...]
    idle_waivers: tuple[Waiver, ...]
    size: int

    @property
    def passed(self) -> bool | None:
        return weakest(row.holds for row in self.gates)

    def content(self) -> dict[str, object]:
        rows = [{"word": row.word} for row in self.gates]
        found = super().content()
        found["gates"] = [{**said, **word} for said, word in zip(found["gates"], rows, strict=True)]
        return {"passed": self.passed, **found}
