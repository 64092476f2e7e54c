"""How often `wright eval` errs, and how often it finds a planted loss, in simulated evaluations.

    python bench/eval_power.py [--trials 1000]

Writes bench/results/eval_power.json; exit 1 when a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist

import numpy as np

from modelwright.quality import EvalVerdict, paired
from modelwright.quality._eval_run import _contributions
from modelwright.quality._paired import Shape, binary_needed, mean_bounds, mean_needed, student_quantile
from modelwright.quality.tasks import Context, make_task

ALPHA, PROMISED_POWER, LOSS, ACCURACY = 0.05, 0.9, 0.03, 0.9
SEED = 505
Z = NormalDist().inv_cdf(1 - ALPHA)
Row = dict[str, float | int | str]
Scores = tuple[np.ndarray, np.ndarray]


def error_bar(trials: int) -> float:
    """The promise plus two standard errors of the simulation."""
    return ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / trials)


def right_or_wrong(rng: np.random.Generator, samples: int, disagreement: float, drop: float) -> Scores:
    """Two classifiers that differ on so many samples, the second worse by `drop`."""
    draw = rng.random(samples)
    lost, gained = (disagreement + drop) / 2, (disagreement - drop) / 2
    reference = (draw < ACCURACY).astype(float)
    candidate = reference.copy()
    candidate[draw < lost] = 0.0
    candidate[draw > 1 - gained] = 1.0
    return reference, candidate


def shares(trials: int, make: Callable[[], Scores], margin: float) -> dict[str, float]:
    seen = Counter(paired(*make(), margin=margin).verdict for _ in range(trials))
    return {word: seen[EvalVerdict(word)] / trials for word in ("pass", "fail", "inconclusive")}


def binary_rows(trials: int, rng: np.random.Generator) -> list[Row]:
    rows: list[Row] = []
    for margin, disagreement in ((0.01, 0.05), (0.01, 0.10), (0.015, 0.06), (0.02, 0.08)):
        stated = binary_needed(margin, disagreement, drop=LOSS)
        equal = binary_needed(margin, disagreement)

        def many(samples: int, drop: float, share: float = disagreement, limit: float = margin) -> dict[str, float]:
            return shares(trials, lambda: right_or_wrong(rng, samples, share, drop), limit)

        planted, none, border, at_equal = (
            many(stated, LOSS), many(stated, 0.0), many(stated, margin), many(equal, 0.0)
        )  # fmt: skip
        rows.append(
            {
                "margin": margin,
                "disagreement": disagreement,
                "stated_samples_for_3_points": stated,
                "loss_3_points_fail": planted["fail"],
                "loss_3_points_pass": planted["pass"],
                "no_loss_fail": none["fail"],
                "loss_of_the_margin_pass": border["pass"],
                "loss_of_the_margin_fail": border["fail"],
                "stated_samples_for_no_loss": equal,
                "no_loss_pass": at_equal["pass"],
            }
        )
    return rows


_SHAPES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "skewed": lambda rng, n: rng.exponential(size=n) - 1,
    "skewed the other way": lambda rng, n: 1 - rng.exponential(size=n),
    "one in seven differs": lambda rng, n: ((rng.random(n) < 1 / 7) * rng.exponential(size=n) - 1 / 7) / 0.515,
}


def real_rows(trials: int, rng: np.random.Generator) -> list[Row]:
    rows: list[Row] = []
    margin, spread = 0.02, 0.1
    for name, draw in _SHAPES.items():
        shape = Shape.of(spread * draw(rng, 200_000))
        passing = mean_needed(margin, shape)
        failing = mean_needed(margin, shape, drop=2 * margin)

        def many(samples: int, drop: float, noise=draw) -> dict[str, float]:  # type: ignore[no-untyped-def]
            def make() -> Scores:
                reference = 0.8 + 0.1 * rng.standard_normal(samples)
                return reference, reference - drop - spread * noise(rng, samples)

            return shares(trials, make, margin)

        none, border, twice = many(passing, 0.0), many(passing, margin), many(failing, 2 * margin)
        rows.append(
            {
                "differences": name,
                "stated_samples_for_no_loss": passing,
                "no_loss_pass": none["pass"],
                "no_loss_fail": none["fail"],
                "loss_of_the_margin_pass": border["pass"],
                "loss_of_the_margin_fail": border["fail"],
                "stated_samples_for_twice_the_margin": failing,
                "twice_the_margin_fail": twice["fail"],
            }
        )
    return rows


def skew_rows(trials: int, rng: np.random.Generator) -> list[Row]:
    """How often an upper or lower bound of the mean misses it: Student's t, and the one that is used."""
    rows: list[Row] = []
    for samples in (100, 400):
        for name, draw in _SHAPES.items():
            wrong = np.zeros(4)
            quantile = student_quantile(1 - ALPHA, samples - 1)
            for _ in range(trials):
                drops = draw(rng, samples)
                used = mean_bounds(drops)
                half = quantile * drops.std(ddof=1) / math.sqrt(samples)
                wrong += (used.high < 0, used.low > 0, drops.mean() + half < 0, drops.mean() - half > 0)
            upper, lower, t_upper, t_lower = (wrong / trials).tolist()
            rows.append(
                {
                    "samples": samples,
                    "differences": name,
                    "used_worst_side": max(upper, lower),
                    "students_t_worst_side": max(t_upper, t_lower),
                }
            )
    return rows


