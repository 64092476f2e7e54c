"""Dataclasses that cost little to declare: hundreds are declared at every start, and a command makes values of a few.

The standard library compiles six functions for each class, about a millisecond. Here only `__init__` is compiled, when
the first value is made; the rest is shared. Also what its fields are is found out when somebody asks.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import reprlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, kw_only=False, **others):
        """The standard library's `dataclass`, with its meaning."""
        if cls is None:
            return functools.partial(dataclass, frozen=frozen, eq=eq, kw_only=kw_only, **others)
        if others or "__init__" in vars(cls) or any(map(dataclasses.is_dataclass, cls.__bases__)):
            return dataclasses.dataclass(cls, frozen=frozen, eq=eq, kw_only=kw_only, **others)
        cls.__doc__ = cls.__doc__ or cls.__name__  # else its signature is looked up, to be the text
        declaration = _Declaration(cls, frozen, eq, kw_only)
        for name in _DECLARED:
            setattr(cls, name, _OnDemand(declaration, name))
        cls.__init__ = _init_at_first_use(cls)
        cls.__signature__ = _Signature(cls)
        for name, method in _shared(frozen, eq):
            if vars(cls).get(name) is None:
                setattr(cls, name, method)
        return cls


_DECLARED = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")
_declaring = threading.RLock()


class _Declaration:
    """What the standard library makes of a class, later. Until then defaults stand where `field(...)` was written."""

    def __init__(self, cls: Any, frozen: bool, eq: bool, kw_only: bool) -> None:
        self._cls, self._frozen, self._eq, self._kw_only = cls, frozen, eq, kw_only
        own = vars(cls)
        self._written = {
            name: value
            for name in own.get("__annotations__", ())
            if isinstance(value := own.get(name), dataclasses.Field)
        }
        for name, value in self._written.items():
            if value.default is dataclasses.MISSING:
                delattr(cls, name)
            else:
                setattr(cls, name, value.default)

    def make(self) -> None:
        """Once, whichever thread asks first."""
        cls = self._cls
        with _declaring:
            if not isinstance(vars(cls)["__dataclass_fields__"], _OnDemand):
                return
            for name, value in self._written.items():
                setattr(cls, name, value)
            dataclasses.dataclass(cls, init=False, repr=False, eq=False, kw_only=self._kw_only)
            params = cls.__dataclass_params__
            params.init, params.repr, params.eq, params.frozen = True, True, self._eq, self._frozen
            given = (field.name for field in dataclasses.fields(cls) if field.init and not field.kw_only)
            setattr(cls, _DECLARED[-1], tuple(given))


class _OnDemand:
    """An attribute of a class that comes with its declaration."""

    def __init__(self, declaration: _Declaration, name: str) -> None:
        self._declaration, self._name = declaration, name

    def __get__(self, instance: object, owner: type) -> Any:
        self._declaration.make()
        return getattr(owner, self._name)


def _init_at_first_use(cls: type) -> Callable[..., None]:
    def __init__(self: object, *args: object, **kwargs: object) -> None:
        _compile_init(cls)
        cls.__init__(self, *args, **kwargs)  # type: ignore[misc]

    return __init__


def _compile_init(cls: Any) -> None:
    with _declaring:  # while another thread declares the class, it has its fields before it is known to be frozen
        cls.__init__ = _compiled_init(cls)


def _compiled_init(cls: Any) -> Any:
    fields = dataclasses.fields(cls)
    ordered = [_parameter(field) for field in fields if field.init and not field.kw_only]
    named = [_parameter(field) for field in fields if field.init and field.kw_only]
    words = ["self", *ordered, *(["*", *named] if named else [])]
    lines = [line for field in fields for line in _assignment(field, frozen=cls.__dataclass_params__.frozen)]
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    scope = {f"default_{field.name}": field.default for field in fields}
    scope |= {f"make_{field.name}": field.default_factory for field in fields}
    scope |= {"FACTORY": _FACTORY, "assign": object.__setattr__, "__name__": cls.__module__}
    exec(f"def __init__({', '.join(words)}):\n " + "\n ".join(lines or ["pass"]), scope)
    init: Any = scope["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return init


def _parameter(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return f"{field.name}=default_{field.name}"
    return field.name if field.default_factory is dataclasses.MISSING else f"{field.name}=FACTORY"


def _assignment(field: dataclasses.Field[Any], *, frozen: bool) -> Iterator[str]:
    made = field.default_factory is not dataclasses.MISSING
    if not field.init and not made:
        return  # what it is stands on the class, or __post_init__ says it
    value = f"make_{field.name}()" if made else field.name
    if made and field.init:
        value = f"{value} if {field.name} is FACTORY else {field.name}"
    yield f"assign(self, {field.name!r}, {value})" if frozen else f"self.{field.name} = {value}"


class _Factory:
    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


class _Signature:
    """Looked at by `inspect`, which is to see the real `__init__`."""

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type) -> Any:
        _compile_init(self._cls)
        raise AttributeError("__signature__")


def _shared(frozen: bool, eq: bool) -> Iterator[tuple[str, object]]:
    yield "__repr__", _repr
    if eq:
        yield "__eq__", _eq
        yield "__hash__", _hash if frozen else None
    if frozen:
        yield "__setattr__", _refuse_to_set
        yield "__delattr__", _refuse_to_delete


@reprlib.recursive_repr()
def _repr(self: Any) -> str:
    shown = (field.name for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


def _eq(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    values = _compared(self.__class__)
    return values(self) == values(other)


def _hash(self: Any) -> int:
    return hash(_hashed(self.__class__)(self))


@functools.cache
def _compared(cls: Any) -> Callable[[Any], Any]:
    return _reader([field.name for field in dataclasses.fields(cls) if field.compare])


@functools.cache
def _hashed(cls: Any) -> Callable[[Any], Any]:
    fields = dataclasses.fields(cls)
    return _reader([field.name for field in fields if (field.compare if field.hash is None else field.hash)])


def _reader(names: list[str]) -> Callable[[Any], Any]:
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda value: tuple(getattr(value, name) for name in names)


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
