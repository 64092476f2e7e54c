"""The search as events and instructions, on a device whose truth is known."""

import random
from dataclasses import replace

import pytest

from modelwright.judge import VerdictKind
from modelwright.search._answer import _row
from modelwright.search._combining import together
from modelwright.search._events import (
    DeviceCrashed,
    DeviceProbed,
    KnownEvents,
    MakeVariants,
    ProbeDevice,
    RebuildVariant,
    SearchDone,
    TakeUnit,
    TryVariants,
    UnitTaken,
    VariantDropped,
    VariantMade,
    VariantRebuilt,
    VariantTried,
)
from modelwright.search._latency import within
from modelwright.search._limits import TuneLimits
from modelwright.search._machine import TuneSearch
from modelwright.search._screening import HOPELESS, MOST_UNITS
from modelwright.search._variant import BASELINE, AxisChange, Variant

UNIT_S = 2.0


def change(axis, value="1"):
    return Variant((AxisChange(axis, value),))


class FakeDevice:
    """Times of 10 ms over the factor of each change, with a little noise that follows from a seed."""

    def __init__(self, factors, seed=0, noise=0.003):
        self.factors, self.noise = factors, noise
        self.random = random.Random(seed)
        self.identities, self.left, self.dropped, self.timed = {}, {}, {}, True
        self.sizes, self.peaks = {}, {}
        self.graphs, self.breaking, self.dead_after = {}, set(), None
        self.crashes = 0

    def speed(self, variant):
        speed = 1.0
        for one in variant.changes:
            speed *= self.factors.get(one.axis, 1.0)
        return speed

    def leg(self, speed):
        offset = 1 + self.noise * self.random.gauss(0, 1)
        return [[10 / speed * offset * (1 + self.random.random() / 500) for _ in range(6)] for _ in range(4)]

    def do(self, instruction, search):
        if isinstance(instruction, MakeVariants):
            for one in instruction.variants:
                if one.label in self.dropped:
                    yield VariantDropped(one.label, "gate", self.dropped[one.label])
                else:
                    size = self.sizes.get(one.label, 100)
                    graph = self.graphs.get(one.label, one.label)
                    yield VariantMade(one.label, self.identities.get(one.label, one.label), size, graph=graph)
        elif isinstance(instruction, ProbeDevice):
            yield DeviceProbed(instruction.label, "no answer" if self.crashes == self.dead_after else None)
        elif isinstance(instruction, TryVariants):
            for label in instruction.labels:
                if label in self.breaking:
                    self.crashes += 1
                    yield DeviceCrashed(label, "SIGABRT")
                    return
                left = self.left.get(label, 0 if self.left else None)
                yield VariantTried(label, left, timed=self.timed, peak_bytes=self.peaks.get(label))
        elif isinstance(instruction, RebuildVariant):
            yield VariantRebuilt(instruction.label, "x")
        else:
            variant = Variant() if instruction.label is None else search.contenders[instruction.label].variant
            base, arm = self.leg(1.0), self.leg(self.speed(variant))
            yield UnitTaken(instruction.label, instruction.base_first, base, arm, instruction.confirming, UNIT_S)


def run(variants, device, *, budget_s=2000.0, seed=1, events=(), **limits):
    search, known = TuneSearch(variants, TuneLimits(budget_s, **limits), seed), KnownEvents(events)
    happened = []
    while not isinstance(done := search.next(), SearchDone):
        before = known.take(done)
        for event in device.do(done, search) if before is None else [before]:
            search.tell(event)
            happened.append(event)
    return search, done, happened


def test_the_best_change_wins_and_is_judged_on_fresh_units_alone():
    search, done, happened = run(
        [change("fast"), change("slow"), change("null")], FakeDevice({"fast": 1.1, "slow": 0.9})
    )
    assert done.champion == "fast=1"
    assert search.finding.kind is VerdictKind.IMPROVED
    after = happened[next(place for place, event in enumerate(happened) if isinstance(event, VariantRebuilt)) :]
    units = [event for event in after if isinstance(event, UnitTaken) and event.label == "fast=1"]
    assert search.finding.by[0].units == len(units)


