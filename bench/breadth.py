"""Every model type that transformers knows, as small as a rule makes it: which become a graph that agrees with PyTorch?

    python -m bench.breadth [--limit SECONDS] [MODEL_TYPE ...]

For each type the class of its first task that we know, else its plain model, is made from its own default
configuration, shrunk by rule, with seeded weights, and exported in a process of its own. A row ends as

- `agrees`: every graph of it gives PyTorch's answers (what the export stage checks, on its own samples)
- `fails`: the model was made, and is not a graph that agrees; `why` says what blocks it, `stage` where
- `not made`: PyTorch cannot make the model from its shrunk configuration, so nothing was asked of us

Rows are kept as they come in bench/results/breadth.jsonl, so a run that was ended goes on. `python -m bench breadth`
writes bench/results/breadth.json from all of them.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers.models.auto import modeling_auto

from bench.written import RESULTS
from modelwright.errors import WrightError
from modelwright.models import HfSource, resolve
from modelwright.stages.export import ExportParams, run_export
from modelwright.stages.export._classes import _TABLES, class_for_task

ROWS = RESULTS / "breadth.jsonl"
WANTED = 0.8
_CPU_S = 240  # of processor time: how busy a machine is says nothing about a model
_TRIAL_S = 7200
_MEMORY = 10 << 30
_MOST_WEIGHTS = 60_000_000
Row = dict[str, Any]

# The end of a setting's name → how large it may be. The first that fits counts.
_SMALL: tuple[tuple[str, int], ...] = (
    # Convolutions that read sound are listed beside their number; which layers are what is said layer by layer.
    (r"feat_extract", 1 << 30),
    (r"(experts_per_tok|experts_per_token|top_?k|topk_group|n_group)$", 1),
    (r"rotary_dim$", 8),
    (r"num_key_value_heads|num_kv_heads|n_kv_heads|kv_heads", 2),
    (r"(head|n_head|num_heads|heads)$", 4),
    (r"(layers|n_layer|num_layers|depth|blocks|n_blocks)$", 2),
    (r"(hidden_size|d_model|n_embd|embed_dim|hidden_dim|projection_dim|embedding_size|emb_dim|dim)$", 32),
    (r"(intermediate_size|ffn_dim|n_inner|d_ff|d_inner|mlp_dim)$", 64),
    (r"vocab_size$", 160),
    (r"experts$", 4),
    (r"num_queries$", 8),
    (r"(image_size|input_size|img_size)$", 64),
)
_NAMES = ("model_type", "transformers_version", "architectures", "dtype", "torch_dtype", "id2label", "label2id")
_MANY_HEADS = r"heads$"
# What follows from the number of layers: the configuration makes it anew.
_FOLLOWS = ("layer_types", "out_features", "out_indices", "stage_names", "per_layer_config", "mlp_layer_types")


def run() -> Row:
    """All that are not in the file yet; then what the file says."""
    trials()
    return summary()


def summary() -> Row:
    rows = sorted(_known().values(), key=lambda row: row["model_type"])
    said = Counter(row["state"] for row in rows)
    asked = said["agrees"] + said["fails"]
    blocked = Counter(row["kind"] for row in rows if row["state"] == "fails")
    share = said["agrees"] / asked if asked else 0.0
    return {
        "model_types": len(rows),
        "states": dict(said),
        "share_that_agrees": round(share, 3),
        "what_blocks_the_rest": dict(blocked.most_common()),
        "rows": rows,
        "met": len(rows) >= len(model_types()) and share >= WANTED,
    }


def trials(names: tuple[str, ...] = (), limit: float | None = None) -> None:
    known, began = _known(), time.monotonic()
    for name in names or model_types():
        if limit is not None and time.monotonic() - began > limit:
            return
        if name in known and not names:
            continue
        row = _trial(name)
        with ROWS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(
            f"{row['model_type']:<28}{row['state']:<10}{row['seconds']:>6.0f} s  {row['why'] or ''}"[:200], flush=True
        )


def model_types() -> tuple[str, ...]:
    """In an order that has nothing to do with names, so that the first hundred say something about all."""
    names = modeling_auto.MODEL_MAPPING_NAMES
    return tuple(sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest()))


def _known() -> dict[str, Row]:
    if not ROWS.exists():
        return {}
    rows = [json.loads(line) for line in ROWS.read_text().splitlines() if line.endswith("}")]
    return {row["model_type"]: row for row in rows}


def _trial(name: str) -> Row:
    """In a fork, which may die, hang or eat memory."""
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    child = multiprocessing.get_context("fork").Process(target=_child, args=(name, theirs))
    began = time.monotonic()
    child.start()
    theirs.close()
    row: Row = {"model_type": name, "class": None, "task": None, "state": "fails", "stage": "export"}
    try:
        while ours.poll(max(0.0, _TRIAL_S - (time.monotonic() - began))):
            row |= ours.recv()
        row |= {"kind": "time", "why": f"no end in {_TRIAL_S} s"}
    except EOFError:
        if "done" not in row:
            child.join(10)
            spent = child.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
            row |= (
                {"kind": "time", "why": f"no end in {_CPU_S} s of processor time"}
                if spent
                else {
                    "kind": "crash",
                    "why": f"the process ended with {child.exitcode}",
                }
            )
    child.kill()
    child.join()
    row.pop("done", None)
    return {"kind": None, "why": None, **row, "seconds": round(time.monotonic() - began, 1)}


def _child(name: str, pipe: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        for said in _steps(name):
            pipe.send(said)
    pipe.send({"done": True})
    pipe.close()
    os._exit(0)


def _steps(name: str) -> Iterator[Row]:
    task, kind = _class(name)
    yield {"task": task, "class": kind.__name__ if kind else None}
    said: Row = {"state": "not made", "stage": "model", "kind": "model", "why": "no class"}
    for rule in (_shrunk, _shallow) if kind else ():
        try:
            config = rule(kind.config_class())
            _count(kind, config)
        except Exception as error:  # noqa: BLE001 - libraries raise anything; each becomes a recorded reason
            said = said if said["state"] == "fails" else {**said, "why": _line(error)}
            continue
        config.architectures = [kind.__name__]
        found = _exported(config, task)
        said = found if found["state"] == "agrees" or said["state"] != "fails" else said
        # Sizes that do not fit together are the rule's fault: another rule may do better.
        if found.get("kind") not in ("inputs", "other", "internal"):
            break
    yield said


def _exported(config: Any, task: str | None) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        model, out = Path(folder, "model"), Path(folder, "out")
        out.mkdir()
        config.save_pretrained(model)
        try:
            source = resolve(str(model), task=task, random_weights=True)
            assert isinstance(source, HfSource)
            found = run_export(source, str(out), ExportParams(task=source.task, random_weights=True))
        except WrightError as error:
            return {"state": "fails", "kind": _kind(error.problem), "why": f"{error.problem}: {error.cause}"[:300]}
        except Exception as error:  # noqa: BLE001 - as above
            return {"state": "fails", "kind": "internal", "why": _line(error)}
    strategies = [part.strategy for part in found.components]
    return {"state": "agrees", "strategies": strategies, "nodes": sum(part.nodes for part in found.components)}


def _kind(problem: str) -> str:
    words = {
        "no export strategy": "exporter",
        "does not run on what can be made up": "inputs",
        "cannot be made up": "inputs",
        "does not return": "outputs",
        "task": "task",
        "cannot do": "task",
    }
    return next((kind for word, kind in words.items() if word in problem), "other")


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:240] if lines else ''}"


def _class(name: str) -> tuple[str | None, type[Any] | None]:
    """The first task that has a class for this type."""
    for task in (*_TABLES, "feature-extraction"):
        with contextlib.suppress(Exception):
            found = class_for_task(name, task)
            if found is not None and hasattr(transformers, found):
                return task, getattr(transformers, found)
    return None, None


def _count(kind: type[Any], config: Any) -> None:
    with torch.device("meta"):
        model = kind._from_config(config)
    weights = sum(parameter.numel() for parameter in model.parameters())
    if weights > _MOST_WEIGHTS:
        raise ValueError(f"{weights:,} weights when shrunk")


def _shrunk(config: Any) -> Any:
    """Every size by its name; lists of sizes keep their length."""
    return type(config)(**_resized(_sizes(config), _SMALL))


def _shallow(config: Any) -> Any:
    """Fewer layers, fewer words; the widths as they are, for types whose sizes hang together."""
    few = tuple(one for one in _SMALL if "layer" in one[0] or "vocab" in one[0] or "expert" in one[0])
    return type(config)(**_resized(_sizes(config), few))


def _sizes(config: Any) -> Row:
    known = config.to_dict()
    for gone in (*_NAMES, *_FOLLOWS):
        known.pop(gone, None)
    return known


def _resized(settings: Mapping[str, Any], rules: tuple[tuple[str, int], ...]) -> Row:
    found: Row = {}
    if any(isinstance(value, list) and re.search(_MANY_HEADS, str(name)) for name, value in settings.items()):
        # Widths grow with the heads from stage to stage, and windows fit the size of the image.
        rules = tuple(rule for rule in rules if "embed_dim" not in rule[0] and "image_size" not in rule[0])
    if "kv_lora_rank" in settings:
        # Keys and values come out of one projection for all heads.
        rules = tuple((pattern, 4 if "key_value" in pattern else most) for pattern, most in rules)
    for name, value in settings.items():
        if not isinstance(name, str) or name in _FOLLOWS:
            continue
        if isinstance(value, dict):
            found[name] = _resized(value, rules)
        elif isinstance(value, int) and not isinstance(value, bool):
            most = next((size for pattern, size in rules if re.search(pattern, name)), None)
            found[name] = value if most is None else min(value, most)
        else:
            found[name] = value
        if name in ("initializer_range", "init_std"):
            # With the usual 0.02 a tiny model says nearly nothing, and agreeing proves nothing.
            found[name] = 0.3
    tokens = [name for name in found if name.endswith("token_id") and isinstance(found[name], int)]
    vocabulary = found.get("vocab_size")
    for name in tokens:
        if isinstance(vocabulary, int) and found[name] >= vocabulary:
            found[name] = vocabulary - 1 - tokens.index(name)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.breadth", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=float)
    asked = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    trials(tuple(asked.names), asked.limit)
    sys.stdout.write(json.dumps({key: value for key, value in summary().items() if key != "rows"}, indent=2) + "\n")
