"""The rules as a table: words that stand for one thing, and no claim about speed that a race did not decide."""

from dataclasses import replace
from pathlib import Path

import pytest

from modelwright import answers
from modelwright.answers import RULES, Complaint, TriedCure, _rules_cost, error_texts
from modelwright.answers import _diagnose as diagnosing
from modelwright.answers._gather import Gathered
from modelwright.answers._rule import CauseRule, Lab, Shown
from modelwright.judge import Judge, VerdictKind, finding
from modelwright.targets import parse_target

GATHERED = Gathered(Complaint(Path("model.onnx"), parse_target("cpu"), symptom="slow"))


def test_every_rule_has_a_word_of_its_own_and_error_texts_name_rules_that_exist():
    words = [rule.id for rule in RULES]
    assert len(set(words)) == len(words)
    assert {word for entry in error_texts() for word in entry.rules} <= set(words)
    assert {word for group in diagnosing._ONE_OF for word in group} <= set(words)


def test_what_costs_is_only_claimed_where_a_cure_was_proven():
    costs = [
        rule for rule in RULES if rule.symptom in ("slow", "memory") and rule not in diagnosing._rules_placement.RULES
    ]
    looked_at_in_a_race = {"slower-than-float"}
    assert {rule.id for rule in costs if not rule.proven} == looked_at_in_a_race


@pytest.mark.parametrize(("held", "claimed", "open_questions"), [(True, 1, 0), (None, 0, 1), (False, 0, 0)])
def test_a_race_that_a_busy_machine_does_not_decide_ends_as_cannot_tell(
    monkeypatch, tmp_path, held, claimed, open_questions
):
    cure = TriedCure("Fewer threads", "threads=2", "9 ms", "not decided", held)
    rule = CauseRule(
        "busy", "slow", "too many", lambda found: Shown(("64",)), lambda found, lab: iter((cure,)), proven=True
    )
    monkeypatch.setattr(diagnosing, "RULES", (rule,))
    concluded = diagnosing.conclude(GATHERED, Lab(tmp_path, None, lambda progress: None))
    assert (len(concluded.causes), len(concluded.undecided)) == (claimed, open_questions)
    assert all("cannot tell" in one.words and one.fix for one in concluded.undecided)


def test_a_symptom_without_a_cause_is_said(tmp_path):
    nothing = diagnosing.Concluded((), ())
    (question,) = diagnosing._unanswered(GATHERED, nothing)
    assert question.words == "no cause was found for: slow"
    assert "--op-trace" in question.fix
    found = answers.Diagnosis("m", "cpu", "slow", (), (), ("no cause was found for: slow",))
    assert found.healthy is None


@pytest.mark.parametrize(("effect", "worth"), [(0.01, False), (0.049, False), (0.05, True), (0.4, True)])
def test_a_gain_of_a_hundredth_is_no_cure_of_what_is_slow(effect, worth):
    verdict = replace(Judge().verdict(), kind=VerdictKind.IMPROVED, effect=effect)
    assert _rules_cost._worth(finding((verdict,))) is worth


def looked(**answers_):
    return tuple(answers.LookedAt(what, "", ok) for what, ok in answers_.items())


@pytest.mark.parametrize(
    ("symptom", "looks", "undecided", "words"),
    [
        (None, {"file": True}, (), "nothing wrong was found"),
        (
            None,
            {"file": True, "weights": None},
            (),
            "nothing wrong was found in what could be asked; not known: weights",
        ),
        (None, {"run": False}, ("?",), "no cause was found"),
        ("slow", {"weights": None}, ("?",), "no cause was found"),
        (None, {"file": True}, ("?",), "no cause was found"),
    ],
)
def test_what_could_not_be_asked_is_not_called_good(symptom, looks, undecided, words):
    assert answers.Diagnosis("m", "cpu", symptom, (), looked(**looks), undecided).without_cause == words
