"""A store as a team has it after a matrix of 30 models for 8 targets, filled as real ones are."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace
from typing import Any

from modelwright import evidence, farm
from modelwright.evidence import RecordedModel, RecordedVerdict, RecordHead
from modelwright.farm import (
    EIGHT,
    CellAccuracy,
    CellFacts,
    CellFailure,
    CellPerf,
    CellStatus,
    MatrixCell,
    PartTime,
)
from modelwright.models import FileDigest
from modelwright.store import Store
from support import results

MODELS = 30
_FAMILIES = ("resnet", "bert", "vit", "whisper-tiny", "mobilenet", "all-minilm")
_TASKS = ("image-classification", "text-classification", "image-classification", "automatic-speech-recognition")


def digest(*words: Any) -> str:
    return hashlib.sha256(" ".join(map(str, words)).encode()).hexdigest()


def fill(store: Store, models: int = MODELS) -> None:
    """Cells in every state, with times for CPUs, scores for all, and the records that they cite."""
    rng, ledger = random.Random(7), store.ledger()
    environment = evidence.read_environment()
    cells = [_cell(number, target) for number in range(models) for target in EIGHT]
    farm.note_order(ledger, cells[: len(cells) // 2], {"to": None, "output": None})
    farm.note_order(ledger, cells, {"to": "oci://registry.example/models", "output": None})
    for place, cell in enumerate(cells):
        ledger.append(cell.id, *_event(store, cell, place, rng, environment))
    ledger.close()
    for number, payload in enumerate((results.tune(), results.compare(), results.debug(40), results.analyses(60))):
        name = _name(number)
        _keep(store, payload, name, "cpu", digest(name, "cpu"), environment)


def _name(number: int) -> str:
    return f"{('acme', 'orbit', 'lumen')[number % 3]}/{_FAMILIES[number % 6]}-{number:02}"


def _cell(number: int, target: str) -> MatrixCell:
    return MatrixCell(digest(number, target), _name(number), target, task=_TASKS[number % 4])


def _event(store: Store, cell: MatrixCell, place: int, rng: random.Random, environment: Any) -> tuple[str, Any]:
    if place % 29 == 3:
        wrong = CellFailure(
            "target", f"{cell.target} says no to model", "2 of 120 nodes compute something else", "debug"
        )
        return "failed", CellStatus(cell, "failed", attempt=1, failure=wrong).note
    if place % 41 == 5:
        crash = CellFailure("crash", "the worker of quantize failed", "it crashed with SIGSEGV", "see the log", "a.log")
        return "failed", CellStatus(cell, "failed", attempt=2, failure=crash).note
    nodes = rng.randrange(60, 400)
    asked = cell.target in ("qnn-npu", "cpu", "openvino-cpu")
    facts = CellFacts(
        key=digest(cell.id, "key"),
        digest=digest(cell.id, "build"),
        bytes=rng.randrange(900_000, 400_000_000),
        precision={"cpu": "w8a8", "qnn-npu": "w8a16"}.get(cell.target, "fp16"),
        gate=True if place % 17 else None,
        asked=True if asked else None,
        cosine=rng.uniform(0.97, 0.99999),
        nodes=nodes if asked else None,
        on_target=nodes - rng.randrange(0, 4) if asked else None,
        simulated=cell.target == "qnn-npu",
        compiled=cell.target == "qnn-npu",
        reason=None if asked else "no such EP can be asked on this machine",
        seconds=rng.uniform(3, 90),
        cpu_seconds=rng.uniform(3, 150),
        peak_rss_bytes=rng.randrange(1 << 28, 1 << 31),
        ran=3,
        reused=2,
        evidence=(digest(cell.id, "gate"),),
    )
    perf, score = _perf(store, cell, facts, rng, environment), _score(store, cell, facts, rng, environment)
    state = "built" if facts.gate is None else "published" if place % 3 else "validated"
    return state, CellStatus(cell, state, attempt=1, facts=facts, perf=perf, accuracy=score).note


def _perf(store: Store, cell: MatrixCell, facts: CellFacts, rng: random.Random, environment: Any) -> CellPerf:
    if cell.target not in ("cpu", "openvino-cpu"):
        return CellPerf(facts.digest, reason="no machine has the device")
    base = results.perf(3)
    p50 = rng.uniform(0.4, 80)
    latency = replace(base.latency, p50_ms=p50, p90_ms=p50 * 1.1, mean_ms=p50, min_ms=p50 * 0.9, max_ms=p50 * 1.4)
    payload = replace(base, latency=latency, model=cell.model, op_trace=None, sessions=(), timing_valid=True)
    record = _keep(store, payload, cell.model, cell.target, facts.digest, environment)
    return CellPerf(facts.digest, None, (PartTime("model", p50, latency.p90_ms, record),))


def _score(store: Store, cell: MatrixCell, facts: CellFacts, rng: random.Random, environment: Any) -> CellAccuracy:
    if cell.target not in ("cpu", "qnn-npu", "openvino-cpu"):
        return CellAccuracy(facts.digest, reason="it is not scored on this target")
    reference = rng.uniform(0.7, 0.95)
    value = reference - rng.uniform(-0.002, 0.02)
    base = results.evaluation()
    values = replace(base.values, candidate=value, reference=reference, drop=reference - value)
    pair = replace(base.comparison, low=reference - value - 0.004, high=reference - value + 0.004)
    payload = replace(
        base, values=values, comparison=pair, scores=(), outputs=(), failures=(), data=replace(base.data, selected=1000)
    )
    record = _keep(store, payload, cell.model, cell.target, facts.digest, environment)
    metric = None if payload.metric is None else payload.metric.name
    return CellAccuracy(facts.digest, metric, value, reference, 1000, cell.target, record=record)


def _keep(store: Store, payload: Any, name: str, target: str, sha: str, environment: Any) -> str:
    head = RecordHead(
        kind=payload.kind,
        protocol=f"{payload.kind}-1",
        made_at=evidence.now(),
        call=("wright", payload.kind, name, "--target", target),
        models=(RecordedModel("model", name, (FileDigest("model.onnx", sha, 1000),)),),
        targets=(target,),
        data=(),
        parameters={},
        verdict=RecordedVerdict("pass", "judge-1") if payload.kind == "eval" else None,
        environment=environment,
    )
    record = evidence.make_record(head, payload)
    evidence.keep_record(store, record)
    return record.id
