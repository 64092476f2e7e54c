"""The answers of the building commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.pipeline import BuildResult, Builds, Built, ImportOutcome, PlannedStage, Plans, TargetPlan
from modelwright.plans import StageResult
from modelwright.report._tables import Col, FittedTable, fitted
from modelwright.report._units import human_bytes
from modelwright.stages.check import CheckOutcome
from modelwright.stages.compile import CompileOutcome
from modelwright.stages.export import ExportOutcome
from modelwright.stages.inputs import InputsOutcome
from modelwright.stages.optimize import ORT_IMPORT, OptimizeOutcome
from modelwright.stages.quantize import QuantizeOutcome
from modelwright.stages.validate import ValidateOutcome

if TYPE_CHECKING:
    import rich.console
    import rich.table
    import rich.text
else:
    rich = lazy("rich")


_WORDS = {True: ("Built", "green"), False: ("Failed its gate", "red"), None: ("Built, unproven,", "yellow")}
_LEFT_SHOWN = 4
_GROWN_BYTES = 1 << 20
_FOLDING = "constant_folding"


def render_builds(found: Builds, console: rich.console.Console) -> None:
    for result, folder in zip(found.builds, found.folders, strict=True):
        names = (result.source, "bold"), " for ", (result.target, "bold"), f", {result.recipe.precision}"
        console.print(rich.text.Text.assemble(*names))
        for component in result.components:
            console.print(_stages(component, component.name if len(result.components) > 1 else None, console.width))
            _left_out(component, console)
            _gate(component, console)
        _sizes(result, console)
        _reasons(result, console)
        _accuracy(result, console)
        _agreement(result, console)
        made = sum(stage.produced for component in result.components for stage in component.stages)
        where = f" Written to {folder}." if folder else " In the store; give -o DIR for a folder."
        word = _WORDS[result.passed]
        fresh = f"{made} stage{'s' * (made > 1)} run" if made else "everything was in the store"
        tail = f" in {result.seconds:.1f} s, {fresh}.{where}"
        console.print(rich.text.Text.assemble(word, tail), soft_wrap=True)
        console.print()


def render_plans(found: Plans, console: rich.console.Console) -> None:
    for plan in found.plans:
        many = len({step.component for step in plan.stages}) > 1
        rows = [
            (
                f"{step.component}: {step.stage}" if many else step.stage,
                step.why or _STATES[step.state],
                *_forecast(step),
                ", ".join(step.shared_with),
            )
            for step in plan.stages
        ]
        console.print(rich.text.Text(plan.target, style="bold"))
        console.print(fitted(_PLANNED, rows, console.width))
    console.print(_total(found), soft_wrap=True)
    for line in dict.fromkeys(map(_peak, found.plans)):
        if line is not None:
            console.print(line, soft_wrap=True)


def _peak(plan: TargetPlan) -> str | None:
    """What is said before the first run; what earlier runs took stands in the table."""
    if plan.peak is None or not plan.peak.held_bytes:
        return None
    return (
        f"Peak: about {human_bytes(plan.peak.held_bytes)} of memory, ± {plan.peak.uncertainty:.0%}: {plan.peak.basis}."
    )


_PLANNED = (
    Col("stage"),
    Col("state", "text"),
    *(Col(title, "number") for title in ("time", "memory", "kept")),
    Col("shared with", "text"),
)
_STATES = {
    "cached": "in the store",
    "run": "will run",
    "later": "will run",
    "left out": "left out",
}


def _forecast(step: PlannedStage) -> tuple[str, str, str]:
    """Seconds, memory and bytes kept; nothing about an import, which only copies."""
    if step.state in ("cached", "left out") or step.stage == "import":
        return "", "", ""
    if step.forecast is None:
        return "unknown", "unknown", "unknown"
    peak = step.forecast.peak_rss_bytes
    memory = human_bytes(peak) if peak is not None else "unknown"
    return f"~{step.forecast.seconds:.1f} s", f"~{memory}", f"~{human_bytes(step.forecast.output_bytes)}"


def _total(found: Plans) -> str:
    """What is known of what would run; a stage that targets share counts once."""
    due = {
        (step.key or (plan.target, step.component, step.stage)): step
        for plan in found.plans
        for step in plan.stages
        if step.state in ("run", "later") and step.stage != "import"
    }
    if not due:
        return "Nothing would run."
    known = [step.forecast for step in due.values() if step.forecast is not None]
    if not known:
        count = "1 stage" if len(due) == 1 else f"{len(due)} stages"
        return f"{count} would run; how long that takes is unknown: nothing like it ran here before."
    seconds, most = sum(item.seconds for item in known), max(item.peak_rss_bytes or 0 for item in known)
    rest = f"; {len(due) - len(known)} more are unknown" if len(known) < len(due) else ""
    return (
        f"Forecast from earlier runs, one after the other: {seconds:.1f} s, at most {human_bytes(most)} of memory, "
        f"{human_bytes(sum(item.output_bytes for item in known))} kept{rest}."
    )


def _stages(component: Built, title: str | None, width: int) -> FittedTable:
    columns = [Col("stage"), Col("time", "number"), Col("size", "number"), Col("what happened", "text")]
    sizes = [sum(file.size for file in stage.artifact.files) for stage in component.stages]
    rows = [
        (stage.stage, _time(stage), human_bytes(size), _story(stage) + _grown(stage.outcome, before, size))
        for stage, before, size in zip(component.stages, [None, *sizes], sizes, strict=False)
    ]
    return fitted(columns, rows, width, title)


def _grown(outcome: object, before: int | None, after: int) -> str:
    """A small file that computes its tables becomes a large one that holds them."""
    if not isinstance(outcome, OptimizeOutcome) or before is None or after < max(2 * before, before + _GROWN_BYTES):
        return ""
    folded = any(step.name == _FOLDING and step.fired for step in outcome.steps)
    # A function that is inlined may hold weights, once for each call.
    inlined = any(step.name == ORT_IMPORT and step.nodes_after > step.nodes_before for step in outcome.steps)
    stored = f": {_FOLDING} stores what the graph computed; -{_FOLDING} in --passes leaves it out"
    why = stored if folded and not inlined else ""
    return f"; GREW from {human_bytes(before)} to {human_bytes(after)}{why}"


def _time(stage: StageResult[Any]) -> str:
    if not stage.produced:
        return "stored"
    return f"{stage.seconds:.1f} s" if stage.seconds is not None else "-"


def _story(stage: StageResult[Any]) -> str:
    outcome = stage.outcome
    match outcome:
        case ImportOutcome():
            return f"{outcome.nodes} nodes"
        case ExportOutcome():
            parts = [f"{part.name} by {part.strategy}, {part.nodes} nodes" for part in outcome.components]
            return f"{outcome.model_class}: {'; '.join(parts)}"
        case InputsOutcome():
            return _inputs(outcome)
        case OptimizeOutcome():
            return _optimize(outcome)
        case QuantizeOutcome():
            return _quantize(outcome)
        case ValidateOutcome():
            return _validate(outcome)
        case CompileOutcome():
            return _compile(outcome)
        case CheckOutcome():
            return _check(outcome)
    return ""


def _inputs(outcome: InputsOutcome) -> str:
    words = ", ".join(f"{item.name} {item.before} → {item.after}" for item in outcome.changed) or "normalized inside"
    same = "not compared" if outcome.reason is not None else f"the same answers to {outcome.relative_error:.1g}"
    return f"{words}; {same}"


def _optimize(outcome: OptimizeOutcome) -> str:
    fired = [step.name for step in outcome.steps if step.fired]
    shown = ", ".join(fired[:4]) + (f" and {len(fired) - 4} more" if len(fired) > 4 else "")
    left = [step.problem for step in outcome.steps if step.problem is not None]
    rest = f"; {len(left)} passes left out: {left[0]}" if left else ""
    return f"{outcome.nodes_before} → {outcome.nodes_after} nodes{f' by {shown}' if fired else ', nothing fired'}{rest}"


def _quantize(outcome: QuantizeOutcome) -> str:
    data = outcome.calibration
    if data is None:
        return f"measured {outcome.measured}{_gains(outcome)}"
    wide = "" if outcome.widened is None else f"; {outcome.widened.words}"
    kind = "RANDOM inputs, accuracy on real data unknown" if data.random else data.kind
    few = "; FEW samples, 32 to 128 would do" if data.few else ""
    return f"measured {outcome.measured}, {data.samples} samples from {kind}{few}{wide}{_gains(outcome)}"


def _gains(outcome: QuantizeOutcome) -> str:
    """What more effort brought, of what it tried."""
    kept = [
        f"{item.technique} +{item.decibels:.1f} dB ({item.low:.1f} … {item.high:.1f} on {item.samples} samples)"
        for item in outcome.gains
        if item.kept
    ]
    tried = f"none of {', '.join(item.technique for item in outcome.gains)} helped"
    return f"; {', '.join(kept) or tried}" if outcome.gains else ""


def _validate(outcome: ValidateOutcome) -> str:
    worst = outcome.worst_cosine
    near = "" if worst is None else f"cosine {worst:.5f} to the export{_ways(outcome)}, needs {outcome.bound}"
    same = "what it came from, byte for byte; " if outcome.unchanged else ""
    if outcome.unchanged and not outcome.samples and outcome.passed:
        return f"{same}what is compiled from it is for the target to judge"
    shown = same + (near or _equality(outcome))
    made_up = " on made-up inputs" if outcome.random_inputs else ""
    words = {True: f"passed{made_up}", False: f"FAILED{made_up}", None: _unknown(outcome)}
    return ": ".join(filter(None, (words[outcome.passed], f"{_other_reasons(outcome)}{shown}")))


def _equality(outcome: ValidateOutcome) -> str:
    """Of outputs that are no numbers (words, classes); what could not be compared is told below."""
    details = (measure.detail for output in outcome.outputs for measure in output.measures)
    return next(details, "" if outcome.passed is None else "nothing was compared")


def _other_reasons(outcome: ValidateOutcome) -> str:
    """What failed where the cosine, which stands beside it, is good enough."""
    if outcome.passed is not False or outcome.worst_cosine is None or outcome.worst_cosine < outcome.bound:
        return ""
    failed = list(dict.fromkeys(check.name for check in outcome.checks if check.passed is False))
    return f"{', '.join(failed[:2])} (see below); "


def _unknown(outcome: ValidateOutcome) -> str:
    return next((check.detail for check in outcome.checks if check.passed is None), "")


def _ways(outcome: ValidateOutcome) -> str:
    """Both numbers of a quantized artifact; the one that decided comes first."""
    executed, written = outcome.as_executed.cosine, outcome.as_written.cosine
    if executed is None or written is None:
        return ""
    by = outcome.decided_by
    other, value = ("as executed", executed) if by == "as written" else ("as written", written)
    return f" {by} ({value:.5f} {other})"


def _asked(outcome: ValidateOutcome) -> str:
    """Where the gate ran, on what, what it took, and what it took the outputs for."""
    kind = "made-up" if outcome.random_inputs else "real"
    took = f", {outcome.seconds:.1f} s" if outcome.seconds is not None else ""
    words = [f"{item.output} as {item.kind}" for item in outcome.outputs if item.kind is not None]
    shown = ", ".join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "")
    fresh = "" if outcome.held_out is None else f" ({outcome.held_out or 'none'} held out from calibration)"
    count = f"{outcome.samples} {kind} sample{'' if outcome.samples == 1 else 's'}"
    where = f"gate: {count}{fresh} on this CPU, {outcome.engine}{took}"
    return f"{where}; {shown}" if words else where


def _compile(outcome: CompileOutcome) -> str:
    outside = ", ".join(f"{len(op.nodes)} {op.op_type}" for op in outcome.outside)
    inside = f"all but {outside}" if outside else "the whole graph"
    pieces = "1 partition" if outcome.partitions == 1 else f"{outcome.partitions} partitions"
    return f"{inside} in {pieces}; loaded back" + (" on the simulator" if outcome.simulated else "")


def _check(outcome: CheckOutcome) -> str:
    """`passed on Snapdragon X Elite (simulator): 6 of 7 nodes on it (the CPU has LSTM); 1 sample computed …`."""
    if not outcome.opened:
        return "FAILED: the target does not open it" if outcome.passed is False else "unknown: nobody here to ask"
    word = {True: "passed", False: "FAILED", None: "opened"}[outcome.passed]
    where = f"{outcome.chip or 'the target'}{' (simulator)' if outcome.simulated else ''}"
    parts = [f"{outcome.on_target} of {outcome.nodes} nodes on it{_left(outcome)}"]
    if outcome.in_float:
        parts.append(
            "in float, because it has no other: " + ", ".join(f"{op.count} {op.op_type}" for op in outcome.in_float)
        )
    if outcome.samples:
        kind = "made-up " if outcome.random_inputs else ""
        count = f"{outcome.samples} {kind}sample{'' if outcome.samples == 1 else 's'}"
        took = "" if outcome.compute_s is None else f" in {outcome.compute_s:.1f} s"
        parts.append(f"{count} computed{took}, {_against_cpu(outcome)}")
    parts += [outcome.reason] if outcome.reason is not None else []
    return f"{word} on {where}: {'; '.join(parts)}"


def _left(outcome: CheckOutcome) -> str:
    """A single node may be all of the arithmetic: a count alone would hide it."""
    names = [f"{op.count} {op.op_type}" if op.count > 1 else op.op_type for op in outcome.left]
    shown = ", ".join([*names[:_LEFT_SHOWN], *(["…"] if len(names) > _LEFT_SHOWN else [])])
    return f" (the CPU has {shown})" if names else ""


def _against_cpu(outcome: CheckOutcome) -> str:
    if outcome.worst_cosine is None and not all(item.identical for item in outcome.outputs):
        return "no numbers to compare with the CPU's"
    noise = "no difference" if outcome.sqnr_db is None else f"{outcome.sqnr_db:.1f} dB"
    return f"{noise} against the CPU"


def _reasons(result: BuildResult, console: rich.console.Console) -> None:
    if (chip := result.recipe.reasons.chip) is not None:
        console.print(rich.text.Text(f"chip: {chip}"), soft_wrap=True)
    for words in result.recipe.reasons.passes:
        console.print(rich.text.Text(words, style="dim"), soft_wrap=True)
    why, params = result.recipe.reasons.reduce_range, result.recipe.quantize
    if why is not None and params is not None:
        bits = "weights that cannot saturate" if params.reduce_range else "weights of all 8 bits"
        console.print(f"{bits}: {why}", soft_wrap=True)


def _accuracy(result: BuildResult, console: rich.console.Console) -> None:
    found = result.accuracy
    if found is None:
        return
    word = {True: ("passed", "green"), False: ("FAILED", "red"), None: ("undecided", "yellow")}[found.passed]
    reason = f": {found.reasons[0]}" if found.reasons else ""
    tail = f" on {found.samples} labelled samples, on {found.target}{reason}"
    console.print(rich.text.Text.assemble("accuracy: ", word, tail), soft_wrap=True)


def _sizes(result: BuildResult, console: rich.console.Console) -> None:
    """Who says how large the inputs are. A guess is as loud as made-up data."""
    first = result.components[0].stages[0].outcome
    exported = first.sizes if isinstance(first, ExportOutcome) else ()
    found = {item.name: item for item in (*exported, *result.recipe.reasons.sizes)}
    told: dict[str, list[str]] = {}
    for item in found.values():
        if not item.guessed:
            told.setdefault(item.origin, []).append(f"{item.name} {item.size}")
    if told:
        words = "; ".join(f"{', '.join(names)} ({origin})" for origin, names in told.items())
        console.print(rich.text.Text(f"sizes: {words}"), soft_wrap=True)
    guessed = [f"{item.name} {item.size}" for item in found.values() if item.guessed]
    if guessed:
        loud = ("sizes are GUESSED", "yellow"), f": {', '.join(guessed)}; give {_how(first)}"
        console.print(rich.text.Text.assemble(*loud), soft_wrap=True)


def _how(first: object) -> str:
    return "them in the recipe's [export]" if isinstance(first, ExportOutcome) else "--dim NAME=SIZE, or real --data"


def _agreement(result: BuildResult, console: rich.console.Console) -> None:
    """What the graphs write together."""
    if result.agreement is not None:
        found = result.agreement.outcome
        word = {True: ("passed", "green"), False: ("FAILED", "red"), None: ("unknown", "yellow")}[found.passed]
        console.print(rich.text.Text.assemble("greedy texts: ", word, f": {found.detail}"), soft_wrap=True)


def _failing_part(asked: CheckOutcome, console: rich.console.Console) -> None:
    if asked.part is None:
        return
    console.print(rich.text.Text(f"  {asked.part.words}"), soft_wrap=True)
    for way in asked.part.avoided_by:
        console.print(rich.text.Text(f"  tried on it: {way.title} ({way.how}): {way.result}"), soft_wrap=True)


def _left_out(component: Built, console: rich.console.Console) -> None:
    """What the model could take and the graph does not."""
    first = component.stages[0].outcome
    parts = first.components if isinstance(first, ExportOutcome) else ()
    found = [item for part in parts if part.name == component.name for item in part.left_out]
    if found:
        listed = ", ".join(f"{item.argument} ({item.reason})" for item in found)
        console.print(rich.text.Text(f"arguments left out: {listed}"), soft_wrap=True)


def _gate(component: Built, console: rich.console.Console) -> None:
    if component.validation.engine is not None:
        console.print(rich.text.Text(_asked(component.validation)), soft_wrap=True)
    asked = component.check
    if asked is not None and asked.passed is not True:
        style = "red" if asked.passed is False else "yellow"
        words = ("target", style), f": {asked.reason}; {asked.fix}"
        console.print(rich.text.Text.assemble(*words), soft_wrap=True)
        _failing_part(asked, console)
    for check in component.validation.checks:
        if check.passed is False:
            words = (f"gate: {check.name}", "red"), f": {check.detail}"
            console.print(rich.text.Text.assemble(*words), soft_wrap=True)
    if component.validation.note is not None:
        words = ("gate", "yellow"), f": {component.validation.note}"
        console.print(rich.text.Text.assemble(*words), soft_wrap=True)
