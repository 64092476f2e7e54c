"""The page of `wright eval`: the verdict, where the drop lies, and the samples that lost most."""

from __future__ import annotations

from modelwright.evaluation import EvalOutput, EvalResult, SampleScore
from modelwright.judge import VerdictKind
from modelwright.report.eval import data_words, unjudged_words
from modelwright.report.html._kit import (
    Cell,
    Chart,
    Column,
    Interval,
    Row,
    Series,
    Shade,
    chart,
    intervals,
    number,
    table,
)
from modelwright.report.html._page import NextStep, Note, Page, Section
from modelwright.report.html._words import command, shade

_MOST_SAMPLES, _MOST_POINTS = 200, 5000


def eval_page(result: EvalResult) -> Page:
    sections = []
    if result.values is not None:
        sections += [_metrics(result), *_drop(result)]
    if result.outputs:
        sections.append(_outputs(result))
    if result.failures:
        sections.append(_failures(result))
    if any(_loss(score, result) for score in result.scores):
        sections += [_curve(result), _samples(result)]
    return Page(
        kind="accuracy" if result.task is None else f"accuracy, {result.task}",
        title=f"{result.candidate.model} against {result.reference.model}",
        verdict=_verdict(result),
        facts=_facts(result),
        notes=tuple(map(Note, result.warnings)),
        sections=tuple(sections),
        next_steps=_steps(result),
    )


def _verdict(result: EvalResult) -> tuple[str, Shade]:
    if result.status != "complete":
        words = f"{result.status}: these are the {result.data.selected:,} samples until then, and nothing is judged"
        return words, "bad"
    if result.verdict is None:
        return unjudged_words(result), ""
    return ": ".join(filter(None, (result.verdict.value, "; ".join(result.reasons)))), shade(result.verdict)


def _facts(result: EvalResult) -> tuple[tuple[str, str], ...]:
    sides = (("candidate", result.candidate), ("reference", result.reference))
    found = [(name, f"{side.model} on {side.target}, {side.engine}") for name, side in sides]
    allowed = [("allowed drop", result.max_drop)] if result.max_drop is not None else []
    return (*found, ("data", data_words(result.data)), *allowed)


def _metrics(result: EvalResult) -> Section:
    assert result.values is not None
    assert result.metric is not None
    values = result.values
    columns = [Column("metric"), *(Column(title, True) for title in ("reference", "candidate", "drop"))]
    drop: Shade = "bad" if (values.drop or 0) > 0 else ""
    first = (
        Cell(result.metric.name),
        _score(values.reference),
        _score(values.candidate),
        number(values.drop, 4, tone=drop),
    )
    rows = [Row(first)]
    rows += [
        Row((Cell(name), _score(theirs), _score(ours), number(None))) for name, (ours, theirs) in values.more.items()
    ]
    return Section(
        "Metric", table(columns, rows), f"{'higher' if result.metric.higher_is_better else 'lower'} is better"
    )


def _score(value: float | None) -> Cell:
    return number(value, 4, unknown="failed")


def _drop(result: EvalResult) -> list[Section]:
    found = result.comparison
    if found is None:
        return []
    if found.low is None or found.high is None:
        words = found.reason or "nothing bounds it"
    else:
        words = f"{found.low:.4f} … {found.high:.4f}, each end at {100 * (1 - found.alpha):g} % confidence"
    tone: Shade = shade(found.verdict) if found.verdict is not None else ""
    row = Interval("drop", words, found.low, found.seen, found.high, tone)
    limit = "" if found.margin is None else f"; the red line is what is allowed, {found.margin:.4g}"
    return [Section("Where the drop lies", intervals([row], limit=found.margin), f"left of 0 is better{limit}")]


def _outputs(result: EvalResult) -> Section:
    titles = ("cosine mean", "cosine worst", "SQNR mean dB", "SQNR worst dB", "max abs", "same best class")
    columns = [Column("output", long=True), *(Column(title, True) for title in titles)]
    return Section("Outputs", table(columns, [Row(_output(output)) for output in result.outputs]))


def _output(output: EvalOutput) -> tuple[Cell, ...]:
    found = output.scores
    if found is None or found.identical == found.samples:
        word = "identical" if found is not None else output.problem or "unknown"
        return (Cell(output.output), Cell(word, tone="good" if found is not None else "bad"), *(number(None),) * 5)
    top = found.top1.mean
    return (
        Cell(output.output),
        number(found.cosine.mean, 5),
        number(found.cosine.worst, 5),
        number(found.sqnr_db.mean),
        number(found.sqnr_db.worst),
        number(found.max_abs.worst, 4),
        Cell("–" if top is None else f"{top:.1%}", top),
    )


def _failures(result: EvalResult) -> Section:
    columns = [Column("sample", True), Column("side"), Column("reason", long=True)]
    rows = [Row((number(item.index, 0), Cell(item.side), Cell(item.reason))) for item in result.failures]
    return Section("Failed samples", table(columns, rows, by=0, down=False), str(len(rows)))


def _loss(score: SampleScore, result: EvalResult) -> float | None:
    """How much worse the candidate is on this sample."""
    if score.candidate is None or score.reference is None:
        return None
    better = result.metric is None or result.metric.higher_is_better
    return score.reference - score.candidate if better else score.candidate - score.reference


def _curve(result: EvalResult) -> Section:
    """All losses by size: a few bad samples and a small loss everywhere look different."""
    losses = sorted((loss for score in result.scores if (loss := _loss(score, result)) is not None), reverse=True)
    step = -(-len(losses) // _MOST_POINTS)
    shown = losses[::step]
    line = Series("loss", tuple(shown), "c1")
    places = tuple(float(step * place + 1) for place in range(len(shown)))
    hint = "what each sample lost, the most first; below 0 it gained"
    return Section("Loss by sample", chart(Chart(places, "sample", (line,), low=0.0, high=0.0)), hint)


def _samples(result: EvalResult) -> Section:
    columns = [Column("sample", True), *(Column(title, True) for title in ("reference", "candidate", "loss"))]
    ranked = sorted(result.scores, key=lambda score: -(_loss(score, result) or 0.0))
    lost = [score for score in ranked if (_loss(score, result) or 0.0) > 0][:_MOST_SAMPLES]
    rows = [
        Row(
            (
                number(score.index, 0),
                number(score.reference, 4),
                number(score.candidate, 4),
                number(_loss(score, result), 4),
            )
        )
        for score in lost
    ]
    return Section("Samples that lost most", table(columns, rows, by=3), f"{len(rows)} of {len(result.scores):,}")


def _steps(result: EvalResult) -> tuple[NextStep, ...]:
    candidate, reference = result.candidate.model, result.reference.model
    asked = (candidate, "--reference", reference, "--data", result.data.source)
    if result.verdict is VerdictKind.FAIL:
        wanted = command("debug", candidate, "--reference", reference, "--data", result.data.source)
        return (NextStep("Find where it leaves its reference.", wanted),)
    if result.verdict is None:
        return (NextStep("Make it a gate.", command("eval", *asked, "--max-drop", "1%")),)
    if result.verdict is VerdictKind.INCONCLUSIVE:
        needed = result.comparison.needed if result.comparison is not None else None
        words = f"It takes about {needed:,} samples to decide." if needed else "Look at more samples."
        wanted = command("eval", *asked, "--max-drop", result.max_drop or "1%", "--samples", str(needed or "N"))
        return (NextStep(words, wanted),)
    return (NextStep("See whether it is faster too, with proof.", command("compare", reference, candidate)),)
