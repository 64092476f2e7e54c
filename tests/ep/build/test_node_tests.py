"""A seeded hundred of ONNX's own node tests; `make proof` builds all that bare onnxruntime answers rightly."""

import pytest
from bench.node_tests import Bench, Ending, hundred


@pytest.fixture(scope="module")
def endings(tmp_path_factory):
    with Bench(tmp_path_factory.mktemp("nodes")) as bench:
        return [bench.try_case(case) for case in hundred()]


def test_every_one_of_a_hundred_is_built_with_the_same_answers(endings: list[Ending]) -> None:
    assert len(endings) == 100
    assert [item for item in endings if item.verdict != "same"] == []


def test_the_gate_runs_for_nearly_all_of_them(endings: list[Ending]) -> None:
    assert sum(item.passed is True for item in endings) >= 90
