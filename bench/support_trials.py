"""Real models on the ladder: each trial is one `support.run`, from the claim to its last level, and one review of it.

    python -m bench.support_trials [NAME ...]

Trained models of `bench.zoo`, a ViT and a T5 that are trained here in a minute, and three families from their
configurations with seeded weights. Each has a folder of its own beside the store, so a run that was ended goes on, and
what is on record is not measured again. A trial that is begun with another version of modelwright begins anew. Run it
in a tree that is its commit: evidence of any other tree is stale for every review, and the result says so.

A trial is no test that has to come out well. Some are there for what the gate and the rows say where something is
wrong: what a review says of those is right when it is not `approve`.
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import modelwright as mw
from bench import written, zoo
from bench.support_models import (
    METRICS,
    Asked,
    by_chance,
    configured,
    fashion,
    fashion_rows,
    minilm,
    of_the_zoo,
    own_operator,
    recogniser,
    silero,
    t5,
    vilt,
    vit,
)
from modelwright import home
from modelwright.errors import WrightError
from modelwright.support import SupportReview, SupportRun, this_tool

NAME = "support_trials"
_EVERYDAY = 'precision = "w8a8"\n[quantize]\nop_types = ["all"]\nper_channel = false\npairs = "all"\n'


# What `wright debug --fix --target-drop 2pt` makes of it for magika: every Mul, Sub, Expand and ReduceSum in float, and
# two more nodes.
_ACTIVATION = "jax2tf_get_logits_/pjit_get_logits_/MagikaV2/ApplyActivation_1"
_REPAIRED = f"""precision = "w8a8"
[quantize]
op_types = ["Add", "Concat", "Conv", "Div", "Equal", "Exp", "Gemm", "GlobalMaxPool", "MatMul", "Max", "Reciprocal",
    "ReduceMax", "Reshape", "Slice", "Sqrt", "Squeeze", "Tanh", "Transpose", "Unsqueeze"]
