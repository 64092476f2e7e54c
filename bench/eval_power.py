"""How often `wright eval` errs when one looks twenty times, and what that costs in samples beside the method before.

    python bench/eval_power.py [--trials 1000]

Writes bench/results/eval_power.json; exit 1 when a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from bench import eval_before
from modelwright.evaluation.tasks import Context, EvalTask, make_task
from modelwright.judge import MIN_SAMPLES, paired
from modelwright.judge._paired import Drops

ALPHA, POWER, SEED = 0.05, 0.9, 505
LOOKS = tuple(int(n) for n in np.unique(np.geomspace(20, 2000, 20).round()))
PASS, FAIL, OPEN = "pass", "fail", "inconclusive"
Row = dict[str, float | int | str | None]
Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Seen:
    """What one look sees: the contributions of both models, and the most by which one can change."""

    reference: np.ndarray
    candidate: np.ndarray
    span: float | None


Looks = Callable[[Rng], Iterator[Seen]]


@dataclass(frozen=True)
class Case:
    """Evaluations whose true drop is exactly the margin. `draw` gives what each look of one evaluation sees."""

    name: str
    margin: float
    draw: Looks
    span_before: float | None = 1.0
    trials: float = 1.0


def now(seen: Seen, margin: float) -> str:
    """The product's verdict, without the bounds and forecasts that `paired` adds to it."""
    drops = seen.reference - seen.candidate
    if seen.span is None or len(drops) < MIN_SAMPLES:
        return OPEN
    return Drops(*np.unique(drops, return_counts=True), seen.span).verdict(margin, ALPHA).value


def before(seen: Seen, margin: float, span: float | None) -> str:
    return eval_before.verdict(seen.reference, seen.candidate, margin, span, ALPHA)


def of_a_mean(drops: Callable[[Rng, int], np.ndarray], span: float | None, reference: float = 0.9) -> Looks:
    """Scores whose mean is the metric; a reference of 1 means right or wrong."""

    def draw(rng: Rng) -> Iterator[Seen]:
        all_drops = drops(rng, LOOKS[-1])
        scores = np.where(all_drops < 0, 0.0, 1.0) if reference == 1.0 else np.full(LOOKS[-1], reference)
        for count in LOOKS:
            yield Seen(scores[:count], scores[:count] - all_drops[:count], span)

    return draw


def right_or_wrong(rng: Rng, count: int, disagreement: float, drop: float) -> np.ndarray:
    draw = rng.random(count)
    lost, gained = (disagreement + drop) / 2, (disagreement - drop) / 2
    return np.where(draw < lost, 1.0, np.where(draw > 1 - gained, -1.0, 0.0))


def normal(rng: Rng, count: int, drop: float, deviation: float = 0.1) -> np.ndarray:
    """Ten deviations inside a span of 1."""
    return drop + deviation * rng.standard_normal(count)


def log_normal(rng: Rng, count: int, drop: float, shape: float = 1.5) -> np.ndarray:
    """Cut at 1, where the span is; the mean of what is cut is made up for."""
    return np.minimum(_log_normal_scale(drop, shape) * np.exp(shape * rng.standard_normal(count)), 1.0)


def _log_normal_scale(drop: float, shape: float) -> float:
    scale = drop / math.exp(shape**2 / 2)
    for _ in range(50):
        # E[min(s·X, 1)] in closed form.
        edge = -math.log(scale) / shape
        below = 0.5 * (1 + math.erf((edge - shape) / math.sqrt(2))) * scale * math.exp(shape**2 / 2)
        scale *= drop / (below + 0.5 * (1 - math.erf(edge / math.sqrt(2))))
    return scale


def disasters(rng: Rng, count: int, rate: float, loss: float, noise: float = 0.0) -> np.ndarray:
    return (rng.random(count) < rate) * loss + noise * rng.uniform(-1, 1, count)


def of_sums(task: EvalTask, numbers: Callable[[Rng, int], tuple[np.ndarray, np.ndarray]], sign: float) -> Looks:
    """A metric of sums, through the product's own jackknife."""

    def draw(rng: Rng) -> Iterator[Seen]:
        sides = numbers(rng, LOOKS[-1])
        for count in LOOKS:
            (_, theirs), (_, ours) = (task.parts(side[:count]) for side in sides)
            span = task.span(sides[0][:count])
            assert span is not None
            yield Seen(sign * theirs, sign * ours, max(span, float(np.abs(theirs - ours).max())))

    return draw