def test_without_a_faster_variant_the_baseline_stays():
    search, done, _ = run([change("null"), change("slow")], FakeDevice({"slow": 0.95}))
    assert (done.champion, search.finding) == (BASELINE, None)
    assert "no variant was seen to be faster" in done.reason


def test_what_won_alone_is_tried_together():
    _, done, _ = run([change("a"), change("b"), change("c")], FakeDevice({"a": 1.06, "b": 1.08}))
    assert done.champion == "a=1 b=1"


def test_a_change_that_only_spoils_the_others_is_left_out():
    class Quarrel(FakeDevice):
        def speed(self, variant):
            axes = {one.axis for one in variant.changes}
            return super().speed(variant) * (0.9 if {"a", "b"} <= axes else 1.0)

    _, done, _ = run([change("a"), change("b"), change("c")], Quarrel({"a": 1.06, "b": 1.07, "c": 1.05}))
    assert done.champion in ("a=1 c=1", "b=1 c=1")


def test_fourteen_variants_of_which_nine_are_one_graph_make_five_arms():
    variants = [change(f"v{place}") for place in range(14)]
    device = FakeDevice({})
    device.identities = {f"v{place}=1": "same" for place in range(5, 14)} | {BASELINE: "base"}
    search, _, happened = run([*variants[:4], *variants[5:]], device)
    assert {event.label for event in happened if isinstance(event, UnitTaken)} - {None} == {
        "v0=1", "v1=1", "v2=1", "v3=1", "v5=1"
    }  # fmt: skip
    assert _row(search, search.contenders["v6=1"]).word == "duplicate"


def test_what_is_the_baseline_under_another_name_is_never_timed():
    device = FakeDevice({})
    device.identities = {BASELINE: "g", "a=1": "g"}
    search, _, happened = run([change("a"), change("b")], device)
    assert "a=1" not in {event.label for event in happened if isinstance(event, UnitTaken)}
    assert _row(search, search.contenders["a=1"]).word == "noop"


def test_a_variant_that_leaves_more_to_the_cpu_is_out_before_timing():
    device = FakeDevice({"fused": 2.0})
    device.left = {BASELINE: 1, "fused=1": 4, "other=1": 1}
    search, _, happened = run([change("fused"), change("other")], device)
    assert "fused=1" not in {event.label for event in happened if isinstance(event, UnitTaken)}
    assert "3 more nodes" in search.contenders["fused=1"].dropped.reason


def test_a_variant_that_fails_its_gate_cannot_win():
    device = FakeDevice({"wrong": 3.0})
    device.dropped = {"wrong=1": "cosine 0.2"}
    _, done, _ = run([change("wrong"), change("null")], device)
    assert done.champion == BASELINE


def test_a_hopeless_arm_is_stopped_after_one_unit():
    search, _, happened = run([change("awful"), change("null")], FakeDevice({"awful": 0.5 / HOPELESS}))
    assert [event.label for event in happened if isinstance(event, UnitTaken)].count("awful=1") == 1
    assert search.contenders["awful=1"].dropped.why == "hopeless"


def test_an_arm_that_crashes_while_it_is_confirmed_makes_room_for_the_next():
    class Crashing(FakeDevice):
        def do(self, instruction, search):
            if isinstance(instruction, TakeUnit) and instruction.confirming and instruction.label == "a=1":
                yield VariantDropped("a=1", "crashed", "gone")
            else:
                yield from super().do(instruction, search)

    variants = [change("a"), Variant((AxisChange("a", "2"),))]
    _, done, _ = run(variants, Crashing({"a": 1.1}))
    assert done.champion == "a=2"


def test_the_budget_ends_a_search_and_says_so():
    search, done, _ = run([change(f"v{place}") for place in range(8)], FakeDevice({}, noise=0.05), budget_s=60)
    assert done.champion == BASELINE
    assert "budget" in done.reason
    assert done.needed_s > 60
    assert search.spent_s <= 60


def test_a_gain_that_luck_chose_is_not_confirmed():
    """Fast while it is screened, as slow as the baseline afterwards."""

    class Lucky(FakeDevice):
        def do(self, instruction, search):
            if isinstance(instruction, RebuildVariant):
                self.factors = {}
            yield from super().do(instruction, search)

    search, done, _ = run([change("a"), change("b")], Lucky({"a": 1.1}))
    assert done.champion == BASELINE
    assert search.finding is not None
    assert "was not proven faster when it was measured anew" in done.reason


