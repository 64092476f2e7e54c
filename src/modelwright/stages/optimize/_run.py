"""The stage: read, run the passes in the order of the table, write, and report what each of them did."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from modelwright._disk import native_writes
from modelwright.stages.optimize._files import copy_source, keep_source, read_source, staying
from modelwright.stages.optimize._inventory import Snapshot
from modelwright.stages.optimize._refuse import refuse
from modelwright.stages.optimize._table import find_pass, resolve_passes
from modelwright.stages.optimize._types import OptimizeOutcome, OptimizeParams
from modelwright.stages.optimize._working_model import WorkingModel
from modelwright.worker import progress, task


@task
def run_optimize(model: str, workdir: str, params: OptimizeParams) -> OptimizeOutcome:
    """Run the passes on `model` and write `model.onnx` into `workdir`."""
    started = time.perf_counter()
    names = resolve_passes(params.passes)
    folder = Path(workdir)
    progress("read the model", 0.0)
    source = read_source(model)
    before = source.found
    refuse(before, names)
    bench = WorkingModel(source)
    stays = staying(source.path)
    if names or params.fix_dims or params.opset is not None:
        with scratch_folder(folder) as scratch:
            _work(bench, names, params, scratch)
            after, opset = bench.found, bench.opset
            progress("write the optimized model", 0.9)
            if not source.external and bench.is_still(source):
                keep_source(source, folder)
            else:
                bench.write(folder, stays)
    else:
        after, opset = before, bench.opset
        copy_source(source, folder)
    return _outcome(bench, (before, after), opset, params, time.perf_counter() - started)


@contextlib.contextmanager
def scratch_folder(workdir: Path) -> Iterator[Path]:
    """Inside the stage's own folder, and gone when the stage is done."""
    scratch = Path(tempfile.mkdtemp(prefix=".scratch-", dir=workdir))
    try:
        # Asked before the folder goes: without it there is room again.
        with native_writes(workdir, "optimize the model"):
            yield scratch
    finally:
        shutil.rmtree(scratch)


def _work(bench: WorkingModel, names: Sequence[str], params: OptimizeParams, scratch: Path) -> None:
    bench.declare(params)
    if ort_names := of_kind(names, "ort"):
        progress("run the onnxruntime passes", 0.1)
        bench.run_ort(ort_names, scratch)
    if fusions := of_kind(names, "transformers"):
        progress("run the transformer fusions", 0.5)
        bench.run_fusions(fusions)
    progress("run the rewrites", 0.7)
    bench.run_edits(of_kind(names, "rewrite", "surgery"))
    bench.tidy()


def of_kind(names: Sequence[str], *kinds: str) -> tuple[str, ...]:
    return tuple(name for name in names if find_pass(name).kind in kinds)


def _outcome(
    bench: WorkingModel, ends: tuple[Snapshot, Snapshot], opset: int, params: OptimizeParams, seconds: float
) -> OptimizeOutcome:
    before, after = ends
    asked = {find_pass(name).name for name in params.passes}
    run = resolve_passes(params.passes)
    idle = {step.name for step in bench.steps if not step.fired}
    return OptimizeOutcome(
        steps=tuple(bench.steps),
        not_fired=tuple(name for name in run if name in idle and name in asked),
        added=tuple(name for name in run if name not in asked),
        host_specific=tuple(name for name in run if find_pass(name).host_specific),
        nodes_before=before.nodes,
        nodes_after=after.nodes,
        ops_before=before.ops,
        ops_after=after.ops,
        opset=opset,
        session_seconds=bench.session_seconds,
        seconds=seconds,
    )
