"""Every model type that transformers knows, as small as a rule makes it: which become a graph that agrees with PyTorch?

    python -m bench.breadth [--limit SECONDS] [--again KIND] [--page] [MODEL_TYPE ...]

For each type the class of its first task that we know, else its plain model, is made from its own default
configuration, shrunk by rule (`bench/_small_configs.py`), with seeded weights, and exported in a process of its own. A
row ends as

- `agrees`: every graph of it gives PyTorch's answers (what the export stage checks, on its own samples), and among
  these is one that differs from sample to sample by more than the check allows
- `fails`: the model was made, and is not a graph that agrees; `why` says what blocks it, `stage` where
- `not made`: PyTorch cannot make the model here, from any shrunk configuration, so nothing was asked of us

Rows are kept as they come in bench/results/breadth.jsonl, so a run that was ended goes on. `python -m bench breadth`
writes bench/results/breadth.json from all of them, and goes on from there in another clone; who wants every row anew
deletes both.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import hashlib
import importlib
import json
import multiprocessing
import os
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from torch.onnx._internal._lazy_import import onnxscript_apis
from transformers.models.auto import modeling_auto

from bench._breadth_page import page
from bench._small_configs import RULES
from bench.written import RESULTS, read, write
from modelwright.errors import UsageError, WrightError
from modelwright.models import HfSource, resolve
from modelwright.stages.export import ExportOutcome, ExportParams, _load, _run, run_export
from modelwright.stages.export._classes import _TABLES, class_for_task
from modelwright.stages.export._parity import TOLERANCE, _difference

ROWS = RESULTS / "breadth.jsonl"
PAGE = Path(__file__).parents[1] / "docs" / "breadth.md"
LEAST, WANTED = 250, 0.8
_CPU_S = 90  # of processor time: how busy a machine is says nothing about a model
_TRIAL_S = 7200
_TOKENS = 32
_MEMORY = 10 << 30
_MOST_WEIGHTS = 200_000_000
Row = dict[str, Any]

# Where an export ended, by the words of its error.
_KINDS = {
    "no export strategy": "exporter",
    "needs a package": "package",
    "does not run on what can be made up": "inputs",
    "cannot be made up": "inputs",
    "no values can be made up": "inputs",
    "does not return": "outputs",
    "cache of": "cache",
    "has no class": "task",
    "unknown task": "task",
    "cannot do": "task",
}


def run() -> Row:
    """All that are not in the file yet; then what the file says."""
    trials()
    found = summary()
    PAGE.write_text(page(found))
    return found


def summary() -> Row:
    rows = sorted(_known().values(), key=lambda row: row["model_type"])
    said = Counter(row["state"] for row in rows)
    asked = said["agrees"] + said["fails"]
    share = said["agrees"] / asked if asked else 0.0
    return {
        "transformers": transformers.__version__,
        "torch": torch.__version__,
        "model_types": len(rows),
        "of": len(model_types()),
        "first": next((place for place, name in enumerate(model_types()) if name not in _known()), len(model_types())),
        "states": dict(said),
        "share_that_agrees": round(share, 3),
        "what_blocks_the_rest": dict(Counter(row["kind"] for row in rows if row["state"] == "fails").most_common()),
        "rows": rows,
        "met": len(rows) >= LEAST and share >= WANTED,
    }


def trials(names: tuple[str, ...] = (), limit: float | None = None) -> None:
    known, began = _known(), time.monotonic()
    wanted = [name for name in names or model_types() if names or name not in known]
    if wanted:
        _warm()
    for name in wanted:
        if limit is not None and time.monotonic() - began > limit:
            return
        row = _trial(name)
        with ROWS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(
            f"{row['model_type']:<28}{row['state']:<10}{row['seconds']:>6.1f} s  {row['why'] or ''}"[:200], flush=True
        )


def model_types() -> tuple[str, ...]:
    """In an order that has nothing to do with names, so that the first hundred say something about all."""
    names = modeling_auto.MODEL_MAPPING_NAMES
    return tuple(sorted(names, key=lambda name: hashlib.sha256(name.encode()).hexdigest()))


def _known() -> dict[str, Row]:
    """Rows of the last result, and what came since; a later row replaces an earlier one."""
    rows: list[Row] = read("breadth").get("rows", [])
    if ROWS.exists():
        rows = [*rows, *(json.loads(line) for line in ROWS.read_text().splitlines() if line.endswith("}"))]
    return {row["model_type"]: row for row in rows}


def _warm() -> None:
    """One export here, so that the exporters are loaded once and not in every fork."""
    torch.set_num_threads(1)
    # The same table of operators for every export; making it is a sixth of what a small one costs.
    apis = importlib.import_module(onnxscript_apis.__name__)
    apis.get_torchlib_ops = functools.cache(apis.get_torchlib_ops)
    for name in ("bert", "llama", "clip", "wav2vec2", "t5", "mixtral"):
        _class(name)
    with _silence():
        for _ in _steps("bert"):
            pass
    gc.collect()
    gc.freeze()


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
        child.join(10)
        if "seconds" not in row:
            row |= _ended(child.exitcode)
    child.kill()
    child.join()
    return {"kind": None, "why": None, **row}


def _ended(code: int | None) -> Row:
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"kind": "time", "why": f"no end in {_CPU_S} s of processor time", "seconds": _CPU_S}
    return {"kind": "crash", "why": f"the process ended with {code}", "seconds": 0.0}


def _child(name: str, pipe: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    with _silence():
        for said in _steps(name):
            pipe.send(said)
    pipe.send({"seconds": round(time.process_time(), 1)})
    pipe.close()
    os._exit(0)


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Libraries and native code write where they like."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        with Path(os.devnull).open("w") as file, contextlib.redirect_stdout(file):
            yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def _steps(name: str) -> Iterator[Row]:
    task, kind = _class(name)
    yield {"task": task, "class": kind.__name__ if kind else None}
    said: Row = {"state": "not made", "stage": "model", "kind": "model", "why": "no class"}
    if kind is not None and kind.forward is torch.nn.Module.forward:
        kind, said = None, {**said, "why": f"{kind.__name__} has no forward: only its parts can be run"}
    for rule in RULES if kind else ():
        try:
            config = rule(kind.config_class())
            _count(kind, config)
        except Exception as error:  # noqa: BLE001 - libraries raise anything; each becomes a recorded reason
            if said["state"] != "fails":
                said = {**said, "kind": _unmade(error), "why": _line(error)}
            continue
        config.architectures = [kind.__name__]
        found = {**_exported(config, task), "rule": rule.__name__}
        # What an earlier rule's model ran into says more than what a later one's did, unless that came further.
        if said["state"] != "fails" or _further(found) > _further(said):
            said = found
        # Sizes that do not fit together are the rule's fault: another rule may do better.
        if _further(found):
            break
    yield said


def _further(row: Row) -> bool:
    return row["state"] == "agrees" or row["kind"] in ("exporter", "constant", "package")


def _exported(config: Any, task: str | None) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        model, out = Path(folder, "model"), Path(folder, "out")
        out.mkdir()
        try:
            config.save_pretrained(model)
            source = resolve(str(model), task=task, random_weights=True)
            assert isinstance(source, HfSource)
            with _watched() as seen:
                found = _export(source, out)
        except WrightError as error:
            kind = next((kind for words, kind in _KINDS.items() if words in error.problem), "other")
            state = "not made" if kind == "package" else "fails"
            return {"state": state, "kind": kind, "why": f"{error.problem}: {error.cause}"[:600]}
        except Exception as error:  # noqa: BLE001 - as above
            return {"state": "fails", "kind": "internal", "why": _line(error)}
    return _judged(found, seen)


def _export(source: HfSource, out: Path) -> ExportOutcome:
    """With a short text, or what the model bears where that is shorter still."""
    try:
        return run_export(source, str(out), _params(source.task))
    except UsageError:
        return run_export(source, str(out), ExportParams(task=source.task, random_weights=True))


def _params(task: str) -> ExportParams:
    return ExportParams(task=task, random_weights=True, sequence_length=_TOKENS, cache_length=2 * _TOKENS)


def _judged(found: ExportOutcome, seen: list[Any]) -> Row:
    parts = found.components
    row: Row = {
        "state": "agrees",
        "kind": None,
        "stage": None,
        "strategies": [part.strategy for part in parts],
        "nodes": sum(part.nodes for part in parts),
        "inputs": [f"{spec.name}{list(spec.sizes)}" for spec in parts[0].inputs],
        "outputs": list(parts[0].outputs)[:8],
        "left_out": sorted({one.argument for part in parts for one in part.left_out}),
        "cosine": min(part.parity.cosine for part in parts),
        "spread": min(part.parity.spread for part in parts),
    }
    still = [part.name for part, pairs in zip(parts, seen, strict=True) if not _varies([answer for _, answer in pairs])]
    if still:
        # A graph that always gave the first answer would have passed too.
        why = f"{still[0]}: answers differ between samples by less than the check allows"
        row |= {"state": "fails", "kind": "constant", "stage": "parity", "why": why}
    return row


def _varies(answers: list[Any]) -> bool:
    """Whether PyTorch's own answers differ between samples by more than a graph may be off."""
    first, *others = answers
    bounds = {name: TOLERANCE * max(1.0, float(np.abs(value).max(initial=0.0))) for name, value in first.items()}
    return any(_difference(first[name], other[name]) > bounds[name] for other in others for name in first)