def speech(rng: Rng, count: int, margin: float, rate: float = 0.01) -> tuple[np.ndarray, np.ndarray]:
    """Utterances of 5 to 30 words with two errors or more; one in a hundred gets a text that it does not hold."""
    words = rng.integers(5, 31, count).astype(float)
    errors = 2.0 + rng.binomial(words.astype(int), 0.05)
    other = errors + rng.binomial(2, 0.1, count) - rng.binomial(2, 0.1, count)
    invented = (rng.random(count) < rate) * words * margin / rate
    return np.stack([errors, words], axis=1), np.stack([other + invented, words], axis=1)


def boxes(rng: Rng, count: int, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """Images of 1 to 20 boxes, 85 % of them found; in the candidate some images are lost whole."""
    wanted = rng.integers(1, 21, count).astype(float)
    right = rng.binomial(wanted.astype(int), 0.85).astype(float)
    # F1 = 2 right / (found + wanted) with as many found as wanted: a lost image costs its share of it.
    lost = rng.random(count) < margin / 0.85
    return np.stack([right, wanted, wanted], axis=1), np.stack([np.where(lost, 0.0, right), wanted, wanted], axis=1)


def perplexity(rng: Rng, count: int, margin: float) -> tuple[np.ndarray, np.ndarray]:
    tokens = rng.integers(20, 200, count).astype(float)
    nats = tokens * (1.5 + 0.5 * rng.standard_normal(count))
    # The perplexity of the population: exp of the mean surprise per token, 1.5.
    worse = nats + tokens * (math.log1p(margin / math.exp(1.5)) + 0.05 * rng.standard_normal(count))
    return (np.stack([nats, tokens, tokens], axis=1), np.stack([worse, tokens, tokens], axis=1))


def ranking(margin: float, before_r: float = 0.8) -> Looks:
    """Spearman of model and human scores; all three normal, so that the true correlations are known."""
    span = make_task("sentence-similarity", Context(), {}).metric.span or 0.0
    rank = 6 / math.pi * math.asin(before_r / 2)
    after_r = 2 * math.sin(math.pi * (rank - margin) / 6)

    def draw(rng: Rng) -> Iterator[Seen]:
        human, own, other = rng.standard_normal((3, LOOKS[-1]))
        theirs = before_r * human + math.sqrt(1 - before_r**2) * own
        mixed = 0.95 * own + math.sqrt(1 - 0.95**2) * other
        ours = after_r * human + math.sqrt(1 - after_r**2) * mixed
        for count in LOOKS:
            sides = [np.stack([side[:count], human[:count]], axis=1) for side in (theirs, ours)]
            reference, candidate = (pseudo_spearman(side) for side in sides)
            yield Seen(reference, candidate, max(span, float(np.abs(reference - candidate).max())))

    return draw


def pseudo_spearman(numbers: np.ndarray) -> np.ndarray:
    """`_contributions` for Spearman without ties, for all samples at once: a thousand evaluations are drawn."""
    count = len(numbers)
    ranks = numbers.argsort(axis=0).argsort(axis=0) + 1.0
    whole = float(np.corrcoef(ranks.T)[0, 1])
    first, second = (side[:, None] - (side[:, None] > side) for side in ranks.T)
    product = np.einsum("ij,ij->j", first, second) - ranks[:, 0] * ranks[:, 1]
    kept, mean = count - 1, count / 2
    without = (product - kept * mean**2) / (kept * (kept**2 - 1) / 12)
    parts = count * whole - (count - 1) * without
    return parts - parts.mean() + whole


def shortcuts_agree() -> bool:
    """What is computed here in another way than in the product is the same."""
    rng = np.random.default_rng(SEED)
    task = make_task("sentence-similarity", Context(), {})
    numbers = rng.standard_normal((60, 2)) + rng.standard_normal((60, 1))
    _, parts = task.parts(numbers)
    good = np.allclose(parts, pseudo_spearman(numbers))
    for _ in range(200):
        drops = right_or_wrong(rng, int(rng.integers(30, 900)), 0.05, rng.choice([0.0, 0.02, 0.1]))
        seen = Seen(np.full(len(drops), 0.5), 0.5 - drops, 1.0)
        full = paired(seen.reference, seen.candidate, margin=0.03, span=1.0)
        assert full.low is not None
        assert full.high is not None
        good &= full.verdict == now(seen, 0.03) and full.low <= drops.mean() <= full.high
        good &= (full.high < 0.03) == (full.verdict == PASS)
    return bool(good)


def spanned(name: str, span: float | None = None) -> EvalTask:
    task = make_task(name, Context(), {})
    if span is not None:
        task.metric = type(task.metric)(**{**vars(task.metric), "span": span})
    return task


def cases() -> list[Case]:
    def mean(name: str, margin: float, span: float | None, draw: Callable[[Rng, int], np.ndarray]) -> Case:
        return Case(name, margin, of_a_mean(draw, span, 1.0 if name.startswith("right") else 0.9), span)

    some, lost = (partial(right_or_wrong, disagreement=share, drop=0.02) for share in (0.05, 0.02))
    a_little = partial(disasters, rate=0.01, loss=0.9, noise=0.001)
    asr, language = spanned("automatic-speech-recognition", 5.0), spanned("text-generation", 20.0)
    detection = spanned("object-detection")
    return [
        mean("right or wrong, 5 % differ", 0.02, 1.0, some),
        mean("right or wrong, nothing gained", 0.02, 1.0, lost),
        mean("normal", 0.02, 1.0, partial(normal, drop=0.02)),
        mean("log-normal, s = 1.5", 0.02, 1.0, partial(log_normal, drop=0.02)),
        mean("log-normal, no span", 0.02, None, partial(log_normal, drop=0.02)),
        mean("0.5 % lose 0.9", 0.0045, 1.0, partial(disasters, rate=0.005, loss=0.9)),
        mean("1 % lose 0.9", 0.009, 1.0, partial(disasters, rate=0.01, loss=0.9)),
        mean("1 % lose 0.9, all others a little", 0.009, 1.0, a_little),
        mean("2 % lose 0.9", 0.018, 1.0, partial(disasters, rate=0.02, loss=0.9)),
        mean("2 % lose 5, span 5", 0.1, 5.0, partial(disasters, rate=0.02, loss=5.0)),
        mean("2 % lose 5, no span", 0.1, None, partial(disasters, rate=0.02, loss=5.0)),
        Case("WER, 1 % hallucinate, span 5", 0.02, of_sums(asr, partial(speech, margin=0.02), -1.0), None, 0.3),
        Case("box F1, images lost whole", 0.02, of_sums(detection, partial(boxes, margin=0.02), 1.0), 1.0, 0.3),
        Case("perplexity, span 20", 0.05, of_sums(language, partial(perplexity, margin=0.05), -1.0), None, 0.3),
        Case("Spearman 0.79", 0.03, ranking(0.03), 2.0, 0.3),
    ]


def margin_rows(trials: int, rng: Rng) -> list[Row]:
    """A loss of exactly the margin, looked at after 20 to 2,000 samples, stopping at the first verdict."""
    rows: list[Row] = []
    for case in cases():
        count = max(1, int(case.trials * trials))
        ends: Counter[tuple[str, str]] = Counter()
        single: Counter[int] = Counter()
        for _ in range(count):
            words = [(now(seen, case.margin), before(seen, case.margin, case.span_before)) for seen in case.draw(rng)]
            for method, found in (("now", [one for one, _ in words]), ("before", [two for _, two in words])):
                ends[method, next((word for word in found if word != OPEN), OPEN)] += 1
            single.update(look for look, (_, word) in zip(LOOKS, words, strict=True) if word == PASS)
        rows.append(
            {
                "differences": case.name,
                "margin": case.margin,
                "trials": count,
                "now_pass": ends["now", PASS] / count,
                "now_fail": ends["now", FAIL] / count,
                "before_pass": ends["before", PASS] / count,
                "before_fail": ends["before", FAIL] / count,
                "before_pass_at_the_worst_single_look": max(single.values(), default=0) / count,
            }
        )
        sys.stderr.write(f"{json.dumps(rows[-1])}\n")
    return rows


def first_count(reaches: Callable[[int], float]) -> int | None:
    """The first number of samples, in steps of a tenth, that reaches the promised power."""
    return next((n for n in (int(30 * 1.1**step) for step in range(85)) if reaches(n) >= POWER), None)


def power_rows(trials: int, rng: Rng) -> list[Row]:
    """What validity at every look costs: samples for nine verdicts in ten, looking once."""
    rows: list[Row] = []

    def both(name: str, margin: float, word: str, draw: Callable[[Rng, int], np.ndarray], *, binary: bool) -> None:
        def share(count: int, method: Callable[[Seen], str]) -> float:
            hits = 0
            for _ in range(trials):
                drops = draw(rng, count)
                scores = np.where(drops < 0, 0.0, 1.0) if binary else np.full(count, 0.5)
                hits += method(Seen(scores, scores - drops, 1.0)) == word
            return hits / trials

        new = first_count(lambda count: share(count, lambda seen: now(seen, margin)))
        old = first_count(lambda count: share(count, lambda seen: before(seen, margin, 1.0)))
        factor = None if new is None or old is None else round(new / old, 2)
        rows.append({"case": name, "margin": margin, "word": word, "now": new, "before": old, "factor": factor})
        sys.stderr.write(f"{json.dumps(rows[-1])}\n")

    for margin, disagreement in ((0.01, 0.0), (0.01, 0.02), (0.01, 0.05), (0.02, 0.08), (0.05, 0.02), (0.05, 0.2)):
        draw = partial(right_or_wrong, disagreement=disagreement, drop=0.0)
        both(f"right or wrong, {100 * disagreement:g} % differ, nothing lost", margin, PASS, draw, binary=True)
    for margin, disagreement in ((0.01, 0.05), (0.01, 0.1), (0.02, 0.08)):
        draw = partial(right_or_wrong, disagreement=disagreement, drop=0.03)
        both(f"right or wrong, {100 * disagreement:g} % differ, 3 points lost", margin, FAIL, draw, binary=True)
    for margin in (0.02, 0.01):
        both("normal, deviation 0.1, nothing lost", margin, PASS, partial(normal, drop=0.0), binary=False)
    both("normal, deviation 0.1, 3 points lost", 0.01, FAIL, partial(normal, drop=0.03), binary=False)
    return rows


def advice_rows(trials: int, rng: Rng, first: int = 100) -> list[Row]:
    """Does "about N samples would" keep its word? First 100 samples, then as many as the answer asks for."""
    rows: list[Row] = []
    for margin, disagreement in ((0.05, 0.02), (0.03, 0.05), (0.03, 0.1), (0.02, 0.02), (0.02, 0.05)):
        ends: Counter[str] = Counter()
        for _ in range(trials):
            equal = right_or_wrong(rng, 40_000, disagreement, 0.0)
            ends["equal"] += _follow(equal, margin, first, 1) == PASS
            border = right_or_wrong(rng, 40_000, max(disagreement, margin), margin)
            ends["border"] += _follow(border, margin, first, 4) == PASS
        rows.append(
            {
                "margin": margin,
                "disagreement": disagreement,
                "nothing_lost_passes_after_the_advice": ends["equal"] / trials,
                "loss_of_the_margin_passes_after_four": ends["border"] / trials,
            }
        )
    return rows


def _follow(drops: np.ndarray, margin: float, count: int, times: int) -> str:
    for turn in range(times + 1):
        test = Drops(*np.unique(drops[:count], return_counts=True), 1.0)
        word = test.verdict(margin, ALPHA).value
        if word != OPEN or turn == times:
            return word
        count = min(len(drops), max(count + 1, test.needed(margin, ALPHA) or len(drops)))
    return OPEN


def error_bar(trials: int) -> float:
    """The promise plus two standard errors of the simulation."""
    return ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / trials)