def exact_errors() -> Row:
    """Right or wrong, a true drop of exactly the margin: the probability of each word, summed over all outcomes."""
    worst = {"pass": 0.0, "fail": 0.0}
    count = 0
    for samples in (50, 100, 200, 400, 1000, 2000):
        for margin in (0.005, 0.01, 0.02, 0.03, 0.05):
            for disagreement in (margin * 1.001, margin * 1.2, margin * 2, margin * 4, 0.1, 0.2, 0.4):
                found = exact_error(samples, margin, disagreement)
                worst = {word: max(worst[word], found[word]) for word in worst}
                count += 1
    return {"combinations": count, "worst_pass_error": worst["pass"], "worst_fail_error": worst["fail"]}


def exact_error(samples: int, margin: float, disagreement: float) -> dict[str, float]:
    most = int(min(samples, samples * disagreement + 8 * math.sqrt(samples * disagreement) + 12))
    lost, gained = np.meshgrid(np.arange(most + 1.0), np.arange(most + 1.0), indexing="ij")
    rest = samples - lost - gained
    inside = rest >= 0
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, samples + 1)))])
    shares = (disagreement + margin) / 2, (disagreement - margin) / 2, 1 - disagreement
    chance = np.full(lost.shape, logs[samples])
    for counts, share in zip((lost, gained, np.where(inside, rest, 0)), shares, strict=True):
        chance += counts * math.log(share) - logs[counts.astype(int)]
    chance = np.where(inside, np.exp(chance), 0.0)
    # Tango's statistic as in the product, for whole arrays.
    b = -lost - gained + (2 * samples - lost + gained) * margin
    c = -gained * margin * (1 - margin)
    nuisance = (np.sqrt(np.maximum(b * b - 8 * samples * c, 0.0)) - b) / (4 * samples)
    error = np.sqrt(samples * (2 * nuisance + margin * (1 - margin)))
    excess = lost - gained - samples * margin
    passed, failed = (excess + 0.5) / error < -Z, (excess - 1.0) / error > Z
    return {"pass": float(chance[passed].sum()), "fail": float(chance[failed].sum())}


def perplexity_row(trials: int, rng: np.random.Generator, samples: int = 200) -> Row:
    """A metric that is no mean: the jackknife carries it. The loss is exactly what is allowed."""
    task = make_task("text-generation", Context(), {})
    margin = 0.01
    shift = math.log1p(margin)
    seen: Counter[EvalVerdict | None] = Counter()
    for _ in range(trials):
        tokens = rng.integers(20, 200, samples).astype(float)
        nats = tokens * (3.0 + 0.5 * rng.standard_normal(samples))
        worse = nats + tokens * (shift + 0.05 * rng.standard_normal(samples))
        sides = [
            _contributions(task, np.stack([side, tokens, tokens], axis=1))[1] for side in (nats, worse)
        ]  # less is better, so both change sign
        seen[paired(-sides[0], -sides[1], margin=margin, relative=True).verdict] += 1
    return {
        "samples": samples,
        "loss_of_the_margin_pass": seen[EvalVerdict.PASS] / trials,
        "loss_of_the_margin_fail": seen[EvalVerdict.FAIL] / trials,
    }


def naive_row(trials: int, rng: np.random.Generator, samples: int = 100) -> Row:
    """What comparing two numbers does: pass when the drop seen is at most the drop allowed."""
    margin = 0.01

    def passes(drop: float) -> float:
        pairs = (right_or_wrong(rng, samples, 0.07, drop) for _ in range(trials))
        return sum(one.mean() - other.mean() <= margin for one, other in pairs) / trials

    return {"samples": samples, "loss_3_points_pass": passes(LOSS), "no_loss_does_not_pass": 1 - passes(0.0)}


def kept(result: dict[str, list[Row]], trials: int) -> bool:
    error, power = error_bar(trials), PROMISED_POWER
    exact = result["exact"][0]
    good = max(float(exact["worst_pass_error"]), float(exact["worst_fail_error"])) <= ALPHA
    for row in (*result["right_or_wrong"], *result["real_valued"], *result["perplexity"]):
        for name, value in row.items():
            if name.startswith("loss_of_the_margin") or name == "no_loss_fail":
                good &= float(value) <= error
            if name in ("loss_3_points_fail", "no_loss_pass", "twice_the_margin_fail"):
                good &= float(value) >= power
    return good


def run(trials: int = 1000) -> dict[str, object]:
    rng = np.random.default_rng(SEED)
    result = {
        "exact": [exact_errors()],
        "students_t": skew_rows(2 * trials, rng),
        "right_or_wrong": binary_rows(trials, rng),
        "real_valued": real_rows(trials, rng),
        "perplexity": [perplexity_row(trials, rng)],
        "comparing_two_numbers": [naive_row(trials, rng)],
    }
    return {"trials": trials, **result, "met": kept(result, trials)}


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
