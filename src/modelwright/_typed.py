"""Values from their plain JSON form, with their types: the way back from `modelwright._json.plain`."""

from __future__ import annotations

import dataclasses
import enum
import functools
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeVar

T = TypeVar("T")
Place = tuple[str | int, ...]
Reader = Callable[[Any, Place, bool], Any]
_FORMS = (list, tuple, set, frozenset)
_LISTS = (*_FORMS, Sequence)
_TABLES = (dict, Mapping)
_SIMPLE = frozenset({str, int, float, bool, types.NoneType})


class MisfitError(ValueError):
    """A form that is of another type than asked for. `known` are the keys there are, where one is unknown."""

    def __init__(self, place: Place, why: str, known: tuple[str, ...] = ()) -> None:
        super().__init__(f"{'.'.join(map(str, place)) or 'it'}: {why}")
        self.place, self.why, self.known = place, why, known


def typed(kind: type[T], form: object, *, strict: bool = False) -> T:
    """`form` as a value of `kind`. Keys that nobody knows are left out, or with `strict` a MisfitError."""
    return typing.cast(T, _read(kind, form, (), strict))


def _read(kind: Any, form: Any, place: Place, strict: bool) -> Any:
    return _reader(kind)(form, place, strict)


@functools.cache
def _reader(kind: Any) -> Reader:
    """How a form of this kind is read: found once, since large plans read the same kinds thousands of times."""
    origin, kinds = typing.get_origin(kind) or kind, typing.get_args(kind)
    if kind is Any or kind is object or isinstance(kind, TypeVar):
        return _as_it_is
    if origin in _LISTS:
        fixed = origin is tuple and bool(kinds) and kinds[-1] is not Ellipsis
        make = tuple if origin is Sequence else origin
        each = kinds[0] if kinds else Any
        return functools.partial(_row, kinds) if fixed else functools.partial(_sequence, make, each)
    if origin in _TABLES:
        return functools.partial(_table, kinds)
    if origin is typing.Annotated:
        return _reader(kind.__origin__)
    if origin is typing.Literal:
        return functools.partial(_one_of, kinds)
    if origin in (typing.Union, types.UnionType):
        others = tuple(kind for kind in kinds if kind is not types.NoneType)
        only = _reader(others[0]) if len(others) == 1 else None
        return functools.partial(_any_of, others, only, len(others) < len(kinds))
    return functools.partial(_dataclass if dataclasses.is_dataclass(origin) else _single, origin)


def _as_it_is(form: Any, place: Place, strict: bool) -> Any:
    return form


def _sequence(make: Any, kind: Any, form: Any, place: Place, strict: bool) -> Any:
    """As many as there are, all of one kind."""
    _require_list(form, place)
    read = _reader(kind)
    return make([read(item, (*place, number), strict) for number, item in enumerate(form)])


def _row(kinds: tuple[Any, ...], form: Any, place: Place, strict: bool) -> tuple[Any, ...]:
    """So many, each of its own kind."""
    _require_list(form, place)
    if len(form) != len(kinds):
        raise MisfitError(place, f"it should have {len(kinds)} items, not {len(form)}")
    found = enumerate(zip(kinds, form, strict=True))
    return tuple(_read(kind, item, (*place, number), strict) for number, (kind, item) in found)


def _require_list(form: Any, place: Place) -> None:
    if not isinstance(form, _FORMS):
        raise MisfitError(place, f"it should be a list, not {_shown(form)}")


def _table(kinds: tuple[Any, ...], form: Any, place: Place, strict: bool) -> dict[Any, Any]:
    if not isinstance(form, Mapping):
        raise MisfitError(place, f"it should be a table, not {_shown(form)}")
    key_kind, kind = kinds or (Any, Any)
    return {_read(key_kind, key, place, strict): _read(kind, item, (*place, key), strict) for key, item in form.items()}


def _one_of(words: tuple[Any, ...], form: Any, place: Place, strict: bool) -> Any:
    if not any(form == word and type(form) is type(word) for word in words):
        raise MisfitError(place, f"it should be {' or '.join(map(repr, words))}, not {_shown(form)}")
    return form


def _any_of(kinds: tuple[Any, ...], only: Reader | None, null: bool, form: Any, place: Place, strict: bool) -> Any:
    """The kind that fits without a change, else the first that fits at all."""
    if form is None and null:
        return None
    if only is not None:
        return only(form, place, strict)
    if type(form) in kinds:
        return form
    why = []
    for kind in kinds:
        try:
            return _read(kind, form, place, strict)
        except MisfitError as error:
            why.append(error.why)
    raise MisfitError(place, "; ".join(dict.fromkeys(why)))


def _dataclass(kind: Any, form: Any, place: Place, strict: bool) -> Any:
    if isinstance(form, kind):
        return form
    if not isinstance(form, Mapping):
        raise MisfitError(place, f"it should be a table, not {_shown(form)}")
    readers, required = _fields(kind)
    if strict:
        for key in form:
            if key not in readers:
                raise MisfitError((*place, key), "unknown key", tuple(readers))
    for name in required:
        if name not in form:
            raise MisfitError((*place, name), "it is missing")
    return kind(
        **{
            name: item if type(item := form[name]) in fitting else read(item, (*place, name), strict)
            for name, (read, fitting) in readers.items()
            if name in form
        }
    )


@functools.cache
def _fields(kind: Any) -> tuple[dict[str, tuple[Reader, frozenset[type]]], tuple[str, ...]]:
    """What its `__init__` takes, each with how it is read and which types need no reading, and what must be there."""
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = [field for field in dataclasses.fields(kind) if field.init]
    nothing = dataclasses.MISSING
    required = (field.name for field in fields if field.default is nothing and field.default_factory is nothing)
    known = {field.name: (_reader(hints[field.name]), _fitting(hints[field.name])) for field in fields}
    return known, tuple(required)


def _fitting(kind: Any) -> frozenset[type]:
    """Types of which every value is one of this kind as it is."""
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return frozenset(typing.get_args(kind) if union else (kind,)) & _SIMPLE


def _single(kind: Any, form: Any, place: Place, strict: bool) -> Any:
    if type(form) is kind:
        return form
    number = isinstance(form, int | float) and not isinstance(form, bool)
    if kind is float and number:
        return float(form)
    if kind is int and number and (isinstance(form, int) or form.is_integer()):
        return int(form)
    if kind in (int, float, bool) or not isinstance(kind, type) or isinstance(form, bool):
        fits = isinstance(kind, type) and type(form) is kind
    elif issubclass(kind, enum.Enum | PurePath):
        return _made(kind, form, place)
    else:
        fits = isinstance(form, kind)
    if not fits:
        raise MisfitError(place, f"it should be {_WORDS.get(kind, str(kind))}, not {_shown(form)}")
    return form


def _made(kind: Any, form: Any, place: Place) -> Any:
    try:
        return kind(form)
    except (ValueError, TypeError) as error:
        raise MisfitError(place, str(error)) from None


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text", types.NoneType: "null"}


def _shown(form: object) -> str:
    text = repr(form)
    return text if len(text) <= 60 else f"{text[:57]}..."