def kept(margins: list[Row], advice: list[Row], trials: int) -> bool:
    found = [(float(row[word] or 0.0), int(row["trials"] or 1)) for row in margins for word in ("now_pass", "now_fail")]
    found += [(float(row["loss_of_the_margin_passes_after_four"] or 0.0), trials) for row in advice]
    return all(share <= error_bar(count) for share, count in found)


def run(trials: int = 1000) -> dict[str, object]:
    fewer = max(1, trials // 4)
    margins = margin_rows(trials, np.random.default_rng(SEED))
    advice = advice_rows(fewer, np.random.default_rng(SEED))
    power = power_rows(fewer, np.random.default_rng(SEED))
    return {
        "trials": trials,
        "looks": list(LOOKS),
        "at_the_margin": margins,
        "advice": advice,
        "power": power,
        "met": kept(margins, advice, fewer) and shortcuts_agree(),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=1000)
    result = run(parser.parse_args().trials)
    text = json.dumps({"benchmark": "eval_power", **result}, indent=2, allow_nan=False)
    folder = Path(__file__).with_name("results")
    folder.mkdir(exist_ok=True)
    (folder / "eval_power.json").write_text(text + "\n")
    print(text)
    return 0 if result["met"] else 1


if __name__ == "__main__":
    sys.exit(main())