@contextlib.contextmanager
def _watched() -> Iterator[list[Any]]:
    """What PyTorch answered, part by part, while an export runs."""
    seen: list[Any] = []
    original, fresh = _run.references, _load._random

    def noted(part: Any, seed: int) -> Any:
        seen.append(original(part, seed))
        return seen[-1]

    _run.references = noted
    _load._random = lambda *args: _drawn(fresh(*args))
    try:
        yield seen
    finally:
        _run.references, _load._random = original, fresh


def _drawn(model: Any) -> Any:
    """With every matrix drawn: a router that starts as zeros ties all experts, and a head of zeros says nothing."""
    with torch.no_grad():
        for weight in model.parameters():
            still = weight.dim() > 1 and weight.is_floating_point() and weight.numel() and weight.min() == weight.max()
            if still and not weight.is_meta:
                weight.normal_(0.0, 0.3)
    return model


def _unmade(error: Exception) -> str:
    return "package" if isinstance(error, ImportError) else "model"


def _line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])[:300] if lines else ''}"


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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.breadth", description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--limit", type=float)
    parser.add_argument("--again", metavar="KIND", help="the rows that failed so once more")
    parser.add_argument("--page", action="store_true", help="write the rows to breadth.json and docs/breadth.md")
    asked = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if asked.page:
        write("breadth", summary())
        PAGE.write_text(page(read("breadth")))
        sys.exit(0)
    again = [row["model_type"] for row in _known().values() if asked.again and row["kind"] == asked.again]
    trials((*asked.names, *again), asked.limit)
    sys.stdout.write(json.dumps({key: value for key, value in summary().items() if key != "rows"}, indent=2) + "\n")
