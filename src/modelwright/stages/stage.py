"""What a stage is, apart from any run of it: everything that a plan and a key have to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from modelwright._dataclass import dataclass
from modelwright._installed import installed
from modelwright._json import plain
from modelwright.worker import RemoteTask, TaskFunction

P = TypeVar("P")
O = TypeVar("O")  # noqa: E741 - the outcome


def _nothing(_: Any) -> Mapping[str, str]:
    return {}


def _always(_: Any) -> bool:
    return True


@dataclass(frozen=True)
class Stage(Generic[P, O]):
    """A kind of work: `task` makes files and an `outcome` from models and `params`, always the same ones.

    - The task is called by name: a path for each model, `workdir` to write into, `params`, and what else a node gives.
    - `version` and the installed versions of `packages` shape the result; `host` says what else of this machine does,
      as digests.
    - `patience_s` is how long it may be silent with a model of no size; its bytes add to that.
    - `alone`: it needs a process that nothing else has used. `last`: nothing may use its process afterwards, because it
      leaves an EP there, where its outcome does not say otherwise (`leaves`); what was there before may be a stage that
      is neither. Else `imports` are modules that its task begins with, so that a child can get ready while other nodes
      run.
    - `keeps` says which outcomes are worth keeping: an answer that may be another one tomorrow is not.
    - `later` are parameters whose default is what was done before there were any: so said, they are in no key, and what
      the store has stays right.
    """

    name: str
    version: str
    params: type[P]
    outcome: type[O]
    task: RemoteTask[O] | TaskFunction[..., O]
    packages: tuple[str, ...]
    patience_s: float
    alone: bool = False
    last: bool = False
    leaves: Callable[[O], bool] = _always
    imports: tuple[str, ...] = ()
    host: Callable[[P], Mapping[str, str]] = _nothing
    keeps: Callable[[O], bool] = _always
    later: tuple[str, ...] = ()

    def __hash__(self) -> int:
        """Of what tells stages apart: they are looked up for every node of a plan."""
        return hash((self.name, self.version))

    def said(self, params: P) -> dict[str, Any]:
        """What the parameters say in a key."""
        found: dict[str, Any] = plain(params)
        usual = [name for name in self.later if found[name] == plain(getattr(self.params, name))]
        return {name: value for name, value in found.items() if name not in usual}

    def libraries(self) -> dict[str, str]:
        return {name: version for name in self.packages if (version := installed(name))}
