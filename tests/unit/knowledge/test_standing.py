"""What follows from records: rung, scope, expiry, contradictions, promotion, and damage that is seen."""

import dataclasses
import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from modelwright._output import SEAL, sealed
from modelwright.errors import UsageError
from modelwright.evidence import RecordHead, make_record, now, read_environment
from modelwright.knowledge import (
    AXES,
    SPECIMENS,
    Evidence,
    ExperimentResult,
    ExperimentSide,
    KbFinding,
    KnowledgeBase,
    learn,
    lint,
    promote,
)

CHANGE = "+conv_activation_fusion"


class Place:
    """A knowledge base in a folder, with records that are made up."""

    def __init__(self, folder):
        self.folder = folder
        self.records = folder / "records"
        self.records.mkdir()

    @property
    def base(self):
        return KnowledgeBase(folder=self.folder, evidence=Evidence(shipped=self.records))

    def saw(self, model, family="convolutional", left=(0, 4), builds=2, versions=None, mark=None, word=None):
        """The id of a record of such a placement."""
        environment = read_environment()
        environment = dataclasses.replace(environment, packages={**environment.packages, **(versions or {})})
        sides = [
            ExperimentSide(mark or model, (mark or model,) * builds, {"Conv": 4}, {"FusedConv": n} if n else {}, 9)
            for n in left
        ]
        word = word or ("unmoved" if left[0] == left[1] else "displaced" if left[1] > left[0] else "taken")
        found = ExperimentResult(
            finding="mine",
            change=CHANGE,
            target="qnn-npu",
            measure="placement",
            model=model,
            family=family,
            word=word,
            reason="",
            base=sides[0],
            arm=sides[1],
            speed=None,
            units=(),
            simulated=True,
            environment=environment,
        )
        head = RecordHead(
            kind="experiment",
            protocol="experiment-1",
            made_at=now(),
            call=(),
            models=(),
            targets=("qnn-npu",),
            data=(),
            parameters={},
            verdict=None,
            environment=environment,
        )
        record = make_record(head, found)
        (self.records / f"{record.id}.json").write_bytes(sealed(record.text))
        return record.id

    def finding(self, *records, **other):
        base = self.base
        said = {
            "id": "mine",
            "kind": "hazard",
            "says": "it moves convolutions to the CPU",
            "measure": "placement",
            "origin": "a test",
            "status": "draft",
            "reason": "seen",
            "target": "qnn-npu",
            "changes": (CHANGE,),
            "expects": "worse",
            "evidence": records,
        }
        base.add(KbFinding(**{**said, **other}))
        return base


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


@pytest.mark.parametrize(
    ("seen", "rung"),
    [
        ([], "none"),
        ([{"model": "a", "builds": 1}], "observed"),
        ([{"model": "a"}], "confirmed"),
        ([{"model": "a"}, {"model": "b"}], "generalised"),
        ([{"model": "a"}, {"model": "the same under another name", "mark": "a"}], "confirmed"),
        ([{"model": "a"}, {"model": "b", "family": "transformer"}], "confirmed"),
        ([{"model": str(n), "family": name} for n, name in enumerate("xyz")], "cross-cutting"),
        ([{"model": "a", "left": (4, 4)}], "none"),
        ([{"model": "a", "word": "noop"}], "none"),
    ],
)
def test_the_rung_is_what_the_records_reach(place, seen, rung):
    base = place.finding(*(place.saw(**one) for one in seen))
    assert base.standing("mine").rung == rung


def test_scope_is_where_it_was_seen_and_nothing_else(place):
    scope = place.finding(place.saw("b"), place.saw("a"), place.saw("c", "dense", (2, 2))).standing("mine").scope
    assert (scope.models, scope.families, scope.targets) == (("a", "b"), ("convolutional",), ("qnn-npu",))
    assert scope.simulated


def test_another_version_of_onnxruntime_expires_it_and_a_record_with_this_one_revives_it(place):
    base = place.finding(place.saw("a", versions={"onnxruntime": "1.2.3"}), status="confirmed")
    old = base.standing("mine")
    assert (old.status, old.steers, old.prunes) == ("expired", False, False)
    assert "1.2.3" in old.why
    base.observe("mine", place.saw("a"))
    assert base.standing("mine").status == "confirmed"


