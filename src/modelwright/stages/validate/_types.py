"""What the gate is asked for, and what it answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright.stages.stage import Stage
from modelwright.worker import RemoteTask

UNKNOWN = "runs; accuracy unknown: no real data"
NOT_RUN = "not run: give real data"
UNCHANGED = "unchanged"
NOTHING_ROUNDED = "fp32"
OutputKind = Literal["scores", "chances", "boxes", "detections", "embeddings", "states", "maps", "images", "other"]
CLOSE, EQUAL = "close to the export", "equal to the export"
Way = Literal["as executed", "as written"]
# How close an artifact must stay to its export: cosine of the worst output, by the precision it claims.
_COSINE = {
    "fp32": 0.9999,
    "fp16": 0.999,
    "w16a16": 0.95,
    "w8a16": 0.95,
    "w16a8": 0.90,
    "w8a8": 0.90,
    "dynamic": 0.90,
    "w4a32": 0.90,
    "w4a16": 0.90,
}
# Share of samples whose best class may change; only asked on real data, where scores are not near-ties.
_TOP1 = {"fp32": 1.0, "fp16": 0.99, "w16a16": 0.98, "w8a16": 0.95}
_TOP1_OTHER = 0.90


# Float products give the same numbers from weights in either order: for a few runs a second copy of a large model, in
# the order that is fastest or in the type that the CPU computes in, is not worth its memory.
LARGE_BYTES = 1 << 30


@dataclass(frozen=True)
class ValidateParams:
    """`samples` is how many are used at most; a large model gets fewer.

    `min_cosine`, `min_top1` and, for the tokens that a model of several graphs writes, `min_agreement` replace the
    bound of the precision when given. `outputs` says what an output is, by its name, where that is guessed wrong.
    """

    samples: int = 32
    seed: int = 1
    min_cosine: float | None = None
    min_top1: float | None = None
    min_agreement: float | None = None
    outputs: Mapping[str, OutputKind] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, kw_only=True)
class Gate(ValidateParams):
    """What the artifact claims: its precision, and that the machines it is for never saturate 8-bit products.

    `inherited`: nothing here made that precision, the model came with it, and what it costs is not asked. `calibrated`:
    so many rows of the data found the ranges, so others are judged as far as there are. `elsewhere`: another machine
    computed it, which may round floats inside, so no slice of them is asked for more than not to be destroyed.
    `compiled`: what is delivered is compiled from it, and its target is asked for the answers; how this CPU executes a
    file that nothing changed says nothing about that.
    """

    precision: str
    exact_products: bool = False
    task: str | None = None
    inherited: bool = False
    calibrated: int = 0
    elsewhere: bool = False
    compiled: bool = False


@dataclass(frozen=True)
class GateCheck:
    """One question of the gate. `detail` says what was seen, also when it passed; None is why nobody can say."""

    name: str
    passed: bool | None
    detail: str


@dataclass(frozen=True)
class Measure:
    """One way to look at an output: a share or a correlation (null: there was nothing to ask), or `decibels` above the
    error (null: nothing differs)."""

    name: str
    value: float | None
    bound: float
    passed: bool
    detail: str
    decibels: bool = False


@dataclass(frozen=True)
class OutputParity:
    """One output against the export: worst sample. `reason` says why it cannot be compared.

    Numbers have a cosine, and a `kind`, which says by which `measures` they are judged. `equal` is for what is right or
    wrong (classes, masks, words): the share that is the same, over all samples. `finite`: the export gave a number to
    compare with. `within_one`: all its numbers are between 0 and 1, as chances are. `nothing`: they are next
    to nothing on both sides, so what is not close tells nothing.
    """

    output: str
    kind: OutputKind | None
    cosine: float | None
    max_abs: float | None
    sqnr_db: float | None
    equal: float | None
    identical: bool
    reason: str | None
    measures: tuple[Measure, ...] = ()
    finite: bool = True
    within_one: bool = False
    nothing: bool = False


@dataclass(frozen=True)
class Fidelity:
    """How close one way of computing the artifact comes to the export: worst output, `sqnr_db` of its worst sample.

    `sqnr_db` is null when nothing differs; a null `cosine` comes with a reason.
    """

    cosine: float | None
    sqnr_db: float | None
    reason: str | None = None


@dataclass(frozen=True)
class Kernels:
    """What computed the artifact here: the CPU's instructions, and whether 8-bit products saturated when asked."""

    features: tuple[str, ...] | None
    saturate: bool


@dataclass(frozen=True)
class ValidateOutcome:
    """`passed` is the weakest of all checks; `worst_cosine` is that of the worst output, which decides.

    Made-up inputs can show that a quantized artifact is broken, never that it is good: then `passed` is None.

    A quantized artifact is computed twice: `as_executed` by onnxruntime's own kernels on this CPU, and `as_written`,
    which is what its graph says without the limits of these kernels. The first decides and fills `outputs`, unless
    this CPU saturates where the artifact's will not, or only other stages than quantization are judged. `engine` is
    what computed on this CPU; `seconds` is what all of it took. `held_out` of the samples were not used to calibrate;
    null where nothing was calibrated with real data. No `samples` where the target is asked instead.
    """

    passed: bool | None
    precision: str
    bound: float
    worst_cosine: float | None
    samples: int
    random_inputs: bool
    checks: tuple[GateCheck, ...]
    outputs: tuple[OutputParity, ...]
    decided_by: Way
    as_executed: Fidelity
    as_written: Fidelity
    kernels: Kernels | None
    note: str | None
    engine: str | None = None
    seconds: float | None = None
    held_out: int | None = None

    @property
    def unchanged(self) -> bool:
        """It is the file that it came from: only what onnxruntime executes of it may differ from what is written."""
        return any(check.name == UNCHANGED for check in self.checks)


def is_quantized(precision: str) -> bool:
    """Whether values were rounded to integers: what that costs depends on what is fed."""
    return not {"fp32", "fp16"}.issuperset(precision.split("+"))


def judged_as(label: str) -> str:
    """The precision by whose bounds a model is judged that measures `label`; one of several widths by the loosest."""
    if label in _COSINE:
        return label
    return "w8a8" if re.search(r"int\d|w\d|a\d|unknown", label) else "fp16"


def cosine_bound(precision: str) -> float:
    """The loosest step of a chain decides (`w8a8+fp16` is bound like `w8a8`)."""
    return min(_COSINE[word] for word in precision.split("+"))


def top1_bound(precision: str) -> float:
    return min(_TOP1.get(word, _TOP1_OTHER) for word in precision.split("+"))


VALIDATE = Stage(
    name="validate",
    version="19",
    params=Gate,
    outcome=ValidateOutcome,
    task=RemoteTask("modelwright.stages.validate._run:run_validate"),
    packages=("onnxruntime", "onnx", "numpy"),
    imports=("onnxruntime", "onnx"),
    patience_s=900.0,
    later=("compiled",),
)
