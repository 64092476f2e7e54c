"""What crosses the wire: plain JSON with digests and relative names. No path, no code, nothing of the other system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypeVar

from modelwright import errors
from modelwright._dataclass import dataclass
from modelwright._json import canonical, loads
from modelwright._typed import MisfitError, typed
from modelwright.errors import ExecutionError, WrightError
from modelwright.store import FileEntry
from modelwright.worker import ChildError, FailureKind

T = TypeVar("T")
CHUNK = 4 << 20
SMALL = 1 << 20
"""Results of so many bytes come with the answer that names them."""
"""Files cross in pieces of so many bytes, so that nobody holds a model in memory."""
# The most exact first: an error arrives as the nearest class that every machine knows.
_ERRORS: tuple[type[WrightError], ...] = (
    errors.NoRoomError,
    errors.StoreError,
    errors.UsageError,
    errors.InputError,
    errors.ExecutionError,
)


@dataclass(frozen=True)
class ShippedValue:
    """A value beside the text of a job: `form` is what it says, `files` what it is made of, by content."""

    kind: Literal["plain", "texts", "data", "source"]
    form: Any = None
    files: tuple[FileEntry, ...] = ()


@dataclass(frozen=True)
class ShippedModel:
    """A model that a node reads: all files of its artifact's folder, and which folder."""

    files: tuple[FileEntry, ...]
    folder: str = ""


@dataclass(frozen=True)
class NodeJob:
    """One node for another machine. `key` is what the result must be called there too; `topic` is where it reports."""

    id: str
    topic: str
    stage: str
    version: str
    params: Any
    inputs: Mapping[str, ShippedModel]
    given: Mapping[str, ShippedValue]
    marks: Mapping[str, str]
    label: str
    key: str
    data_bytes: int | None = None
    timeout: float | None = None
    memory: int | None = None

    @property
    def files(self) -> tuple[FileEntry, ...]:
        """Every content it needs, once."""
        every = [file for model in self.inputs.values() for file in model.files]
        every += [file for item in self.given.values() for file in item.files]
        return tuple({file.digest: file for file in every}.values())


@dataclass(frozen=True)
class VerbJob:
    """A verb for another machine: `given` are its arguments as JSON, with `received:/FOLDER/FILE` for what is in
    `folders`. `version` is the modelwright that must be there too."""

    id: str
    topic: str
    verb: str
    version: str
    given: Mapping[str, Any]
    folders: Mapping[str, tuple[FileEntry, ...]]
    data: ShippedValue | None = None
    timeout: float | None = None
    memory: int | None = None

    @property
    def files(self) -> tuple[FileEntry, ...]:
        """Every content it needs, once."""
        every = [file for files in self.folders.values() for file in files]
        every += [] if self.data is None else self.data.files
        return tuple({file.digest: file for file in every}.values())


@dataclass(frozen=True)
class VerbAnswer:
    """`whole` is what the answer is made again of, `environment` the circumstances there."""

    whole: Any
    environment: Mapping[str, Any]


@dataclass(frozen=True)
class NodeAnswer:
    """What became of a node there: `meta` are its maker's notes, `kept` is false for what is worth nothing later."""

    key: str
    produced: bool
    kept: bool
    files: tuple[FileEntry, ...]
    meta: Mapping[str, Any]


@dataclass(frozen=True)
class WireError:
    """`child` says how a child process ended there."""

    kind: str
    problem: str
    cause: str
    fix: str
    child: FailureKind | None = None

    @classmethod
    def of(cls, error: WrightError) -> WireError:
        kind = next((known for known in _ERRORS if isinstance(error, known)), ExecutionError)
        child = error.kind if isinstance(error, ChildError) else None
        return cls(kind.__name__, error.problem, error.cause, error.fix, child)

    def error(self) -> WrightError:
        if self.child is not None:
            return ChildError(self.problem, cause=self.cause, fix=self.fix, kind=self.child)
        kind = next((known for known in _ERRORS if known.__name__ == self.kind), ExecutionError)
        return kind(self.problem, cause=self.cause, fix=self.fix)


@dataclass(frozen=True)
class Reply:
    """Of a worker: an answer or an error, and which worker it was."""

    worker: str
    answer: Any = None
    error: WireError | None = None


@dataclass(frozen=True, eq=False)
class Delivery:
    """A reply, and with it what is small of what it names, by digest: what a machine made is here when it is known."""

    reply: Reply
    contents: Mapping[str, bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Report:
    """What a worker says while it works: progress, or that it `lacks` content."""

    job: str
    worker: str
    message: str | None = None
    fraction: float | None = None
    stage: str | None = None
    label: str | None = None
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorkerFacts:
    """What a machine is: the versions that shape results, its CPU as a mark of keys, what runs there at once, and which
    of its targets are only simulated."""

    name: str
    system: str
    packages: Mapping[str, str]
    cpu: str
    slots: int
    trusts: bool
    version: str
    keys: tuple[str, ...] = field(default=(), repr=False)
    simulated: tuple[str, ...] = ()


def written(value: object) -> str:
    return canonical(value).decode()


def read(kind: type[T], text: object) -> T:
    """A value from the wire; anything that is not of the kind is the fault of whoever sent it."""
    try:
        if not isinstance(text, str):
            raise ValueError(f"it is {type(text).__name__}, not text")
        return typed(kind, loads(text), strict=True)
    except (ValueError, MisfitError) as error:
        raise forged(f"what came is no {kind.__name__}: {error}") from None


def forged(why: str) -> ExecutionError:
    """Nothing of it is kept."""
    return ExecutionError(
        "a machine of the cluster sent something that cannot be true",
        cause=why,
        fix="take that machine out of the cluster and look at it; nothing of what it sent was kept",
    )
