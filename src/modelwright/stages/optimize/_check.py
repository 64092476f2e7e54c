"""Trying each pass by itself: which of them would change this model."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright._scratch import scratch
from modelwright.errors import InputError
from modelwright.graph import freeze_weights, model_bytes
from modelwright.stages.optimize._edits import edit_of
from modelwright.stages.optimize._files import objects, read_source
from modelwright.stages.optimize._inventory import Snapshot, effect, snapshot
from modelwright.stages.optimize._ort import OrtRequest
from modelwright.stages.optimize._refuse import refuse
from modelwright.stages.optimize._run import scratch_folder
from modelwright.stages.optimize._table import Pass, find_pass, passes, resolve_passes
from modelwright.stages.optimize._trace import probe_without_weights
from modelwright.stages.optimize._transformers import Fused, fuse, loaded_proto
from modelwright.stages.optimize._types import PassEffect
from modelwright.stages.optimize._without_weights import WeightlessModel, without_weights
from modelwright.worker import progress, run, task

if TYPE_CHECKING:
    import onnx_ir as ir
else:
    ir = lazy("onnx_ir")

_LIMIT_S = 3600.0


def try_passes(model: Path) -> tuple[PassEffect, ...]:
    """What each pass does to the model alone, found in a child."""
    names = tuple(item.name for item in passes())
    with scratch("check") as folder:
        call = check_passes.call(str(model), str(folder), names)
        return run(call, timeout=_LIMIT_S, size=model_bytes(model)).unwrap()


@task
def check_passes(model: str, workdir: str, names: Sequence[str] = ()) -> tuple[PassEffect, ...]:
    """What each pass does alone, that is beyond the passes it requires. No names means all of them.

    onnxruntime passes are tried on a copy whose big weights are zeros; the numbers do not matter to them.
    """
    rows = [find_pass(name) for name in names] or list(passes())
    with scratch_folder(Path(workdir)) as scratch:
        trials = _Trials(model, scratch)
        return tuple(_try(trials, row, index / len(rows)) for index, row in enumerate(rows))


def _try(trials: _Trials, row: Pass, share: float) -> PassEffect:
    progress(f"try {row.name}", share)
    start = time.perf_counter()
    try:
        before, after, done = trials.kinds[row.kind](row)
    except InputError as error:
        return PassEffect(row.name, False, 0, 0, (), None, problem=f"{error.problem}: {error.cause}")
    seconds = time.perf_counter() - start
    return effect(row.name, before, after, fired=done.fired, seconds=seconds, problem=done.problem)


class _Trials:
    """The untouched model, and a fresh copy of it for every trial."""

    def __init__(self, model: str, scratch: Path) -> None:
        self._path = model
        self._scratch = scratch
        refuse(snapshot(read_source(model).model), ())
        self._thin = without_weights(self._read(), scratch)
        self._probed: dict[OrtRequest, WeightlessModel] = {}
        self.kinds: dict[str, Callable[[Pass], tuple[Snapshot, Snapshot, Fused]]] = {
            "ort": self._ort,
            "transformers": self._fusion,
            "rewrite": self._edit,
            "surgery": self._edit,
        }

    def _read(self) -> ir.Model:
        source = read_source(self._path)
        message = source.message()
        freeze_weights(message)
        return objects(message, source.path)

    def _ort(self, row: Pass) -> tuple[Snapshot, Snapshot, Fused]:
        request = OrtRequest.of(resolve_passes([row.name]))
        before = self._probe(request.only(name for name in request.names if name != row.name))
        after = probe_without_weights(self._scratch, request)(before, request.names)
        return before.found, after.found, Fused(before.found != after.found)

    def _probe(self, request: OrtRequest) -> WeightlessModel:
        if request not in self._probed:
            self._probed[request] = probe_without_weights(self._scratch, request)(self._thin, request.names)
        return self._probed[request]

    def _fusion(self, row: Pass) -> tuple[Snapshot, Snapshot, Fused]:
        proto = loaded_proto(self._read())
        for name in resolve_passes(row.requires):
            fuse(proto, find_pass(name))
        before = snapshot(ir.from_proto(proto))
        done = fuse(proto, row)
        return before, snapshot(ir.from_proto(proto)), done

    def _edit(self, row: Pass) -> tuple[Snapshot, Snapshot, Fused]:
        model = self._read()
        before = snapshot(model)
        done = Fused(edit_of(row.name)(model) > 0)
        return before, snapshot(model), done
