"""What the ladder costs beside the bare commands, in CPU time: each in a home of its own, one after the other.

    python -m bench.support_cost [ladder] [ci]

Bare is what somebody would type for the same levels: `build`, then `eval --outputs` against PyTorch on as many samples
(8 inputs of 3 seeds), then `eval --task` where there are labels, then for L4 `perf` with as many sessions of as many
seconds. `probe` is timed on the same model. What `run` and `review` cost is in the rows of `support_review` and
`support_trials`. `ci` is what `.ci/run` does of it: every entry of the catalogue is linted, the tiny ones are built
again, and one contribution is reviewed (`bench.recipes` does the same without the suite).
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench import written
from bench.recipes import ROOT

NAME, ROUNDS = "support_cost", 3
CEILINGS = ("L3", "L4")
_REVIEWED = "test_an_honest_contribution_is_approved"


def run(*names: str) -> dict[str, Any]:
    """What is not asked for stays as it was."""
    found = {name: written.read(NAME).get(name) for name in PARTS}
    found |= {name: PARTS[name]() for name in names or PARTS}
    return {**found, "met": all(part["met"] for part in found.values() if part is not None)}


def ladder() -> dict[str, Any]:
    found: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _model(place)
        for number in range(ROUNDS):
            for ceiling in CEILINGS:
                home = f"{ceiling}-{number}"
                found.setdefault(f"ladder to {ceiling}", []).append(_cpu_s(place, f"l{home}", _ladder(home, ceiling)))
                found.setdefault(f"bare to {ceiling}", []).append(_cpu_s(place, f"b{home}", *_bare(home, ceiling)))
            found.setdefault("probe", []).append(_cpu_s(place, f"p{number}", ["support", "probe", "bert"]))
    ratios = {one: round(min(found[f"ladder to {one}"]) / min(found[f"bare to {one}"]), 3) for one in CEILINGS}
    probe = min(found["probe"])
    met = max(ratios.values()) <= 1.1 and probe <= 15
    return {"rounds": ROUNDS, "cpu_s": found, "ladder_to_bare": ratios, "probe_cpu_s": probe, "met": met}


def ci() -> dict[str, Any]:
    """In CPU time of one process after the other; a job has two cores."""
    python = [sys.executable, "-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider"]
    parts = {
        "lint": [str(Path(sys.executable).with_name("wright")), "catalog", "lint"],
        "tiny entries built again": [*python, "tests/ep/recipes/test_tiny_entries.py"],
        "one contribution reviewed": [*python, f"tests/ep/support/test_review.py::{_REVIEWED}"],
    }
    spent = {name: _spent(words) for name, words in parts.items()}
    minutes = round(sum(spent.values()) / 60, 2)
    return {"cpu_s": spent, "cpu_minutes": minutes, "met": minutes <= 6}


def _spent(words: list[str]) -> float:
    before = _used()
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    return round(_used() - before, 1)


def _ladder(home: str, ceiling: str) -> list[str]:
    words = ["support", "ladder", "bert", "-o", f"out{home}", "--ceiling", ceiling, "--data", "rows.npz"]
    return [*words, "--task", "text-classification", "--max-drop", "5pt"]


def _bare(home: str, ceiling: str) -> list[list[str]]:
    build, data = f"build{home}", ["--reference", "bert", "--data", "rows.npz"]
    calls = [
        ["build", "bert", "--target", "cpu", "-o", build, "--data", "rows.npz"],
        ["eval", build, *data, "--outputs", "--samples", "24"],
        ["eval", build, *data, "--task", "text-classification", "--max-drop", "5pt"],
    ]
    timed = ["perf", build, "--target", "cpu", "--sessions", "5", "--duration", "1"]
    return calls if ceiling == "L3" else [*calls, timed]


def _cpu_s(place: Path, home: str, *calls: list[str]) -> float:
    before = _used()
    for words in calls:
        call = [str(Path(sys.executable).with_name("wright")), *words, "-q"]
        env = {**os.environ, "MODELWRIGHT_HOME": str(place / home)}
        done = subprocess.run(call, cwd=place, env=env, capture_output=True, text=True, check=False)
        # Whether a machine is quiet enough for L4 is no question of cost; a ladder that ends lower would be cheaper.
        if done.returncode not in ((0, 1, 6) if "L4" in words else (0, 6)):
            raise RuntimeError(f"{words}: {done.stderr}")
    return round(_used() - before, 2)


def _used() -> float:
    found = resource.getrusage(resource.RUSAGE_CHILDREN)
    return found.ru_utime + found.ru_stime


def _model(place: Path) -> None:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=32, num_labels=3, initializer_range=0.3,
    )  # fmt: skip
    model = BertForSequenceClassification(config).eval()
    model.save_pretrained(place / "bert")
    ids = np.random.default_rng(0).integers(5, 99, (200, 32))
    with torch.no_grad():
        labels = model(torch.from_numpy(ids)).logits.argmax(-1).numpy()
    ones, zeros = np.ones_like(ids), np.zeros_like(ids)
    np.savez(place / "rows.npz", input_ids=ids, attention_mask=ones, token_type_ids=zeros, label=labels)


PARTS = {"ladder": ladder, "ci": ci}

if __name__ == "__main__":
    done = run(*sys.argv[1:])
    written.write(NAME, done)
    sys.stdout.write(json.dumps(done, indent=2) + "\n")
