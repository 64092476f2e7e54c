"""The answers of the building commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.pipeline import BuildResult, Builds, Built, Plans
from modelwright.plans import StageResult
from modelwright.report._units import human_bytes

if TYPE_CHECKING:
    import rich.console
    import rich.table
    import rich.text
else:
    rich = lazy("rich")


def render_builds(found: Builds, console: rich.console.Console) -> None:
    for result, folder in zip(found.builds, found.folders, strict=True):
        names = (result.source, "bold"), " for ", (result.target, "bold"), f", {result.recipe.precision}"
        console.print(rich.text.Text.assemble(*names))
        for component in result.components:
            console.print(_stages(component, many=len(result.components) > 1))
            _left_out(component, console)
            _gate(component, console)
        _weights(result, console)
        made = sum(stage.produced for component in result.components for stage in component.stages)
        where = f" Written to {folder}." if folder else " In the store; give -o DIR for a folder."
        word = ("Built", "green") if result.passed else ("Failed its gate", "red")
        fresh = f"{made} stages run" if made else "everything was in the store"
        tail = f" in {result.seconds:.1f} s, {fresh}.{where}"
        console.print(rich.text.Text.assemble(word, tail), soft_wrap=True)
        console.print()


def render_plans(found: Plans, console: rich.console.Console) -> None:
    words = {"cached": "in the store", "run": "will run", "later": "will run, key known after the stages before it"}
    for plan in found.plans:
        table = rich.table.Table("component", "stage", "state", "key", box=rich.box.SIMPLE_HEAD, pad_edge=False)
        for step in plan.stages:
            table.add_row(step.component, step.stage, step.why or words[step.state], (step.key or "")[:12])
        console.print(rich.text.Text(plan.target, style="bold"))
        console.print(table)


def _stages(component: Built, *, many: bool) -> rich.table.Table:
    title = component.name if many else None
    table = rich.table.Table(title=title, title_justify="left", box=rich.box.SIMPLE_HEAD, pad_edge=False)
    for name in ("stage", "time", "size", "what happened"):
        table.add_column(name, justify="right" if name in ("time", "size") else "left")
    for stage in component.stages:
        size = sum(file.size for file in stage.artifact.files)
        table.add_row(stage.stage, _time(stage), human_bytes(size), rich.text.Text(_story(stage)))
    return table


def _time(stage: StageResult) -> str:
    if not stage.produced:
        return "stored"
    return f"{stage.seconds:.1f} s" if stage.seconds is not None else "-"


def _story(stage: StageResult) -> str:
    tell = {
        "import": _import,
        "export": _export,
        "optimize": _optimize,
        "quantize": _quantize,
        "validate": _validate,
        "compile": _compile,
    }
    return tell[stage.stage](dict(stage.outcome))


def _import(facts: dict[str, Any]) -> str:
    return f"{facts['nodes']} nodes"


def _export(facts: dict[str, Any]) -> str:
    parts = [f"{part['name']} by {part['strategy']}, {part['nodes']} nodes" for part in facts["components"]]
    return f"{facts['model_class']}: {'; '.join(parts)}"


def _optimize(facts: dict[str, Any]) -> str:
    fired = [step["name"] for step in facts["steps"] if step["fired"]]
    shown = ", ".join(fired[:4]) + (f" and {len(fired) - 4} more" if len(fired) > 4 else "")
    return f"{facts['nodes_before']} → {facts['nodes_after']} nodes" + (f" by {shown}" if fired else ", nothing fired")


def _quantize(facts: dict[str, Any]) -> str:
    data = facts["calibration"]
    if data is None:
        return f"measured {facts['measured']}"
    kind = "RANDOM inputs, accuracy on real data unknown" if data["random"] else data["kind"]
    return f"measured {facts['measured']}, {data['samples']} samples from {kind}"


def _validate(facts: dict[str, Any]) -> str:
    worst = facts["worst_cosine"]
    shown = (
        f"cosine {worst:.5f} to the export{_ways(facts)}, needs {facts['bound']}" if worst is not None else "no parity"
    )
    return f"{'passed' if facts['passed'] else 'FAILED'}: {shown}"


def _ways(facts: dict[str, Any]) -> str:
    """Both numbers of a quantized artifact; the one that decided comes first."""
    executed, written = facts["as_executed"]["cosine"], facts["as_written"]["cosine"]
    if executed is None or written is None:
        return ""
    by, other = facts["decided_by"], ("as written", "as executed")[facts["decided_by"] == "as written"]
    return f" {by} ({executed if other == 'as executed' else written:.5f} {other})"


def _compile(facts: dict[str, Any]) -> str:
    outside = ", ".join(f"{len(op['nodes'])} {op['op_type']}" for op in facts["outside"])
    inside = f"all but {outside}" if outside else "the whole graph"
    ran = "loaded and ran" if facts["ran"] else f"loaded; {facts['run_reason']}"
    pieces = "1 partition" if facts["partitions"] == 1 else f"{facts['partitions']} partitions"
    return f"{inside} in {pieces}; {ran}" + (" on the simulator" if facts["simulated"] else "")


def _weights(result: BuildResult, console: rich.console.Console) -> None:
    why, params = result.recipe.reasons.reduce_range, result.recipe.quantize
    if why is not None and params is not None:
        console.print(f"{7 if params.reduce_range else 8}-bit weights: {why}", soft_wrap=True)


def _left_out(component: Built, console: rich.console.Console) -> None:
    """What the model could take and the graph does not."""
    parts = component.stages[0].outcome.get("components", ())
    found = [item for part in parts if part["name"] == component.name for item in part["left_out"]]
    if found:
        listed = ", ".join(f"{item['argument']} ({item['reason']})" for item in found)
        console.print(rich.text.Text(f"arguments left out: {listed}"), soft_wrap=True)


def _gate(component: Built, console: rich.console.Console) -> None:
    for check in component.validation.checks:
        if not check.passed:
            words = (f"gate: {check.name}", "red"), f": {check.detail}"
            console.print(rich.text.Text.assemble(*words), soft_wrap=True)
    if component.validation.note is not None:
        words = ("gate", "yellow"), f": {component.validation.note}"
        console.print(rich.text.Text.assemble(*words), soft_wrap=True)
