"""A classifier that looks for its last eos (BART, eos 7): do perf and eval run whatever is drawn?

    python -m bench.support_bart

Ids that are drawn at random hold the token with a chance of a few percent, and without it the model fails. Twenty seeds
of made-up inputs each.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import modelwright as mw
from bench import written
from modelwright.errors import WrightError

NAME, SEEDS = "support_bart", 20


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        model, build = _model(Path(folder, "bart")), Path(folder, "build")
        mw.build(str(model), "cpu", output=build)
        perf = [_said(lambda seed=seed: _timed(build, seed)) for seed in range(SEEDS)]
        compared = [_said(lambda seed=seed: _compared(build, model, seed)) for seed in range(SEEDS)]
    failed = [word for word in (*perf, *compared) if word != "ran"]
    return {
        "seeds": SEEDS,
        "perf_ran": perf.count("ran"),
        "eval_ran": compared.count("ran"),
        "failed": failed,
        "met": not failed,
    }


def _model(folder: Path) -> Path:
    import torch
    from transformers import BartConfig, BartForSequenceClassification

    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=2000, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=37, decoder_ffn_dim=37, max_position_embeddings=64,
        eos_token_id=7, bos_token_id=0, pad_token_id=1, decoder_start_token_id=7, num_labels=3, init_std=0.3,
    )  # fmt: skip
    BartForSequenceClassification(config).save_pretrained(folder)
    return folder


def _timed(build: Path, seed: int) -> None:
    found = mw.perf(str(build), "cpu", data=mw.Data(seed=seed), iterations=3, warmup=1, wait=False)
    assert found.status == "complete", found.failure


def _compared(build: Path, model: Path, seed: int) -> None:
    data = mw.Data(seed=seed, samples=4)
    found = mw.evaluate(str(build), str(model), data=data, outputs=True, min_cosine=0.99999)
    assert found.verdict == "pass", found.reasons


def _said(work: Any) -> str:
    try:
        work()
    except (WrightError, AssertionError) as error:
        return str(error)[:200]
    return "ran"


if __name__ == "__main__":
    found = run()
    written.write(NAME, found)
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
