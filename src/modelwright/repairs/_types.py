"""What a repair is asked for, and what it found."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright.judge import Allowance, VerdictKind
from modelwright.stages.quantize import QuantizeParams, TensorOverride
from modelwright.targets import Target
from modelwright.vocabulary import Data, Result

Level = Literal["16bit", "float", "free"]
RaiseTo = Literal["auto", "16bit", "float"]
DEFAULT_FIX_SAMPLES = 64


@dataclass(frozen=True)
class FixOptions:
    """What must hold afterwards. Half of the samples choose, the other half check.

    `target_sqnr` in dB for the worst output; `target_drop` for the metric: `metric` is file.py:function, or else the
    share of samples whose `label` is the best class.
    """

    data: Data = field(default_factory=Data)
    target_sqnr: float | None = None
    target_drop: Allowance | None = None
    metric: str | None = None
    target: Target | None = None
    raise_to: RaiseTo = "auto"
    max_builds: int = 60
    budget_s: float | None = None

    @property
    def samples(self) -> int:
        return self.data.samples or DEFAULT_FIX_SAMPLES


@dataclass(frozen=True)
class Promotion:
    """What gets more bits, and what that means for the quantizer: a tensor, the weights of a node, a node
    without any, or all nodes of an operator.

    `node` and `op_type` are the operator that makes the tensor. Of all nodes of an operator, `tensor` is its name and
    `node` is empty. A setting of the whole model costs nothing: then `tensor`
    names the parameter of the quantizer, and `value` is what it becomes.
    """

    tensor: str
    node: str
    what: Literal["activation", "weight", "node", "operator", "setting"]
    level: Level
    origin_share: float
    excludes: tuple[str, ...]
    overrides: tuple[TensorOverride, ...]
    value: bool | str | None = None
    op_type: str = ""


@dataclass(frozen=True)
class FixScore:
    """On one half of the samples. `sqnr_db` is null when nothing differs, or with a problem.

    `sqnr_low_db` is what other samples will keep with 95 % confidence. Of a metric: `verdict` is whether these samples
    prove that no more is lost than allowed, `carried` whether so many could if nothing were lost, and `needed` how many
    decide it if what is lost is what was seen; null where no number does, or where `unbounded` says why.
    """

    samples: int
    sqnr_db: float | None
    metric: float | None
    problem: str | None = None
    sqnr_low_db: float | None = None
    verdict: VerdictKind | None = None
    carried: bool = True
    needed: int | None = None
    unbounded: str | None = None


@dataclass(frozen=True)
class FixRow:
    """One model in the table: how good, how large, how fast, and in how many pieces on the target."""

    name: str
    raised: int
    file_bytes: int
    choose: FixScore | None
    check: FixScore | None
    p50_ms: float | None = None
    partitions: int | None = None
    left_nodes: int | None = None
    quantize: QuantizeParams | None = None


@dataclass(frozen=True)
class FixResult:
    """The smallest set that was found, and the evidence. A build with `quantize` finds its stages in the store.

    - `status` is met, already_met, not_met, inconclusive when the target holds on samples too few to prove it, or
      unfinished when somebody ended the search: then `rows` are what was tried.
    - `note` says when the repair leaves little of what quantizing was for.
    - `minimal`: it was built without each of its parts in turn, and none of these was good enough.
    - `surely`: what was chosen had to be proven by the samples that chose; not where so few never can.
    - `front`: of all that was tried, the models that no other one beats in both size and accuracy on the samples that
      chose, the smallest first. A build with the `quantize` of one finds it in the store.
    - of the `builds`, `from_store` had been made before.
    """

    status: VerdictKind
    reason: str | None
    note: str | None
    wanted: str
    metric: str | None
    target: str
    raised: tuple[Promotion, ...]
    covered_share: float
    quantize: QuantizeParams
    rows: tuple[FixRow, ...]
    builds: int
    choose_samples: int
    check_samples: int
    random_data: bool
    strategies: tuple[str, ...]
    from_store: int = 0
    minimal: bool = False
    surely: bool = True
    front: tuple[FixRow, ...] = ()

    @property
    def met(self) -> bool:
        return self.status in (VerdictKind.MET, VerdictKind.ALREADY_MET)

    @property
    def offered(self) -> bool:
        """Is it worth having: met, or as good as asked on all samples, of which there were too few to prove it?"""
        return self.met or self.status is VerdictKind.INCONCLUSIVE


class FixInterrupted(KeyboardInterrupt):
    """Ctrl-C; `partial` holds what was tried until then. The same search goes on from there."""

    partial: FixResult


@dataclass(frozen=True)
class Repaired(Result):
    """What a repair found, and where the build was written."""

    kind: ClassVar[str] = "repair"

    result: FixResult
    folder: Path | None
