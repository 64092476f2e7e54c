"""A seeded hundred of ONNX's own node tests; `make proof` builds all that bare onnxruntime answers rightly."""

from collections.abc import Iterator

import pytest
from bench.node_tests import PLANTED, Bench, Case, Ending, hundred


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Bench(tmp_path_factory.mktemp("nodes")) as opened:
        yield opened


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return hundred()


@pytest.fixture(scope="module")
def endings(bench: Bench, cases: list[Case]) -> list[Ending]:
    return [bench.try_case(case) for case in cases]


def test_every_one_of_a_hundred_is_built_with_the_same_answers(endings: list[Ending]) -> None:
    assert len(endings) == 100
    assert [item for item in endings if item.verdict != "same"] == []


def test_the_gate_runs_for_nearly_all_of_them(endings: list[Ending]) -> None:
    assert sum(item.passed is True for item in endings) >= 90


@pytest.mark.parametrize("word", PLANTED)
def test_what_is_made_wrong_never_passes(bench: Bench, cases: list[Case], word: str) -> None:
    assert [case.name for case in cases[:20] if bench.passes(case, word)] == []
