"""What is claimed: frozen, typed, and the only source of seeds."""

import hashlib
from dataclasses import replace

import pytest

from modelwright.errors import InputError, UsageError
from modelwright.support import (
    CLAIM,
    Claim,
    ClaimedCase,
    ClaimedData,
    ClaimedFile,
    ClaimedSource,
    Contribution,
    Tolerances,
    claim_text,
    frozen,
    parse_claim,
    read_claim,
    write_claim,
)
from modelwright.vocabulary import Data

_SHA = "ab" * 32


def _claim(**changes):
    given = {
        "effort": "none",
        "ceiling": "L2",
        "outcome": "supported",
        "source": ClaimedSource(name="tiny", digest=_SHA),
        "cases": (ClaimedCase("cpu", "fp32"), ClaimedCase("qnn-npu:soc=x-elite", "w8a16")),
        **changes,
    }
    return Claim(**given)


def test_a_claim_reads_back_as_it_was_frozen(tmp_path):
    data = Data("rows.npz", seed=3, samples=8, mean=(0.5, 0.5), columns={"text column": "a"}, size=(8, 8))
    claim = _claim(
        effort="recipe",
        outcome="delta",
        recipe=ClaimedFile("r.toml", _SHA),
        data=ClaimedData(data, _SHA),
        tolerances=Tolerances(max_drop="1%", max_p50_ms=5),
    )
    write_claim(claim, tmp_path)
    found = read_claim(tmp_path)
    assert found == claim
    assert found.digest == claim.digest


def test_a_limit_of_5_and_of_5_0_are_one_claim():
    assert _claim(tolerances=Tolerances(max_p50_ms=5)).digest == _claim(tolerances=Tolerances(max_p50_ms=5.0)).digest


def test_a_claim_that_was_edited_is_refused(tmp_path):
    path = write_claim(_claim(), tmp_path)
    path.write_text(path.read_text().replace('"L2"', '"L1"'))
    with pytest.raises(InputError, match="was changed since it was frozen"):
        read_claim(tmp_path)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('ceiling = "L2"', 'ceiling = "L9"', "ceiling"),
        ('ceiling = "L2"', 'cieling = "L2"', "cieling"),
        ("random_weights = false", "randm_weights = false", "randm_weights"),
        ('effort = "none"', 'effort = "lots"', "effort"),
        ("[source]", "[source", "no claim"),
    ],
)
def test_every_word_of_a_claim_is_known(before, after, said):
    text = claim_text(_claim())
    assert before in text
    with pytest.raises(InputError) as found:
        parse_claim(text.replace(before, after).encode(), CLAIM)
    assert said in found.value.problem


@pytest.mark.parametrize(
    "changes",
    [
        {"cases": ()},
        {"cases": (ClaimedCase("cpu", "fp32"),) * 2},
        {"cases": (ClaimedCase("no-such-target", "fp32"),)},
        {"effort": "recipe"},
        {"outcome": "delta"},
        {"effort": "none", "recipe": ClaimedFile("r.toml", _SHA)},
        {"effort": "recipe", "family": ClaimedFile("f.py", _SHA), "outcome": "needed"},
        {"tolerances": Tolerances(max_drop="much")},
    ],
)
def test_what_contradicts_itself_cannot_be_claimed(changes):
    with pytest.raises(UsageError):
        _claim(**changes)


def test_seeds_follow_from_the_claim_and_uses_do_not_share_them():
    claim = _claim()
    seeds = [claim.seed(use, number) for use in ("weights", "inputs", "data") for number in range(20)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert seeds == [_claim().seed(use, number) for use in ("weights", "inputs", "data") for number in range(20)]
    other = replace(claim, ceiling="L3")
    assert not set(seeds) & set(other.seeds("inputs", 20))


def test_what_is_contributed_goes_beside_the_claim_and_replaces_nothing(tmp_path):
    recipe = tmp_path / "mine" / "r.toml"
    recipe.parent.mkdir()
    recipe.write_text("[optimize]\n")
    claim = _claim(effort="recipe", outcome="delta", recipe=ClaimedFile("r.toml", sha256(recipe)))
    frozen(claim, tmp_path / "out", Contribution(recipe))
    assert (tmp_path / "out" / "r.toml").read_text() == recipe.read_text()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "r.toml").write_text("theirs")
    with pytest.raises(UsageError, match="another file"):
        frozen(claim, tmp_path / "taken", Contribution(recipe))
    assert (tmp_path / "taken" / "r.toml").read_text() == "theirs"
    assert not (tmp_path / "taken" / CLAIM).exists()


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()