def test_a_simulated_target_is_searched_for_placement_and_size_alone():
    device = FakeDevice({"a": 5.0})
    device.timed = False
    device.left = {BASELINE: 3, "a=1": 3, "b=1": 0}
    _, done, happened = run([change("a"), change("b")], device)
    assert done.champion == "b=1"
    assert "speed was not measured" in done.reason
    assert not any(isinstance(event, UnitTaken) for event in happened)


@pytest.mark.parametrize("seed", [3, 4])
def test_a_search_that_is_cut_anywhere_ends_in_the_same_state(seed):
    variants, truth = [change("a"), change("b"), change("c")], {"a": 1.06, "c": 1.04}
    whole, done, happened = run(variants, FakeDevice(truth, seed), seed=seed)
    for cut in range(0, len(happened), 7):
        search, known = TuneSearch(variants, TuneLimits(2000.0), seed), KnownEvents(happened[:cut])
        for event in happened[:cut]:
            assert known.take(search.next()) is event
            search.tell(event)
        for event in happened[cut:]:
            search.next()
            search.tell(event)
        assert search.next() == done
        assert search.finding == whole.finding


def test_what_was_measured_counts_when_axes_are_added():
    device = FakeDevice({"a": 1.1, "late": 1.2})
    _, first, before = run([change("a"), change("b")], device)
    search, done, happened = run([change("a"), change("b"), change("late")], device, events=before)
    assert (first.champion, done.champion) == ("a=1", "a=1 late=1")
    old = [event for event in before if isinstance(event, UnitTaken) and not event.confirming]
    again = [event for event in happened if any(event is one for one in old)]
    assert len(again) >= len(old) - 1
    fresh = [event for event in happened if not any(event is one for one in before)]
    assert not any(isinstance(event, VariantMade) and event.label in ("a=1", "b=1") for event in fresh)
    # What was confirmed about another champion says nothing about this one.
    assert search.finding.by[0].units == sum(
        event.confirming and event.label == done.champion for event in units(fresh)
    )


def test_units_of_a_confirmation_are_never_used_to_choose():
    unit = UnitTaken("a", True, [[1.0]], [[1.0]], confirming=True)
    assert KnownEvents([unit]).take(TakeUnit("a", True, confirming=False)) is None
    assert KnownEvents([unit]).take(TakeUnit("a", False, confirming=True)) is unit
    assert KnownEvents([VariantRebuilt("b", "x")]).take(RebuildVariant("a")) is None


def units(events):
    return [event for event in events if isinstance(event, UnitTaken)]


@pytest.mark.parametrize(("limit", "kept"), [(9.5, True), (8.0, False)])
def test_the_champion_is_timed_until_it_is_known_whether_it_keeps_its_latency(limit, kept):
    search, done, _ = run([change("a"), change("b")], FakeDevice({"a": 1.1}), max_latency_ms=limit)
    assert done.champion == "a=1"
    assert search.latency(done.champion).kept is kept


def test_a_baseline_that_stays_is_timed_too():
    device = FakeDevice({})
    device.identities = {BASELINE: "g", "a=1": "g"}
    search, done, happened = run([change("a")], device, max_latency_ms=11.0)
    assert (done.champion, search.latency(BASELINE).kept) == (BASELINE, True)
    assert {event.label for event in units(happened)} == {None}


def test_the_smallest_that_is_too_slow_makes_room_for_the_next():
    device = FakeDevice({"a": 0.5, "b": 0.95})
    device.sizes = {"a=1": 40, "b=1": 60, "a=1 b=1": 20}
    search, done, _ = run([change("a"), change("b")], device, objective="size", max_latency_ms=11.0)
    assert done.champion == "b=1"
    assert search.contenders["a=1"].dropped.why == "latency"
    assert "more than 11 ms" in search.contenders["a=1 b=1"].dropped.reason


