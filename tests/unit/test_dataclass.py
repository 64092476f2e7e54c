"""Our dataclasses mean what the standard library's mean."""

from __future__ import annotations

import concurrent.futures
import copy
import dataclasses
import inspect
import itertools
import pickle
import threading
from collections.abc import Callable
from dataclasses import KW_ONLY, field
from typing import Any, ClassVar

import pytest

from modelwright._dataclass import dataclass


def declare(decorate: Callable[..., Any]) -> dict[str, Any]:
    """The same classes, by either decorator."""

    @decorate(frozen=True)
    class Plain:
        """Text."""

        a: int
        b: str = "x"
        c: tuple[int, ...] = ()

    @decorate(frozen=True)
    class Made:
        known: ClassVar[str] = "k"
        a: list[int] = field(default_factory=list)
        b: dict[str, int] = field(default_factory=dict, hash=False)
        c: int = field(default=3, repr=False)
        d: int = field(default=4, compare=False)
        e: int = field(default=5, init=False)
        f: list[int] = field(init=False, default_factory=list)

    @decorate(frozen=True, kw_only=True)
    class Named:
        a: int
        b: int = 2

    @decorate(frozen=True)
    class Mixed:
        a: int
        _: KW_ONLY
        b: int

        def __post_init__(self) -> None:
            object.__setattr__(self, "b", self.b + 1)

    @decorate
    class Changing:
        a: int
        b: list[int] = field(default_factory=list)

    @decorate(frozen=True, eq=False)
    class Itself:
        a: int

    @decorate(frozen=True)
    class OwnEquality:
        a: int

        def __eq__(self, other: object) -> bool:
            return True

    @decorate(frozen=True)
    class Longer(Plain):  # type: ignore[misc, valid-type]
        d: int = 0

    @decorate(frozen=True, order=True)
    class Ordered:
        a: int

    @decorate(frozen=True)
    class Empty:
        pass

    return {name: value for name, value in locals().items() if isinstance(value, type)}


OURS, THEIRS = declare(dataclass), declare(dataclasses.dataclass)
CALLS: tuple[tuple[tuple[Any, ...], dict[str, Any]], ...] = (
    ((), {}),
    ((1,), {}),
    ((2,), {}),
    ((1, "y"), {}),
    ((1,), {"b": 2}),
    ((), {"a": 1, "b": 2}),
    ((), {"a": 1, "nothing": 2}),
    (([1],), {"c": 9, "d": 8}),
    ((1, 2, 3, 4, 5, 6, 7), {}),
)


def answer(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("name", OURS)
def test_values_are_made_shown_compared_and_hashed_alike(name: str) -> None:
    ours, theirs = ([answer(lambda: kinds[name](*a, **k)) for a, k in CALLS] for kinds in (OURS, THEIRS))  # noqa: B023

    def hashable(values: list[Any]) -> list[Any]:
        return [answer(lambda: hash(value) != object.__hash__(value)) for value in values]  # noqa: B023

    # The name of the place where they were declared is in neither.
    assert [repr(value).replace(".<locals>", "") for value in ours] == [
        repr(value).replace(".<locals>", "") for value in theirs
    ]
    pairs = [[a == b for a, b in itertools.product(values, repeat=2)] for values in (ours, theirs)]
    assert pairs[0] == pairs[1]
    assert hashable(ours) == hashable(theirs)


@pytest.mark.parametrize("name", OURS)
def test_fields_and_signature_are_alike(name: str) -> None:
    ours, theirs = OURS[name], THEIRS[name]
    assert str(inspect.signature(ours)) == str(inspect.signature(theirs))
    assert [(f.name, f.type) for f in dataclasses.fields(ours)] == [
        (f.name, f.type) for f in dataclasses.fields(theirs)
    ]
    assert ours.__match_args__ == theirs.__match_args__
    assert repr(ours.__dataclass_params__) == repr(theirs.__dataclass_params__)


def test_a_frozen_value_cannot_be_changed() -> None:
    value = OURS["Plain"](1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del value.a
    assert dataclasses.replace(value, a=2) == OURS["Plain"](2)
    assert dataclasses.asdict(value) == {"a": 1, "b": "x", "c": ()}
    assert copy.deepcopy(value) == value


@dataclass(frozen=True)
class Sent:
    a: int


@dataclass(frozen=True)
class Raced:
    a: int


def test_a_value_that_was_made_elsewhere_is_one_here() -> None:
    received = pickle.loads(pickle.dumps(Sent(5)))
    assert received == Sent(5)
    assert hash(received) == hash(Sent(5))


def test_threads_that_make_the_first_value_at_once_all_get_one() -> None:
    found: list[Raced] = []
    ready = threading.Barrier(8)

    def make() -> None:
        ready.wait()
        found.append(Raced(1))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [Raced(1)] * 8


def test_dataclasses_of_others_can_extend_ours() -> None:
    @dataclasses.dataclass(frozen=True)
    class Theirs(Sent):
        b: int = 2

    assert Theirs(1) == Theirs(1, 2) != Theirs(1, 3)
    assert repr(Theirs(1)).endswith("Theirs(a=1, b=2)")


def test_a_value_made_while_another_thread_declares_the_class_is_frozen_too(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Late:
        number: int

    declared, tried = threading.Event(), threading.Event()
    real = dataclasses.dataclass

    def slow(*args: Any, **kwargs: Any) -> Any:
        found = real(*args, **kwargs)
        declared.set()
        tried.wait(0.3)
        return found

    monkeypatch.setattr(dataclasses, "dataclass", slow)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first = pool.submit(Late, 1)
        declared.wait(10)
        second = pool.submit(Late, 2)
        assert [first.result(), second.result()] == [Late(1), Late(2)]
