"""Whether there is anything to contribute: a pure function of what builds gave."""

import random

import pytest

from modelwright.support._gate import BASE, BASE_TASK, WITH, GateRun, fails_below, judge_gate, together


def _runs(arm, works, **effect):
    return [_run(arm, seed, good, **effect) for seed, good in enumerate(works)]


def _run(arm, seed, works, graph="g", content="c", precision="fp32", placement="cpu", hits=0):
    if not works:
        return GateRun(arm, seed, False, failure="index -1 is out of bounds")
    told = [{"model": word} for word in (graph, content, precision, placement)]
    return GateRun(arm, seed, True, hits, None, *told)


_ALL, _NONE = [True] * 5, [False] * 5


@pytest.mark.parametrize(("runs", "bound"), [(5, 0.46), (20, 0.14)])
def test_k_of_k_is_told_with_its_bound(runs, bound):
    assert fails_below(0, runs) < bound < fails_below(0, runs) + 0.011
    assert fails_below(runs, runs) == 1.0
    assert fails_below(1, runs) > fails_below(0, runs)


def test_the_same_result_without_it_is_no_delta():
    found = judge_gate([*_runs(BASE, _ALL), *_runs(WITH, _ALL)], (), contributed=True)
    assert found.word == "no-delta"
    assert "fails < 46 %" in found.reasons[0]


def test_fields_that_change_nothing_are_named():
    found = judge_gate([*_runs(BASE, _ALL), *_runs(WITH, _ALL)], ("optimize.passes",), contributed=True)
    assert found.word == "inert"
    assert found.inert == ("optimize.passes",)
    assert "optimize.passes" in found.reasons[-1]


@pytest.mark.parametrize(
    ("effect", "name"),
    [({"content": "d"}, "graph"), ({"precision": "w8a8"}, "precision"), ({"placement": "npu"}, "placement")],
)
def test_what_differs_by_effect_is_a_delta(effect, name):
    found = judge_gate([*_runs(BASE, _ALL), *_runs(WITH, _ALL, **effect)], ("x",), contributed=True)
    assert found.word == "delta"
    assert found.differs == (name,)


def test_a_difference_at_one_seed_of_five_is_a_difference():
    mine = [*_runs(WITH, _ALL[:4]), _run(WITH, 4, True, content="d")]
    assert judge_gate([*_runs(BASE, _ALL), *mine], (), contributed=True).word == "delta"


def test_needed_is_that_the_base_always_fails_and_the_contribution_never():
    found = judge_gate([*_runs(BASE, _NONE), *_runs(BASE_TASK, _NONE), *_runs(WITH, _ALL)], ("x",), contributed=True)
    assert found.word == "needed"
    assert "index -1 is out of bounds" in found.reasons[0]


def test_a_task_that_is_said_does_it_too():
    runs = [*_runs(BASE, _NONE), *_runs(BASE_TASK, _ALL), *_runs(WITH, _ALL)]
    assert judge_gate(runs, (), contributed=True).word == "no-delta"


@pytest.mark.parametrize("works", [1, 2, 3, 4])
def test_a_contribution_that_seeds_decide_is_flaky(works):
    mine = _runs(WITH, [True] * works + [False] * (5 - works))
    assert judge_gate([*_runs(BASE, _NONE), *mine], (), contributed=True).word == "flaky"


def test_seeds_that_give_different_graphs_are_failures():
    mine = [*_runs(WITH, _ALL[:4]), _run(WITH, 4, True, graph="other")]
    found = judge_gate([*_runs(BASE, _NONE), *mine], (), contributed=True)
    assert found.word == "flaky"
    assert "2 different graphs" in found.reasons[-1]


def test_a_base_that_works_by_chance_is_beaten_only_by_more_than_chance():
    def word(works, runs=5):
        base = _runs(BASE, [True] * works + [False] * (runs - works))
        return judge_gate([*base, *_runs(WITH, [True] * runs)], (), contributed=True).word

    assert word(1) == "delta"
    assert word(4) == "flaky"
    assert word(19, 20) == "flaky"
    assert word(10, 20) == "delta"


@pytest.mark.parametrize("base", [_ALL, _NONE])
def test_a_contribution_that_never_builds_is_blocked(base):
    assert judge_gate([*_runs(BASE, base), *_runs(WITH, _NONE)], (), contributed=True).word == "blocked"


def test_a_build_out_of_a_store_is_no_run():
    runs = [*_runs(BASE, _ALL), *_runs(WITH, _ALL[:4]), _run(WITH, 4, True, hits=2)]
    found = judge_gate(runs, (), contributed=True)
    assert found.word == "blocked"
    assert "no runs" in found.reasons[0]


@pytest.mark.parametrize(("works", "word"), [(_ALL, "no-delta"), (_NONE, "blocked"), ([True, False], "flaky")])
def test_without_a_contribution_it_says_how_the_tool_does(works, word):
    assert judge_gate(_runs(BASE, works), (), contributed=False).word == word


def _trials(chance, seeds, contributed):
    """200 models whose base works by chance, and whose contribution always does, with the same result."""
    coin = random.Random(f"{chance} {seeds} {contributed}")
    words = []
    for _ in range(200):
        runs = [run for arm in (BASE, BASE_TASK) for run in _runs(arm, [coin.random() < chance for _ in range(seeds)])]
        runs += _runs(WITH, [True] * seeds) if contributed else []
        words.append(judge_gate(runs, (), contributed=contributed).word)
    return words


@pytest.mark.parametrize("contributed", [True, False])
@pytest.mark.parametrize("seeds", [5, 20])
def test_a_base_that_works_one_time_in_fifty_is_never_no_delta(seeds, contributed):
    assert "no-delta" not in _trials(1 / 50, seeds, contributed)


@pytest.mark.parametrize("contributed", [True, False])
@pytest.mark.parametrize("seeds", [5, 20])
def test_a_base_that_works_every_other_time_is_no_delta_in_at_most_one_of_twenty(seeds, contributed):
    words = _trials(1 / 2, seeds, contributed)
    assert words.count("no-delta") <= 10
    assert words.count("inert") == 0


def _case(with_, base=_ALL, changed=(), **effect):
    return judge_gate([*_runs(BASE, base), *_runs(WITH, with_, **effect)], changed, contributed=True)


@pytest.mark.parametrize(
    ("cases", "word"),
    [
        ((_case(_ALL), _case(_ALL)), "no-delta"),
        ((_case(_ALL), _case(_ALL, content="other")), "delta"),
        ((_case(_ALL, _NONE), _case(_ALL, _NONE)), "needed"),
        ((_case(_ALL, _NONE), _case(_ALL)), "delta"),
        ((_case(_ALL, _NONE), _case(_NONE)), "blocked"),
        ((_case(_ALL, content="other"), _case([True, False, True, True, True])), "flaky"),
        ((_case(_ALL), _case(_ALL, changed=("opset",))), "inert"),
    ],
)
def test_several_cases_have_one_word(cases, word):
    found = together(dict(zip(("cpu fp32", "cpu fp16"), cases, strict=True)))
    assert found.word == word
    assert found.reasons[0].startswith("cpu fp32: without")
    assert [arm.name for arm in found.arms][:2] == ["cpu fp32: without", "cpu fp32: with"]
    assert ("whether it is built" in found.differs) == (word == "delta" and "needed" in [one.word for one in cases])
