"""The stage: one session on the target tells what it takes, and computes."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._json import dumps
from modelwright._lazy import lazy
from modelwright.data import DataSource, samples
from modelwright.errors import InputError
from modelwright.graph import Graph, count_macs, load
from modelwright.metrics import is_of_reference
from modelwright.stages.check._compute import Computed
from modelwright.stages.check._enough import is_clear, reach, says_enough
from modelwright.stages.check._types import (
    COMPUTES,
    DIFFERS,
    NO_NUMBERS,
    OPENS,
    TOO_LONG,
    USUAL_SAMPLES,
    CheckOutcome,
    TargetGate,
    kind_of_failure,
)
from modelwright.stages.validate import (
    Asked,
    Gate,
    Measure,
    OutputParity,
    cosine_bound,
    is_quantized,
    parity,
    picked_outputs,
)
from modelwright.targets import (
    OpTally,
    Placement,
    SessionSpec,
    Target,
    installed_plugins,
    open_as_meant,
    parse_target,
    placed_and_used,
)
from modelwright.worker import progress, task

if TYPE_CHECKING:
    from modelwright.stages.check import _part
else:
    # Only for what fails; it knows the passes, all of which would be read.
    _part = lazy("modelwright.stages.check._part")

ANSWER = "check.json"
# Multiply-accumulates that QNN's simulator does in a second: ResNet-18 has 1.8e9 of them and takes 15 s.
_SIMULATED_RATE = 1.2e8
# Of answers to made-up inputs, what no rounding explains: the cosine, and decibels above the error.
_DESTROYED, _DESTROYED_DB = 0.9, 6.0
# A chance that differs by less is not seen to differ.
_SEEN = 0.05
_FOLDERS = re.compile(r"(?<![\w.])(?:[A-Za-z]:)?[\\/](?:[^\s\"':;,\\/]+[\\/])+")


@task
def run_check(artifact: str, plain: str, workdir: str, params: TargetGate, data: DataSource) -> CheckOutcome:
    """`artifact` is what is delivered; `plain` the same before it was compiled, which the CPU can compute."""
    target = parse_target(params.target)
    graph = load(plain)
    feeds = sorted(_feeds(data, graph, params.samples), key=reach, reverse=True)
    progress("opening it on the target", 0.1)
    too_slow = _too_slow(graph, feeds, params.limit_s)
    computed = Computed(feeds, params.limit_s, too_slow, functools.partial(_enough, params))
    spec = SessionSpec(graph_optimization="disabled", provider_options=dict(params.provider_options))
    placed = placed_and_used(artifact, target, spec, computed.use)
    progress("comparing with the CPU", 0.8)
    # A chip computes floats as fp16 at best.
    claimed = params.precision if is_quantized(params.precision) else "fp16"
    gate = Gate(precision=claimed, outputs=params.outputs, task=params.task, elsewhere=True)
    asked = Asked(feeds, gate, data.random, picked_outputs(graph))
    outputs = _compared_with_cpu(plain, computed.answers, asked)
    if computed.spared and not is_clear(outputs):
        progress("computing the other samples too", 0.5)
        placed = placed_and_used(artifact, target, spec, computed.use)
        outputs = _compared_with_cpu(plain, computed.answers, asked)
    integers = is_quantized(params.precision)
    answers = _Answers(outputs, data.random, integers)
    outcome = _outcome(target, params, placed, computed, answers)
    if params.look and kind_of_failure(outcome.reason or ""):
        progress("looking for the smallest part that fails", 0.9)
        outcome = replace(outcome, part=_part.smallest_part(plain, params, str(outcome.reason)))
    Path(workdir, ANSWER).write_text(dumps(outcome), encoding="utf-8")
    return outcome


def _feeds(data: DataSource, graph: Graph, count: int) -> list[Mapping[str, Any]]:
    """None where nothing can be made up for the inputs: that is no fault of the artifact."""
    try:
        return list(samples(data, graph, count))
    except InputError:
        if data.random:
            return []
        raise


def _enough(params: TargetGate, feed: Mapping[str, Any], answer: Mapping[str, Any]) -> bool:
    """What floats lose is much the same for every sample. Where integers end, and what rounds to the same one, depends
    on the sample: a detector of 8 bits had 14 dB on the first picture, and 7 on the second."""
    usual = params.samples <= USUAL_SAMPLES and not is_quantized(params.precision)
    return usual and says_enough(feed, answer, params.samples)


def _too_slow(graph: Graph, feeds: Sequence[Mapping[str, Any]], limit_s: float) -> str | None:
    """What a simulator would take for one sample, where that is known before."""
    macs = count_macs(graph, _dims(graph, feeds[0]) if feeds else {}, infer=True).counted
    forecast = macs / _SIMULATED_RATE
    if forecast <= limit_s:
        return None
    return f"not computed: its {macs / 1e9:.1f} GMACs would take the simulator about {forecast:.0f} s"


def _dims(graph: Graph, feed: Mapping[str, Any]) -> dict[str, int]:
    """The sizes that the sample gives to dynamic dimensions."""
    found: dict[str, int] = {}
    for value in graph.model.graph.input:
        if value.name in feed:
            dims = value.type.tensor_type.shape.dim
            found |= {
                dim.dim_param: size for dim, size in zip(dims, feed[value.name].shape, strict=True) if dim.dim_param
            }
    return found


def _compared_with_cpu(plain: str, answers: Sequence[Mapping[str, Any]], asked: Asked) -> tuple[OutputParity, ...]:
    """By what each output is, as the gate does. Fewer answers than samples where a simulator is slow or said enough."""
    if not answers:
        return ()
    asked = replace(asked, feeds=asked.feeds[: len(answers)])
    with open_as_meant(plain) as session:
        wanted = [session.run(feed) for feed in asked.feeds]
    return parity(wanted, answers, asked)


@dataclass(frozen=True)
class _Answers:
    """The target's beside the CPU's. `integers`: the model is rounded to them."""

    outputs: tuple[OutputParity, ...]
    random: bool = False
    integers: bool = False

    def are_destroyed(self, item: OutputParity, wrong: Measure) -> bool:
        """What no rounding explains. Chances of next to nothing may be any other ones of next to nothing."""
        if item.within_one and (item.max_abs or 0.0) < _SEEN:
            return False
        far = wrong.value is None or wrong.value < (0.0 if wrong.decibels else _DESTROYED)
        return far or (item.sqnr_db is not None and item.sqnr_db < _DESTROYED_DB)


def _outcome(
    target: Target, params: TargetGate, placed: Placement, computed: Computed, answers: _Answers
) -> CheckOutcome:
    facts, soc = placed.facts, target.soc
    ours = sum(share.nodes for share in placed.eps if share.ep == target.provider.name)
    passed, reason, fix = _verdict(target, placed, computed, answers)
    # It goes into the manifest, where no path of this machine belongs.
    reason = None if reason is None else _FOLDERS.sub("", reason)
    return CheckOutcome(
        passed=passed,
        reason=reason,
        fix=fix,
        chip=None if soc is None else soc.title,
        engine=None if facts is None else facts.engine,
        simulated=facts is not None and facts.simulated,
        opened=placed.status == "placed",
        nodes=placed.running,
        on_target=ours,
        left=_left(placed),
        in_float=_in_float(target, placed) if is_quantized(params.precision) else (),
        samples=len(computed.answers),
        bound=min(cosine_bound(params.precision), cosine_bound("fp16")),
        outputs=answers.outputs,
        compute_s=computed.seconds,
        random_inputs=answers.random,
        installed=any(found.provider == target.provider for found in installed_plugins()),
    )


def _in_float(target: Target, placed: Placement) -> tuple[OpTally, ...]:
    """Operators that it took though it has them in float only, by what its compiler answered when it was asked."""
    known = [taken.floats for bits in (8, 16) if (taken := target.adapter.operators(bits)) is not None]
    floats = frozenset.intersection(*known) if known else frozenset()
    ours = (node.op_type for node in placed.graph if node.ep == target.provider.name and node.op_type in floats)
    return tuple(OpTally(op, count) for op, count in Counter(ours).most_common())


def _left(placed: Placement) -> tuple[OpTally, ...]:
    return tuple(OpTally(op, count) for op, count in Counter(node.op_type for node in placed.unsupported).most_common())


_Verdict = tuple[bool | None, str | None, str | None]
_REAL = "give real samples"
_LOOK = "look at the samples for NaN and infinity; `wright diagnose` says where the model makes them"


def _verdict(target: Target, placed: Placement, computed: Computed, answers: _Answers) -> _Verdict:
    see = f"run `wright analyze --target {target}` to see what the EP takes"
    if placed.status == "unknown":
        return None, f"it could not be asked here: {placed.reason}", placed.fix
    if placed.status == "failed":
        return False, f"{OPENS}: {placed.reason}", placed.fix
    if placed.virtual:
        words = "the EP's virtual device tells what it takes but cannot compute"
        return None, f"this machine has no such device; {words}", "ask a machine that has it"
    if not any(share.ep == target.provider.name for share in placed.eps):
        return False, "it takes no node of the model", see
    if computed.problem is not None:
        return False, f"{COMPUTES}: {computed.problem.cause}", computed.problem.fix
    if not computed.answers:
        return None, computed.unfinished or "nothing was computed", computed.fix
    found = _compared(answers)
    if found[0] and answers.integers and computed.cut_short and not is_clear(answers.outputs):
        words = f"{TOO_LONG} its time for all samples, and what it computed is near a bound"
        return None, words, "give a simulator more time: `limit_s` of the recipe's `[check]`"
    return found


def _compared(answers: _Answers) -> _Verdict:
    """By what each output is; one class that flips where two numbers are nearly equal says nothing. Of made-up inputs,
    which a trained model answers with next to nothing, rounding may be a good part: only what is destroyed is wrong."""
    outputs, fix = answers.outputs, "compare tensor by tensor with `wright debug --target`"
    doubtful: _Verdict | None = None
    for item in outputs:
        if item.identical:
            continue
        if item.reason is not None:
            if not is_of_reference(item.reason):
                return False, f"{NO_NUMBERS}: output {item.output}: {item.reason}", fix
            doubtful = None, f"the CPU's own answers are no numbers: output {item.output}: {item.reason}", _LOOK
        wrong = next((measure for measure in item.measures if not measure.passed), None)
        if wrong is not None:
            kind = f", judged as {item.kind}" if item.kind is not None else ""
            words = f"output {item.output}{kind} beside the CPU's answer: {wrong.detail}"
            if not answers.random or answers.are_destroyed(item, wrong):
                return False, f"{DIFFERS}: {words}", fix
            doubtful = None, f"made-up inputs do not tell: {words}", _REAL
    if doubtful is not None:
        return doubtful
    if outputs and not any(item.identical or item.measures for item in outputs):
        return None, "nothing is detected in these inputs, so no answers were compared", _REAL
    if answers.random and answers.integers:
        return None, "made-up inputs show that it runs, not what its rounding costs", _REAL
    return True, None, None
