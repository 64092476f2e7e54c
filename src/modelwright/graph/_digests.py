"""SHA-256 of tensors and declared types, independent of how the file stores them."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.graph._external import is_external, locate
from modelwright.graph._load import FileStamp, Graph, file_stamp
from modelwright.graph._skeleton import ByteRange
from modelwright.graph._types import STRING, stored_bytes

if TYPE_CHECKING:
    from concurrent import futures

    import onnx
    import onnx.numpy_helper as numpy_helper
else:
    futures = lazy("concurrent.futures")
    onnx = lazy("onnx")
    numpy_helper = lazy("onnx.numpy_helper")

TensorDigest = Callable[["onnx.TensorProto"], bytes]

_CHUNK = 1 << 20
# Under this size, handing the work to a thread costs more than the hash.
_WORTH_A_THREAD = 1 << 16
_MAX_THREADS = 8


def combine(*parts: bytes) -> bytes:
    """One digest of an ordered list; lengths are hashed too, so no two lists look alike."""
    lengths = struct.pack(f"<{len(parts)}Q", *map(len, parts))
    return hashlib.sha256(lengths + b"".join(parts)).digest()


def bag(parts: Iterable[bytes]) -> bytes:
    """One digest of a multiset: order is forgotten, repetition is not."""
    return combine(*sorted(parts))


class TensorDigests:
    """Hashes the large tensors of a model on threads and the small ones when asked.

    hashlib lets go of the interpreter lock, so weights cost about one SHA-256 pass divided by the cores.
    External files are read in chunks, not mapped: memory stays flat, and a file that shrinks under us
    is an error, not a crash.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._pool = futures.ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1))
        # Keyed by identity: graph.bodies keeps these objects alive.
        self._running: dict[int, futures.Future[bytes]] = {}
        main = graph.bodies[0].initializers
        self._on_disk = {id(main[index]): span for index, span in graph.on_disk.items()}

    def __enter__(self) -> TensorDigests:
        for body in self._graph.bodies:
            for tensor in body.tensors():
                if (stored_bytes(tensor.data_type, tensor.dims) or 0) >= _WORTH_A_THREAD:
                    self._running[id(tensor)] = self._pool.submit(self._hash, tensor)
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def __call__(self, tensor: onnx.TensorProto) -> bytes:
        """Digest of element type, shape and content; not of the name."""
        running = self._running.get(id(tensor))
        return running.result() if running else self._hash(tensor)

    def _hash(self, tensor: onnx.TensorProto) -> bytes:
        dims = tuple(tensor.dims)
        digest = hashlib.sha256(struct.pack(f"<qq{len(dims)}q", tensor.data_type, len(dims), *dims))
        if is_external(tensor):
            place = locate(self._graph, tensor)
            _update_from_file(digest, place.path, ByteRange(place.offset, place.length))
        elif span := self._on_disk.get(id(tensor)):
            _update_from_file(digest, self._graph.path, span, self._graph.stamp)
        elif tensor.data_type == STRING:
            digest.update(combine(*tensor.string_data))
        elif tensor.HasField("raw_data"):
            digest.update(tensor.raw_data)
        else:
            digest.update(_raw_form(tensor))
        return digest.digest()


def type_digest(declared: onnx.TypeProto) -> bytes:
    """Element type and dimensions as written: a number, a name or nothing."""
    kind = declared.WhichOneof("value") or ""
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(declared, kind)
        shape = combine(*map(_dim, tensor.shape.dim)) if tensor.HasField("shape") else b""
        return combine(kind.encode(), str(tensor.elem_type).encode(), shape)
    if kind in ("sequence_type", "optional_type"):
        return combine(kind.encode(), type_digest(getattr(declared, kind).elem_type))
    if kind == "map_type":
        mapped = declared.map_type
        return combine(kind.encode(), str(mapped.key_type).encode(), type_digest(mapped.value_type))
    return combine(kind.encode(), declared.SerializeToString(deterministic=True))


def _dim(dim: onnx.TensorShapeProto.Dimension) -> bytes:
    if dim.HasField("dim_value"):
        return b"value %d" % dim.dim_value
    return b"name " + dim.dim_param.encode() if dim.dim_param else b""


def _raw_form(tensor: onnx.TensorProto) -> bytes:
    """The little-endian bytes of a tensor written as float_data, int32_data and so on."""
    try:
        return numpy_helper.from_array(numpy_helper.to_array(tensor)).raw_data
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise InputError(
            f"tensor '{tensor.name}' is damaged",
            cause=f"its values do not fill its shape {list(tensor.dims)}",
            fix="Export the model again, or copy it again from where it works.",
        ) from error


def _update_from_file(digest: hashlib._Hash, path: Path, span: ByteRange, stamp: FileStamp | None = None) -> None:
    left = span.length
    buffer = memoryview(bytearray(min(_CHUNK, left)))
    try:
        with path.open("rb", buffering=0) as file:
            if stamp and file_stamp(os.fstat(file.fileno())) != stamp:
                raise EOFError("it changed since it was opened")
            file.seek(span.offset)
            while left:
                count = file.readinto(buffer[: min(left, _CHUNK)])
                if not count:
                    raise EOFError("it ended early")
                digest.update(buffer[:count])
                left -= count
    except (OSError, EOFError) as error:
        raise InputError(
            f"{path.name} cannot be read",
            cause=(error.strerror if isinstance(error, OSError) else None) or str(error),
            fix="Check that the file is complete and readable, then try again.",
        ) from error
