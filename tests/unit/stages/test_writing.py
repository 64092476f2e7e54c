"""How a model that writes begins and ends, which graphs work together, and which steps are kept."""

import numpy as np
import pytest

from modelwright.stages.decode import Writing, arranged, writing_of
from modelwright.stages.decode._run import _Spread, _ties
from modelwright.stages.export import Link


def test_generation_settings_become_token_ids():
    found = writing_of(
        {
            "decoder_start_token_id": 5,
            "forced_decoder_ids": [[1, 7], [2, None]],
            "forced_bos_token_id": 9,
            "eos_token_id": [1, 2],
            "suppress_tokens": [3, -1, 2],
            "bad_words_ids": [[4], [8, 8]],
        }
    )
    assert found == Writing(start=(5, 7, 9), end=(1, 2), never=(4, 3))
    assert writing_of({}) == Writing()


def test_a_token_that_is_never_written_is_not_the_best_one():
    assert Writing(never=(1, 99)).allowed(np.array([0.0, 5.0, 1.0])).argmax() == 2


@pytest.mark.parametrize(
    ("names", "links", "kind"),
    [
        (("encoder", "decoder"), [("encoder", "decoder", "x"), ("decoder", "decoder", "p")], "encoder-decoder"),
        (("prefill", "decode"), [("prefill", "decode", "p"), ("decode", "decode", "p")], "language-model"),
        (("text", "vision"), [], "towers"),
        (("a", "b"), [], None),
        (("a",), [("a", "a", "p")], None),
    ],
)
def test_links_say_how_graphs_work_together(names, links, kind):
    found = arranged(names, [Link(one, name, other, name) for one, other, name in links])
    assert (found and found.kind) == kind


@pytest.mark.parametrize("steps", [1, 3, 4, 9, 64, 447])
def test_the_steps_that_are_kept_are_spread_over_the_text(steps):
    spread = _Spread(4)
    for number in range(steps):
        spread.offer({"step": number})
        assert len(spread._held) <= 9
    kept = [feeds["step"] for feeds in spread.kept()]
    assert len(set(kept)) == len(kept) == min(4, steps)
    assert kept[0] == 0
    assert kept[-1] >= 0.7 * (steps - 1)


def test_scores_that_rounding_may_turn_are_a_tie():
    scores = np.zeros(100)
    scores[:3] = (10.0, 9.99, 9.0)
    assert _ties(scores) == (1,)
    scores[5] = -np.inf
    assert _ties(scores) == (1,)