nodes_to_exclude = ["{_ACTIVATION}/AddV2", "{_ACTIVATION}/Tanh"]
per_channel = false
pairs = "all"
"""


@dataclass(frozen=True)
class Trial:
    """`make` gives what `support.run` is asked; `recipe` is the contribution, as text. The number of seeds of the gate
    is part of the claim: five where a build takes seconds, fewer where a model is exported for each."""

    make: Callable[[Path], Asked]
    more: Mapping[str, Any] = field(default_factory=dict)
    recipe: str | None = None
    redrawn: int = 5
    """With how many seeds the reviewer asks the gate."""


def run(*names: str) -> dict[str, Any]:
    rows = {row["trial"]: row for row in written.read(NAME).get("rows", [])}
    for name in names or TRIALS:
        began, tool = time.monotonic(), this_tool()
        row = {"trial": name, "tool": tool.digest[:12], "commit": tool.commit, "dirty": tool.dirty}
        try:
            used = cpu_s()
            out, asked, found = _run(TRIALS[name], name)
            row |= {**told(found), "cpu_seconds": round(cpu_s() - used, 1)}
            used = cpu_s()
            row["review"] = reviewed(mw.support.review(out, **asked, seeds=TRIALS[name].redrawn))
            row["review"] |= {"cpu_seconds": round(cpu_s() - used, 1)}
        except zoo.Gone as error:
            row |= {"left_out": str(error)}
        except WrightError as error:
            row |= {"refused": f"{error.problem}: {error.cause}", "exit": error.exit_code}
        # Somebody else may have run another trial meanwhile.
        rows = {row["trial"]: row for row in written.read(NAME).get("rows", [])}
        rows[name] = {**row, "seconds": round(time.monotonic() - began, 1)}
        sys.stderr.write(json.dumps(rows[name]) + "\n")
        written.write(NAME, summed(rows))
    return summed(rows)


def summed(rows: Mapping[str, Any]) -> dict[str, Any]:
    listed = [rows[name] for name in TRIALS if name in rows]
    words = Counter(one["word"] for row in listed for one in row.get("rows", ()))
    gates = Counter(row["gate"] for row in listed if row.get("gate"))
    reached = {row["trial"]: row.get("reached") for row in listed}
    verdicts = {row["trial"]: row["review"]["verdict"] for row in listed if "review" in row}
    missing = [name for name in TRIALS if name not in rows]
    return {
        "gates": dict(gates),
        "words": dict(words),
        "reached": reached,
        "verdicts": verdicts,
        "not_run": missing,
        "rows": listed,
    }


def told(found: SupportRun) -> dict[str, Any]:
    return {
        "claim": found.claim_digest,
        "gate_seeds": found.claim.gate_seeds,
        "gate": None if found.gate is None else found.gate.word,
        "gate_reasons": () if found.gate is None else found.gate.reasons,
        "state": found.state,
        "reached": found.reached,
        "claim_met": found.claim_met,
        "gain": found.gain,
        "rows": [_line(row) for row in found.rows],
        "without": [_line(row) for row in found.base],
    }


def _line(row: Any) -> dict[str, Any]:
    shown = {"level": row.level, "case": f"{row.target} {row.precision}", "part": row.component, "word": row.word}
    return {**shown, "because": "; ".join(row.reasons)}


def reviewed(found: SupportReview) -> dict[str, Any]:
    """Row by row: what was claimed, what came out here, and the word for that."""
    rows = [{"row": row.name, "claimed": row.claimed, "found": row.found, "word": row.word} for row in found.rows]
    odd = [
        {**row, "because": one.reason} if row["word"] != "reproduced" else row
        for row, one in zip(rows, found.rows, strict=True)
    ]
    return {"verdict": found.verdict, "gate": list(found.gate), "reasons": list(found.reasons), "rows": odd}


def cpu_s() -> float:
    """Of this process and of all that it has waited for."""
    parts = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in parts)


def _run(trial: Trial, name: str) -> tuple[Path, Asked, SupportRun]:
    """The folder, what a reviewer has to be told of this machine, and the run."""
    place = home.home() / "bench" / "support" / name
    place.mkdir(parents=True, exist_ok=True)
    asked = {**trial.make(place), **trial.more}
    if trial.recipe is not None:
        (place / "recipe.toml").write_text(trial.recipe)
        asked["recipe"] = place / "recipe.toml"
    out = place / f"run-{this_tool().digest[:12]}"
    for other in place.glob("run-*"):
        if other != out:
            shutil.rmtree(other)
    model = asked.pop("model")
    found = mw.support.run(model, out, on_progress=lambda step: None, **asked)
    mw.support.report(out)
    here: Asked = {"model": model, "data": asked["data"].source if "data" in asked else None}
    # Whoever runs this has read the metrics: they lie beside this file.
    return out, {**here, "metric": METRICS if "metric" in asked else None}, found


_WITHOUT = 'precision = "w8a8"\n[quantize]\nnodes_to_exclude = ["/model/{}/Conv"]\n'
_L3 = {"ceiling": "L3"}
_NPU = {"targets": ["qnn-npu"], "precisions": ["w8a16"], "ceiling": "L4", "seeds": 2}
_INT8 = {"precisions": ["w8a8"], "seeds": 3}
TRIALS: dict[str, Trial] = {
    "magika": Trial(of_the_zoo("magika"), _L3),
    # As much as the zoo says of them may be lost: 200 pictures decide about no less.
    "lite0": Trial(of_the_zoo("lite0"), {**_L3, "max_drop": "3pt"}),
    "silero-vad": Trial(silero, _L3),
    "ppocr-rec": Trial(recogniser, _L3),
    "vit": Trial(vit, {**_L3, "seeds": 3}),
    "minilm": Trial(minilm, {**_L3, "seeds": 2, "max_drop": "0.05"}, redrawn=2),
    "vitpose": Trial(configured("vitpose"), {"task": "keypoint-detection", "seeds": 2}, redrawn=2),
    # It picks patches by their values: without its file nothing is traced.
    "vilt": Trial(vilt, {"family": "vilt", "seeds": 2}, redrawn=2),
    "owlvit": Trial(configured("owlvit"), {"seeds": 2}, redrawn=2),
    "blip": Trial(configured("blip"), {"seeds": 2}, redrawn=2),
    "t5": Trial(t5, {**_L3, "seeds": 2}, redrawn=2),
    "magika-everyday": Trial(of_the_zoo("magika"), {**_L3, "seeds": 2}, _EVERYDAY),
    # Other files than the tool's own. It holds on the rows of the claim, where the tool's own do too; on those of a
    # reviewer it may not.
    "magika-repaired": Trial(of_the_zoo("magika"), {**_L3, "seeds": 2, "max_drop": "3pt"}, _REPAIRED, redrawn=2),
    # The last convolution is what 8 bits ruin; the first one stays float anyway, because that is faster.
    "silero-vad-repaired": Trial(silero, {**_L3, "seeds": 2}, _WITHOUT.format("encoder/3/reparam_conv")),
    "silero-vad-inert": Trial(silero, {**_L3, "seeds": 2}, _WITHOUT.format("stft")),
    "magika-inert": Trial(of_the_zoo("magika"), {"seeds": 2}, "[validation]\nsamples = 16\n"),
    "magika-nothing-new": Trial(of_the_zoo("magika"), {"seeds": 2}, 'precision = "fp32"\n'),
    # What nobody here has: an operator of somebody's own domain. There is nothing to build it with.
    "own-operator": Trial(own_operator, {"seeds": 3}),
    "vitpose-by-chance": Trial(by_chance, {"task": "keypoint-detection", "seeds": 4}, redrawn=4),
    # 8 bits whose ranges come of made-up inputs: nothing shows that they are good.
    "fashion-made-up": Trial(fashion, _INT8),
    "fashion-npu": Trial(fashion_rows, _NPU, redrawn=2),
    "vit-npu": Trial(vit, _NPU, redrawn=2),
    "silero-vad-npu": Trial(silero, _NPU, redrawn=2),
    "lite0-npu": Trial(of_the_zoo("lite0"), {**_NPU, "max_drop": "3pt"}, redrawn=2),
    "magika-openvino": Trial(of_the_zoo("magika"), {"targets": ["openvino-npu"], "seeds": 1}, redrawn=1),
    "minilm-everyday": Trial(of_the_zoo("minilm"), {**_L3, "seeds": 2, "max_drop": "0.05"}, _EVERYDAY, redrawn=2),
}


if __name__ == "__main__":
    run(*sys.argv[1:])
