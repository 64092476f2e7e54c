"""Dask speaks pickle. Here a pickle may name only what the wire needs: anything else is refused before it runs."""

from __future__ import annotations

import contextlib
import importlib
import io
import pickle
import threading
from collections.abc import Iterator
from typing import Any

_USERS = (
    "distributed.protocol.pickle",
    "distributed.client",
    "distributed.scheduler",
    "distributed.shuffle._core",
    "distributed.shuffle._pickle",
)
_NAMES = {
    "modelwright.farm.cluster._calls": ("run_job", "run_verb", "tell_facts", "put_piece", "get_piece", "stop_job"),
    "builtins": ("bytes", "str", "int", "float", "dict", "list", "tuple", "set", "frozenset", "bool", "bytearray"),
    "dask._expr": ("Expr._reconstruct", "LLGExpr"),
    "dask._task_spec": ("Task",),
    "distributed.comm.core": ("CommClosedError", "FatalCommClosedError"),
    "distributed.core": ("RPCClosed",),
    "distributed.shuffle._worker_plugin": ("ShuffleWorkerPlugin",),
    "distributed.scheduler": ("KilledWorker", "NoValidWorkerError", "WorkerState"),
    "tblib": ("Code", "Frame", "Traceback"),
    "tblib.pickling_support": ("unpickle_exception", "unpickle_exception_with_attrs", "unpickle_traceback"),
}
_ERRORS = ("builtins", "asyncio.exceptions")
# Handlers of a worker that take code or files from whoever is connected.
REFUSED = ("upload_file", "run_coroutine", "actor_execute", "actor_attribute", "update_data", "benchmark_disk")


class ForbiddenPickleError(pickle.UnpicklingError):
    """Somebody sent what is no part of the protocol."""


class _NarrowUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if name not in _NAMES.get(module, ()) and not _plain_error(module, name):
            raise ForbiddenPickleError(f"{module}.{name} may not come over the wire")
        return super().find_class(module, name)


def _plain_error(module: str, name: str) -> bool:
    found = getattr(importlib.import_module(module), name, None) if module in _ERRORS else None
    return isinstance(found, type) and issubclass(found, Exception)


class _Guarded:
    """Stands where dask's modules have the standard library's `pickle`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(pickle, name)

    @staticmethod
    def loads(data: Any, *, buffers: Any = (), **_: Any) -> Any:
        return _NarrowUnpickler(io.BytesIO(data), buffers=buffers).load()

    @staticmethod
    def load(file: Any, *, buffers: Any = (), **_: Any) -> Any:
        return _NarrowUnpickler(file, buffers=buffers).load()


_lock = threading.Lock()
_inside = 0


@contextlib.contextmanager
def guarded() -> Iterator[None]:
    """As long as this lasts, dask in this process unpickles nothing else."""
    global _inside
    with _lock:
        _inside += 1
        _stand(_Guarded())
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _stand(pickle)


def _stand(found: Any) -> None:
    for name in _USERS:
        vars(importlib.import_module(name))["pickle"] = found