def test_a_contradiction_is_kept_and_ends_pruning(place):
    base = place.finding(place.saw("a"), status="confirmed")
    assert base.standing("mine").prunes
    base.observe("mine", place.saw("b", left=(4, 0)))
    found = base.standing("mine")
    assert [seen.model for seen in found.contradicting] == ["b"]
    assert (found.steers, found.prunes, found.rung) == (True, False, "confirmed")


def test_promotion_is_refused_with_the_reason_until_the_checklist_is_met(place):
    base = place.finding(place.saw("a", builds=1))
    refused = promote(base, "mine", "confirmed", by="somebody", reason="seen", words=AXES)
    assert not refused.done
    assert [item.what for item in refused.checklist if not item.holds] == ["its evidence reaches 'confirmed'"]
    assert base.standing("mine").status == "draft"
    base.observe("mine", place.saw("a"))
    assert promote(base, "mine", "confirmed", by="somebody", reason="seen", words=AXES).done
    assert (base.standing("mine").status, base.standing("mine").why) == ("confirmed", "seen (somebody)")
    assert not promote(base, "mine", "general", by="somebody", reason="seen", words=AXES).done


def test_a_finding_without_records_gets_no_yes_that_needs_one(place):
    found = promote(place.finding(), "mine", "confirmed", by="somebody", reason="hope", words=AXES)
    held = {item.what for item in found.checklist if item.holds}
    assert held <= {"every word is known", "nothing contradicts it", "it was not retracted"} | {
        "verdicts follow from their samples, with a sentinel"
    }
    said = {item.what: item.detail for item in found.checklist}
    assert "no experiment to judge" in said["two builds of a side are one graph"]


@pytest.mark.parametrize(("by", "reason"), [("", "because"), ("me", " ")])
def test_a_decision_needs_a_person_and_a_reason(place, by, reason):
    base = place.finding()
    with pytest.raises(UsageError, match="is empty"):
        base.decide("mine", "retracted", by, reason)
    assert base.standing("mine").status == "draft"


def test_several_writers_lose_no_line_of_the_journal(place):
    place.finding()

    def write(who):
        base = KnowledgeBase(folder=place.folder)
        for turn in range(20):
            base.decide("mine", "draft", who, f"turn {turn}")

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, "abcd"))
    said = KnowledgeBase(folder=place.folder).history("mine")
    assert len([event for event in said if event.event == "decided"]) == 80


def problems(base):
    return [problem.problem for problem in lint(base, AXES, SPECIMENS).problems if problem.finding == "mine"]


def test_lint_sees_a_record_that_is_gone_or_was_edited(place):
    record = place.saw("a")
    assert problems(place.finding(record)) == []
    file = place.records / f"{record}.json"
    text = file.read_text(encoding="utf-8")
    edited = text.replace('"FusedConv":4', '"FusedConv":9')
    assert edited != text
    file.write_text(edited, encoding="utf-8")
    assert any("changed since" in one for one in problems(place.base))
    file.write_bytes(sealed(re.sub(r'"seal":"[^"]*"', f'"seal":"{SEAL}"', edited)))
    assert any("its id says" in one for one in problems(place.base))
    other = place.saw("b")
    file.write_text((place.records / f"{other}.json").read_text(encoding="utf-8"), encoding="utf-8")
    assert any("another record" in one for one in problems(place.base))
    file.unlink()
    assert any("not among" in one for one in problems(place.base))
    assert not place.base.standing("mine").steers


def test_a_record_that_says_nothing_about_a_finding_is_no_evidence_of_it(place):
    base = place.finding(place.saw("a"), changes=("+gelu_fusion",))
    assert any("says nothing about +gelu_fusion" in one for one in problems(base))
    assert base.standing("mine").rung == "none"


def test_a_placement_says_nothing_about_speed(place):
    assert place.finding(place.saw("a"), measure="speed").standing("mine").rung == "none"


def test_what_a_record_shows_is_drafted_once_and_later_records_join_it(place):
    base = place.base
    base.findings.pop("qnn-fused-conv", None)
    first = place.saw("a")
    (name,) = learn(base, first)
    assert name == "qnn-npu-conv-activation-fusion-hurts"
    assert (base.standing(name).status, base.standing(name).finding.expects) == ("draft", "worse")
    assert learn(base, first) == learn(base, place.saw("a")) == (name,)
    assert base.findings[name].evidence == (first,)
    against = place.saw("b", left=(4, 0))
    assert learn(base, against) == (name,)
    assert [seen.record for seen in base.standing(name).contradicting] == [against]
