"""Where every answer passes through on its way to whoever asked: it is kept as a record."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from modelwright._call import spoken
from modelwright._dataclass import dataclass
from modelwright._json import plain
from modelwright._lazy import lazy
from modelwright.api._kinds import Facts, facts_of
from modelwright.api._opened import opened
from modelwright.errors import WrightError
from modelwright.vocabulary import Result

if TYPE_CHECKING:
    import logging

    from modelwright import evidence
    from modelwright.api import _on
    from modelwright.store import Store
else:
    _on = lazy("modelwright.api._on")
    evidence = lazy("modelwright.evidence")
    logging = lazy("logging")

R = TypeVar("R", bound=Result)
P = ParamSpec("P")
_NOT_SAID = ("store", "on_progress", "watch")
_LONGEST = 1000
_GROUPS = ("kb", "support")


@dataclass(frozen=True)
class _Asked:
    """A verb at work: every argument with its default, and the call as somebody would write it."""

    arguments: Mapping[str, Any] = field(default_factory=dict)
    call: str = ""
    environment: evidence.Environment | None = None
    on: str | None = None


_asked: ContextVar[_Asked | None] = ContextVar("asked", default=None)


def verb(function: Callable[P, R]) -> Callable[P, R]:
    """Remembers what was asked, for the record of the answer."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def asked(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = signature.bind(*args, **kwargs)
        words = [repr(value) for value in args] + [f"{name}={value!r}" for name, value in _said(kwargs).items()]
        call = f"modelwright.{_spelt(function)}({', '.join(words)})"
        bound.apply_defaults()
        before = _asked.set(_Asked(bound.arguments, call[:_LONGEST]))
        try:
            if bound.arguments.get("on") is not None:
                return cast(R, _lent(function.__name__, bound.arguments))
            return function(*args, **kwargs)
        finally:
            _asked.reset(before)

    return asked


def _spelt(function: Callable[..., Any]) -> str:
    """As somebody calls it: some verbs stand together under a name."""
    group = function.__module__.rpartition(".")[2]
    return f"{group}.{function.__name__}" if group in _GROUPS else function.__name__


def _lent(name: str, arguments: Mapping[str, Any]) -> Result:
    """Done on another machine: the answer is kept here, with what that machine is."""
    found = _on.asked_elsewhere(name, arguments)
    asked = _asked.get() or _Asked()
    _asked.set(replace(asked, environment=found.environment, on=found.machine))
    object.__setattr__(found.result, "measured_on", found.machine)
    result = kept(found.result)
    if found.error is not None:
        found.error.partial = result  # type: ignore[attr-defined]
        raise found.error
    return result


def kept(result: R, *, refs: tuple[str, ...] = ()) -> R:
    """The answer, kept. What keeps it from being kept is said; it never costs the answer."""
    try:
        _keep(result, refs)
    except (WrightError, ValueError) as error:  # JSON has no NaN
        logging.getLogger(__name__).warning("this answer is not kept as a record: %s", error)
    except KeyboardInterrupt as stop:
        stop.partial = result  # type: ignore[attr-defined]
        raise
    return result


def _keep(result: Result, refs: tuple[str, ...]) -> None:
    asked = _asked.get() or _Asked()
    facts = facts_of(result, asked.arguments)
    if facts is None:
        return
    record = evidence.make_record(_head(result, facts, asked, refs), result)
    object.__setattr__(result, "record_text", record.text)
    store: Store | None = asked.arguments.get("store")
    with opened(store) as place:
        evidence.keep_record(place, record)
    object.__setattr__(result, "record_id", record.id)


def _head(result: Result, facts: Facts, asked: _Asked, refs: tuple[str, ...]) -> evidence.RecordHead:
    words = spoken.get()
    return evidence.RecordHead(
        kind=result.kind,
        protocol=facts.protocol,
        made_at=evidence.now(),
        call=("wright", *words) if words else (asked.call,),
        models=facts.models,
        targets=facts.targets,
        data=facts.data,
        parameters={name: _json_form(value) for name, value in _said(asked.arguments).items()},
        verdict=facts.verdict,
        environment=asked.environment or getattr(result, "environment", None) or evidence.read_environment(),
        refs=refs,
        on=asked.on,
    )


def _said(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in _NOT_SAID}


def _json_form(value: Any) -> Any:
    """As it was said: a target by its name, a finished build by what it was made from."""
    if isinstance(value, list | tuple):
        return [_json_form(item) for item in value]
    if type(value).__name__ in ("Target", "Builds", "BuildResult"):
        return str(getattr(value, "source", value)) if not isinstance(value, Result) else value.kind
    try:
        return plain(value)
    except TypeError:  # a number of numpy, for example
        return str(value)
