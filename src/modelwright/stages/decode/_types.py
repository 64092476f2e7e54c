"""What the float model writes, and whether an artifact writes the same: what is asked, and what is answered."""

from __future__ import annotations

from modelwright._dataclass import dataclass
from modelwright.data import DrawnRow
from modelwright.stages.decode._parts import Arrangement, Parts
from modelwright.stages.decode._writing import Writing
from modelwright.stages.export import Link
from modelwright.stages.stage import Stage
from modelwright.worker import RemoteTask

# With these, a text that differs is another answer, not rounding. Narrower types may change one token in ten.
_FAITHFUL = frozenset({"fp32", "fp16", "w16a16", "w8a16"})
_NARROW_BOUND = 0.9
FEWEST_TEXTS = 3


@dataclass(frozen=True)
class DecodeParams:
    """`texts` are written, each of at most `tokens` tokens; of each text at most `steps` are kept as samples of the
    second graph. `prompts` rows are kept for the first one, where the rows are not its inputs as they are."""

    arrangement: Arrangement
    links: tuple[Link, ...]
    writing: Writing
    texts: int = 8
    steps: int = 4
    tokens: int = 64
    prompts: int = 32

    def parts(self, first: str, second: str) -> Parts:
        names = (self.arrangement.first, self.arrangement.second)
        return Parts(self.arrangement.kind, first, second, self.links, names)


@dataclass(frozen=True)
class WrittenText:
    """What the float model writes about a sample, greedily. `ties` are other tokens that it finds as good, by place."""

    tokens: tuple[int, ...]
    ties: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class DecodeOutcome:
    """`first` and `second` are samples of the two graphs; `first` is empty where the data holds its inputs."""

    kind: str
    texts: tuple[WrittenText, ...]
    first: tuple[DrawnRow, ...]
    second: tuple[DrawnRow, ...]


@dataclass(frozen=True)
class AgreeParams:
    """`exact_products`: the machines it is for never saturate 8-bit products. `min_agreement` replaces the bound of
    the precision when given."""

    decoding: DecodeParams
    precision: str
    exact_products: bool
    min_agreement: float | None = None

    @property
    def bound(self) -> float:
        if self.min_agreement is not None:
            return self.min_agreement
        return 1.0 if _FAITHFUL.issuperset(self.precision.split("+")) else _NARROW_BOUND


@dataclass(frozen=True)
class AgreeOutcome:
    """Whether the artifact goes on as the float model does, token by token, after what that has written.

    `same_texts` are those without another token: what the artifact writes by itself is equal. `passed` is None where
    the texts cannot tell, and `detail` says why.
    """

    passed: bool | None
    detail: str
    samples: int
    same_texts: int
    tokens: int
    agreement: float | None
    bound: float


DECODE = Stage(
    name="decode",
    version="1",
    params=DecodeParams,
    outcome=DecodeOutcome,
    task=RemoteTask("modelwright.stages.decode._run:run_decode"),
    packages=("onnxruntime", "numpy", "transformers"),
    patience_s=900.0,
)
AGREE = Stage(
    name="agree",
    version="1",
    params=AgreeParams,
    outcome=AgreeOutcome,
    task=RemoteTask("modelwright.stages.decode._run:run_agree"),
    packages=("onnxruntime", "numpy", "transformers"),
    patience_s=900.0,
)
