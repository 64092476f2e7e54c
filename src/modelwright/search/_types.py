"""What a search is asked for, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

from modelwright._dataclass import dataclass
from modelwright.errors import ExecutionError
from modelwright.evidence import Environment
from modelwright.judge import Allowance, Finding
from modelwright.knowledge import Insight
from modelwright.measure import InputChoice
from modelwright.models import FileDigest
from modelwright.search._latency import LatencyCheck
from modelwright.search._limits import TuneLimits
from modelwright.search._timeline import TimelineStep
from modelwright.vocabulary import Result

TUNE_PROTOCOL = "tune-1"


@dataclass(frozen=True)
class TuneOptions:
    """`axes` are searched (all where none is said), without those in `forbid`, which may name single changes too.

    `only` names the changes that are tried, where not all shall be; `add` are options of the EP and entries of the
    session that no axis has. `max_drop` is what a variant of another precision may lose on labelled data, by the metric
    of `task`. `again` forgets what an earlier search measured; what it built is in the store all the same.
    """

    limits: TuneLimits
    axes: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    inputs: InputChoice = field(default_factory=InputChoice)
    threads: int | None = None
    max_drop: Allowance | None = None
    task: str | None = None
    wait: bool = True
    again: bool = False


@dataclass(frozen=True)
class TuneRow:
    """One variant. `word` is a verdict of the judge (`improved`, `noop`, …) or why it was not measured; the interval is
    that of the screening, except for the one that was confirmed. `lost` is what another precision loses of the metric,
    where that was measured."""

    label: str
    word: str
    reason: str
    effect: float | None = None
    low: float | None = None
    high: float | None = None
    units: int = 0
    size: int | None = None
    left_nodes: int | None = None
    peak_bytes: int | None = None
    lost: float | None = None


@dataclass(frozen=True)
class TuneFront:
    """`axes` is what variants are weighed by, `labels` are those on the front; `reason` says why there is no choice."""

    axes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    reason: str | None = None


@dataclass(frozen=True)
class TuneResult(Result):
    """`champion` is the baseline where nothing is proven to be better. Only what was found on its fresh build and fresh
    units (`finding`) is claimed about it. `settings` are those of its session, as an arm of a comparison takes them.
    `fits` is whether it keeps `max_memory`, None where none was asked for, `latency` what it takes of that which was;
    `needed_s` is the budget that would do where the budget ended the search. `family` and `mark` are the class of the
    model and the model by content; `insights` what was known beforehand;
    `precision` is the baseline's, `operators` are the champion's, by name. `front` is what there is to choose
    from, `call` the command as it was typed; `combined` says what was tried of combinations that are too many
    to try all of them; `timeline` is what the time was spent on, `graph` are the operators of which the baseline and
    the champion do not have as many, by name: how many each has."""

    kind: ClassVar[str] = "tune"

    status: Literal["complete", "interrupted", "crashed"]
    model: str
    target: str
    files: tuple[FileDigest, ...]
    champion: str
    reason: str
    finding: Finding | None
    sentence: str
    timed: bool
    rows: tuple[TuneRow, ...]
    settings: Mapping[str, str]
    fits: bool | None
    needed_s: float | None
    recipe: str
    limits: TuneLimits
    protocol: str
    seed: int
    units: int
    spent_s: float
    resumed: int
    reproducible: bool | None
    environment: Environment
    family: str | None = None
    mark: str | None = None
    insights: tuple[Insight, ...] = ()
    latency: LatencyCheck | None = None
    precision: str | None = None
    operators: tuple[str, ...] = ()
    front: TuneFront = field(default_factory=TuneFront)
    call: tuple[str, ...] = ()
    combined: str | None = None
    timeline: tuple[TimelineStep, ...] = ()
    graph: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    folder: str | None = None


class DeviceLostError(ExecutionError):
    """The device stopped to work; `partial` is what was found until then."""

    partial: TuneResult


class TuneInterrupted(KeyboardInterrupt):
    """Ctrl-C; `partial` is where the search stood. The same call goes on from there."""

    partial: TuneResult
