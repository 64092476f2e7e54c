"""What is claimed, before anything is measured: one file, frozen. Its own digest gives the seeds, so nobody picks them.

`claim.toml` is what the run goes by; every statement of evidence names its digest. Unknown keys are errors.
"""

from __future__ import annotations

import dataclasses
import hashlib
import tomllib
from pathlib import Path
from typing import Literal

from modelwright import _json
from modelwright._dataclass import dataclass
from modelwright._output import SEAL, is_sealed, write_output
from modelwright._typed import MisfitError, typed
from modelwright.errors import InputError, UsageError, did_you_mean
from modelwright.judge import as_allowance
from modelwright.pipeline import toml_value
from modelwright.support._words import Effort, Level, Outcome
from modelwright.targets import parse_target
from modelwright.vocabulary import Data

CLAIM = "claim.toml"
_SEED_BYTES = 4
_AGAIN = "run it into a new folder: a claim is made once, before anything is measured"
SeedUse = Literal["weights", "inputs", "data"]


@dataclass(frozen=True, kw_only=True)
class ClaimedSource:
    """The model as it was named, and the digest of every byte that a build reads of it."""

    name: str
    digest: str
    task: str | None = None
    revision: str | None = None
    random_weights: bool = False
    trust_remote_code: bool = False


@dataclass(frozen=True)
class ClaimedFile:
    """A file of the contribution: its name, and the SHA-256 of its bytes."""

    name: str
    digest: str


@dataclass(frozen=True)
class ClaimedData:
    """The samples, and their digest; null where there was nothing to hash, as of made-up ones."""

    asked: Data
    digest: str | None = None


@dataclass(frozen=True)
class ClaimedCase:
    """One artifact: for a target, at a precision."""

    target: str
    precision: str

    def __str__(self) -> str:
        return f"{self.target} {self.precision}"


@dataclass(frozen=True, kw_only=True)
class Tolerances:
    """What is allowed beyond what the levels fix: `max_drop` of the task's metric (L3), `max_p50_ms` (L4). `faster`
    claims that the contribution is faster than the build without it (L4)."""

    max_drop: str | None = None
    max_p50_ms: float | None = None
    faster: bool = False


@dataclass(frozen=True, kw_only=True)
class Claim:
    """`recipe` and `family` are the contribution; without either the tool itself is what is claimed to do.

    - `effort`: what the contribution touches, `outcome`: what the gate must say of it
    - `cases`: what is built; every level up to `ceiling` is climbed for each
    - `data`: real samples, for L2 (inputs), L3 (labels) and calibration; `metric` scores them where no task does, and
      `script` is the file of it: who scores is part of what is claimed
    - `gate_seeds`: with so many each arm of the gate is built
    - `nonce`: what a reviewer adds to draw other seeds; nobody else has a use for it
    """

    schema_version: Literal[1] = 1
    effort: Effort
    ceiling: Level
    outcome: Outcome
    source: ClaimedSource
    cases: tuple[ClaimedCase, ...]
    recipe: ClaimedFile | None = None
    family: ClaimedFile | None = None
    data: ClaimedData | None = None
    metric: str | None = None
    script: ClaimedFile | None = None
    tolerances: Tolerances = Tolerances()
    gate_seeds: int = 5
    nonce: str | None = None

    def __post_init__(self) -> None:
        owed = "family" if self.family is not None else "recipe" if self.recipe is not None else "none"
        wrong = [
            (self.gate_seeds < 1, f"{self.gate_seeds} seeds decide nothing", "at least 1"),
            (not self.cases, "it names no target", "name at least one"),
            (len(set(self.cases)) < len(self.cases), "a target is there twice at one precision", "say each once"),
            (owed == "none" and self.effort != "none", f"its effort is {self.effort}, and there is no file", "add it"),
            (owed != "none" and self.effort in _less(owed), f"a {owed} file is more effort than {self.effort}", owed),
            (owed == "none" and self.outcome != "supported", f"{self.outcome}, without a contribution", "supported"),
        ]
        for is_wrong, cause, fix in wrong:
            if is_wrong:
                raise UsageError("this cannot be claimed", cause=cause, fix=fix)
        for case in self.cases:
            parse_target(case.target)
        as_allowance(self.tolerances.max_drop)

    @property
    def digest(self) -> str:
        """Of what it says, however its file is laid out and wherever the model and the data lie: both are content."""
        data = self.data
        if data is not None and data.digest is not None:
            data = dataclasses.replace(data, asked=dataclasses.replace(data.asked, source=data.digest))
        placed = dataclasses.replace(self, source=dataclasses.replace(self.source, name=""), data=data)
        form = _json.plain(typed(Claim, _json.plain(placed)))  # 5 and 5.0 are the same limit
        # Claims that were frozen before metrics had a file keep the digest that their evidence names.
        return _json.digest({name: value for name, value in form.items() if name != "script" or value is not None})

    @property
    def contributed(self) -> bool:
        return self.recipe is not None or self.family is not None

    @property
    def script_name(self) -> str | None:
        return None if self.script is None else self.script.name

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(case.target for case in self.cases))

    @property
    def precisions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(case.precision for case in self.cases))

    def seed(self, use: SeedUse, number: int = 0) -> int:
        """Weights and inputs never share one."""
        return seed_from(self.digest, use, number)

    def seeds(self, use: SeedUse, count: int) -> tuple[int, ...]:
        return tuple(self.seed(use, number) for number in range(count))