def test_without_time_left_it_is_not_known_whether_a_latency_is_kept():
    device = FakeDevice({})
    device.sizes = {"a=1": 40}
    search, done, _ = run([change("a")], device, objective="size", max_latency_ms=11.0, budget_s=3.0)
    assert (done.champion, search.latency(done.champion).kept) == ("a=1", None)


def test_what_runs_may_take_is_told_at_any_time_and_rarely_wrongly():
    """Units whose middle is the limit itself: looking after each of forty, at most one in twenty is told anything."""
    coin = random.Random(0)
    told = 0
    for _ in range(400):
        seen = [coin.choice([9.0, 11.0]) for _ in range(40)]
        told += any(within(seen[:count], 10.0, 0.05) is not None for count in range(1, 41))
    assert told <= 20 + 10


def test_combinations_take_the_best_of_each_place_and_leave_each_out_once():
    winners = [change("threads"), Variant((AxisChange("threads", "2"),)), change("level"), change("spin")]
    labels = [one.label for one in together(winners, 8)]
    assert labels == ["level=1 spin=1 threads=1", "spin=1 threads=1", "level=1 threads=1", "level=1 spin=1"]


def test_a_graph_that_breaks_its_process_is_not_opened_again_and_the_search_goes_on():
    device = FakeDevice({"good": 1.1})
    device.breaking = {"bad=1"}
    device.graphs = {"bad=1": "g", "bad=2": "g"}
    search, done, happened = run([change("bad"), change("bad", "2"), change("good")], device)
    assert done.champion == "good=1"
    assert device.crashes == 1
    assert sum(isinstance(event, DeviceProbed) for event in happened) == 1
    assert "the same graph broke its process as bad=1" in search.contenders["bad=2"].dropped.reason
    assert happened.index(next(e for e in happened if isinstance(e, DeviceProbed))) == 1 + happened.index(
        next(e for e in happened if isinstance(e, DeviceCrashed))
    )


def test_where_the_graph_is_the_baselines_only_the_session_that_broke_is_out():
    device = FakeDevice({"good": 1.1})
    device.breaking = {"bad=1"}
    device.graphs = dict.fromkeys((BASELINE, "bad=1", "good=1"), "g")
    _, done, _ = run([change("bad"), change("good")], device)
    assert done.champion == "good=1"


def test_a_device_that_is_gone_ends_the_search_with_what_was_found():
    device = FakeDevice({"good": 1.1})
    device.breaking, device.dead_after = {"bad=1"}, 1
    search, done, _ = run([change("bad"), change("good")], device)
    assert (done.champion, done.lost) == (BASELINE, True)
    assert "no answer" in done.reason
    assert search.contenders["bad=1"].dropped.why == "crashed"


def test_the_baseline_may_break_once_and_not_twice():
    class Shaky(FakeDevice):
        def do(self, instruction, search):
            if isinstance(instruction, TakeUnit) and self.crashes < self.most and search.units == 2:
                self.crashes += 1
                yield DeviceCrashed(BASELINE, "SIGSEGV")
            else:
                yield from super().do(instruction, search)

    for most, champion in ((1, "good=1"), (2, BASELINE)):
        device = Shaky({"good": 1.1})
        device.most = most
        search, done, _ = run([change("good"), change("null")], device)
        assert done.champion == champion
        assert (search.baseline.dropped is not None) == (most == 2)


def test_a_search_that_was_cut_after_a_crash_asks_the_device_first():
    search = TuneSearch([change("bad")], TuneLimits(100.0), 1)
    for event in (VariantMade(BASELINE, "b", 1), VariantMade("bad=1", "x", 1), VariantTried(BASELINE)):
        search.tell(event)
    search.tell(DeviceCrashed("bad=1", "SIGABRT"))
    assert search.next() == ProbeDevice("bad=1")
    known = KnownEvents([DeviceProbed("other", None), DeviceProbed("bad=1", None)])
    search.tell(known.take(search.next()))
    assert isinstance(search.next(), SearchDone)


def test_passes_have_places_of_their_own():
    both = together([Variant((AxisChange("pass", "+a"),)), Variant((AxisChange("pass", "+b"),))], 8)
    assert [one.label for one in both] == ["+a +b"]


