"""A search for less energy: the same race, by what a run takes of it."""

import pytest

from modelwright.errors import UsageError
from modelwright.search import _energy
from modelwright.search._answer import _row, _worded
from modelwright.search._energy import countable, energy_sentence
from modelwright.search._events import SearchDone, UnitTaken
from modelwright.search._limits import TuneLimits
from modelwright.search._machine import TuneSearch
from modelwright.targets import parse_target
from unit.search.test_machine import FakeDevice, change


class Meter(FakeDevice):
    """`factors` are of speed; `thrift` of energy, which is what is judged."""

    def __init__(self, factors, thrift):
        super().__init__(factors)
        self.thrift = FakeDevice(thrift, seed=1)

    def do(self, instruction, search):
        for event in super().do(instruction, search):
            if not isinstance(event, UnitTaken):
                yield event
                continue
            variant = search.contenders[instruction.label or "baseline"].variant
            legs = (self.thrift.leg(1.0), self.thrift.leg(self.thrift.speed(variant)))
            base, arm = ([[burst[0]] for burst in leg] for leg in legs)
            yield UnitTaken(
                event.label, event.base_first, event.base_ms, event.arm_ms, event.confirming, 2.0, base, arm
            )


def run(variants, device, **limits):
    search = TuneSearch(variants, TuneLimits(2000.0, objective="energy", **limits), 1)
    while not isinstance(done := search.next(), SearchDone):
        for event in device.do(done, search):
            search.tell(event)
    return search, done


def test_what_is_faster_and_takes_more_is_no_champion():
    search, done = run(
        [change("fast"), change("thrifty")], Meter({"fast": 1.5, "thrifty": 0.95}, {"fast": 0.8, "thrifty": 1.25})
    )
    assert done.champion == "thrifty=1"
    assert done.reason == "thrifty=1 is proven to take less energy than the baseline on a fresh build and fresh units"
    assert [verdict.quantile for verdict in search.finding.by] == [0.5]


def test_the_sentence_says_how_much_less_a_run_takes_of_the_baselines_energy():
    """A baseline that takes 25 % more is a saving of 20 %."""
    search, done = run([change("thrifty")], Meter({}, {"thrifty": 1.25}))
    said = energy_sentence(done.champion, "baseline", search.finding, 12.0)
    assert said.startswith("thrifty=1 takes less energy than baseline: a run takes about 20.")
    assert "% less (95 % interval" in said


def test_no_row_speaks_of_speed():
    search, _ = run([change("thrifty"), change("greedy")], Meter({}, {"thrifty": 1.25, "greedy": 0.8}))
    thrifty, greedy = (_row(search, search.contenders[label]) for label in ("thrifty=1", "greedy=1"))
    assert thrifty.reason.startswith("the baseline takes 2")
    assert "% more energy, 95% interval +" in thrifty.reason
    assert "faster" not in str((_worded(search), thrifty, greedy))


def test_without_a_thriftier_variant_the_baseline_stays():
    _, done = run([change("fast")], Meter({"fast": 1.5}, {}))
    assert (done.champion, done.reason) == ("baseline", "no variant was seen to take less energy")


def test_times_are_held_against_the_limit_and_energy_against_the_baseline():
    """10 ms in the baseline: the thriftiest is too slow, so the next one is taken."""
    device = Meter({"slow": 0.5, "quick": 1.3}, {"slow": 2.0, "quick": 1.2})
    search, done = run([change("slow"), change("quick")], device, max_latency_ms=11.0)
    assert (done.champion, search.latency(done.champion).kept) == ("quick=1", True)
    assert search.contenders["slow=1"].dropped.why == "latency"


def test_only_what_the_cpu_computes_is_counted():
    with pytest.raises(UsageError) as caught:
        countable(parse_target("qnn-npu"), TuneLimits(1.0, objective="energy"))
    assert "computes elsewhere" in caught.value.cause


def test_energy_has_no_quantiles():
    with pytest.raises(UsageError, match="energy has no quantiles"):
        countable(parse_target("cpu"), TuneLimits(1.0, objective="energy", by=(0.99,)))


def test_nothing_is_read_where_nobody_asks(monkeypatch):
    monkeypatch.setattr(_energy, "energy_zones", pytest.fail)
    assert countable(parse_target("cpu"), TuneLimits(1.0)) == ()