def seed_from(digest: str, use: SeedUse, number: int = 0) -> int:
    """A seed for a use, from any digest: a reviewer draws from a nonce of their own."""
    found = hashlib.sha256(f"{digest} {use} {number}".encode()).digest()
    return int.from_bytes(found[:_SEED_BYTES], "big") >> 1  # below 2^31: every generator takes it


def claim_text(claim: Claim) -> str:
    form = _json.plain(claim)
    lines = ["# What is claimed. Frozen: its digest is in every line of evidence, and gives the seeds.", ""]
    lines += [f"{key} = {toml_value(value)}" for key, value in form.items() if _is_line(value)]
    for key, value in form.items():
        if isinstance(value, dict):
            said = {name: _without_null(item) for name, item in value.items() if item is not None}
            lines += ["", f"[{key}]", *(f"{name} = {toml_value(item)}" for name, item in said.items())]
    return "\n".join(lines) + f"\n\n# {SEAL}\n"


def write_claim(claim: Claim, folder: Path) -> Path:
    path = folder / CLAIM
    write_output(path, claim_text(claim))
    return path


def read_claim(folder: Path) -> Claim:
    """The claim of a folder, if it is as it was frozen."""
    path = folder / CLAIM
    try:
        data = path.read_bytes()
    except OSError as error:
        why = error.strerror or str(error)
        raise InputError(f"{path} cannot be read", cause=why, fix="`wright support run` writes it") from None
    if not is_sealed(data):
        raise InputError(f"{path} was changed since it was frozen", cause="its seal does not fit", fix=_AGAIN)
    return parse_claim(data, str(path))


def parse_claim(data: bytes, name: str) -> Claim:
    try:
        return typed(Claim, tomllib.loads(data.decode()), strict=True)
    except MisfitError as error:
        where = ".".join(map(str, error.place))
        nearest = did_you_mean(str(error.place[-1]), error.known) if error.known else None
        raise InputError(f"{name}: '{where}' is not right", cause=error.why, fix=nearest or _AGAIN) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} is no claim that can be read", cause=str(error), fix=_AGAIN) from None


def _less(owed: str) -> tuple[str, ...]:
    order = ("none", "recipe", "family", "shared")
    return order[: order.index(owed)]


def _is_line(value: object) -> bool:
    return value is not None and not isinstance(value, dict)


def _without_null(value: object) -> object:
    """TOML has no null: what is not said is not there."""
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    return [_without_null(item) for item in value] if isinstance(value, list) else value