def test_an_outlier_neither_ends_nor_keeps_an_arm():
    """One leg in ten is far off, on either side: the centre tells, and the noise that all arms share."""

    class Tails(FakeDevice):
        def leg(self, speed):
            return super().leg(speed * (self.random.choice([0.5, 2.0]) if self.random.random() < 0.1 else 1.0))

    nulls = [change(f"n{place}") for place in range(4)]
    _, done, happened = run([change("fast"), *nulls], Tails({"fast": 1.08}, seed=2))
    assert done.champion == "fast=1"
    units = [event.label for event in happened if isinstance(event, UnitTaken)]
    assert max(units.count(one.label) for one in nulls) < MOST_UNITS


def test_sessions_that_do_not_run_alike_end_the_search():
    class Slots(FakeDevice):
        def do(self, instruction, search):
            for event in super().do(instruction, search):
                if isinstance(event, UnitTaken):
                    slow = [
                        [time * 1.1 for time in burst]
                        for burst in (event.arm_ms if event.base_first else event.base_ms)
                    ]
                    event = replace(event, **{"arm_ms" if event.base_first else "base_ms": slow})
                yield event

    # Gains of half a slot's favour, so that no arm is decided early.
    _, done, _ = run([change(f"v{place}") for place in range(8)], Slots({}, noise=0.001))
    assert done.champion == BASELINE
    assert "the baseline differs from itself" in done.reason


def test_of_two_that_hardly_differ_the_simpler_is_taken():
    class Saturating(FakeDevice):
        """Either change alone brings all there is to bring."""

        def speed(self, variant):
            return 1.08 if variant.changes else 1.0

    _, done, _ = run([change("a"), change("b")], Saturating({}))
    assert done.champion in ("a=1", "b=1")


def test_the_smallest_is_found_without_timing_anything_and_made_anew():
    device = FakeDevice({})
    device.sizes = {"a=1": 40, "b=1": 99, "c=1": 60, "a=1 c=1": 30}
    _, done, happened = run([change("a"), change("b"), change("c")], device, objective="size")
    assert done.champion == "a=1 c=1"
    assert "30 bytes of size instead of 100 (-70.0%)" in done.reason
    assert not any(isinstance(event, UnitTaken) for event in happened)
    assert isinstance(happened[-1], VariantRebuilt)


def test_less_by_nothing_worth_telling_is_no_champion():
    device = FakeDevice({})
    device.sizes = {"a=1": 99}
    _, done, _ = run([change("a")], device, objective="size")
    assert done.champion == BASELINE


def test_what_takes_too_much_memory_is_out_before_timing_and_unknown_memory_is_no_gain():
    device = FakeDevice({"a": 2.0, "b": 1.1})
    device.peaks = {BASELINE: 900, "a=1": 901, "b=1": 800}
    search, done, _ = run([change("a"), change("b")], device, max_memory=900)
    assert done.champion == "b=1"
    assert search.contenders["a=1"].dropped.why == "memory"
    device.peaks = {BASELINE: 900}
    _, done, _ = run([change("a"), change("b")], device, objective="memory")
    assert done.champion == BASELINE


def test_a_winner_that_nobody_can_reach_takes_no_more_units_than_its_proof():
    _, _, happened = run([change("fast"), change("null")], FakeDevice({"fast": 1.5}, noise=0.03))
    rebuilt = next(place for place, event in enumerate(happened) if isinstance(event, VariantRebuilt))
    labels = [event.label for event in happened[:rebuilt] if isinstance(event, UnitTaken)]
    assert labels.count("fast=1") <= 10


def test_the_timeline_has_one_line_for_what_was_done_in_a_row():
    device = FakeDevice({"fast": 1.1})
    device.dropped = {"bad=1": "its gate failed"}
    search, _, happened = run([change("fast"), change("bad")], device)
    steps = search.timeline
    assert [step.what for step in steps] == [
        "variants built",
        "variants opened and checked",
        "units of the screening",
        "champion built anew",
        "units that confirm",
    ]
    assert sum(step.count for step in steps) == len(happened)
    assert steps[0].count == 3
    assert sum(step.seconds for step in steps) == search.spent_s
    assert steps[-1].at_s + steps[-1].seconds == search.spent_s
