"""Poisoned data: arrays for `perf`, samples for `quantize` and `eval`, recipes for `build`."""

from __future__ import annotations

import io
import os
import pickle
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hostile.case import BAD, FINE
from hostile.models_bytes import CANARY, YAML, Payload

MODEL, DATA = "MODEL", "DATA"
PERF = ("perf", MODEL, "--data", DATA, "--iterations", "2")
RECIPE = ("build", "-m", MODEL, "--plan", "-r", DATA)
QUANTIZE = ("quantize", MODEL, "-p", "w8a8", "--samples", "2", "--data", DATA, "-o", "out")
EVAL = ("eval", MODEL, "--reference", MODEL, "--outputs", "--data", DATA)
GOOD = np.ones((1, 4), np.float32)
BOMB_BYTES = 1 << 29


@dataclass(frozen=True)
class Poison:
    """`make` writes the data and gives the path a user would type; `words` is the command that reads it."""

    name: str
    make: Callable[[Path], Path]
    words: tuple[str, ...]
    code: int = BAD


def _file(name: str, content: bytes | Callable[[], bytes]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content())
        return path

    return make


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array(out, array, allow_pickle=True)
    return out.getvalue()


def _header(text: str, version: tuple[int, int] = (1, 0), length: int | None = None, content: bytes = b"") -> bytes:
    """An array with a header written by hand."""
    line = text.encode("latin-1") + b"\n"
    size = len(line) if length is None else length
    packed = struct.pack("<H", size) if version == (1, 0) else struct.pack("<I", size)
    return b"\x93NUMPY" + bytes(version) + packed + line + content


def _said(shape: str, dtype: str = "'<f4'") -> str:
    return f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}"


def _zip(*members: tuple[str, bytes], packing: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packing) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, compress_type=packing)
    return out.getvalue()


def _npz(**arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def _bomb(name: str, shape: tuple[int, ...]) -> bytes:
    """Half a gigabyte of zeros in half a megabyte."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(f"{name}.npy", "w") as stream,
    ):
        stream.write(_header(_said(str(shape))))
        for _ in range(BOMB_BYTES >> 20):
            stream.write(b"\0" * (1 << 20))
    return out.getvalue()


def _flag(data: bytes, offset: int, value: int) -> bytes:
    """Changes a field of two bytes in the first local header and in the first entry of the directory."""
    changed = bytearray(data)
    struct.pack_into("<H", changed, offset, value)
    struct.pack_into("<H", changed, data.index(b"PK\x01\x02") + offset + 2, value)
    return bytes(changed)


def _wrong_checksum() -> bytes:
    data = bytearray(_npz(x=GOOD))
    data[data.index(b"\n") + 3] ^= 0xFF
    return bytes(data)


def _fifo(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        os.mkfifo(folder / name)
        return folder / name

    return make


def _folder(*files: tuple[str, bytes]) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "data"
        path.mkdir()
        for name, content in files:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(content)
        return path

    return make


def _link(target: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / "x.npz").symlink_to(target)
        return folder / "x.npz"

    return make


def _arrays(name: str, code: int = BAD, **arrays: np.ndarray) -> Poison:
    return Poison(name, _file("x.npz", lambda: _npz(**arrays)), PERF, code)


def _recipe(name: str, content: bytes, code: int = BAD, suffix: str = "toml") -> Poison:
    return Poison(f"recipe: {name}", _file(f"r.{suffix}", content), RECIPE, code)


def _samples(name: str, *files: tuple[str, bytes]) -> Poison:
    return Poison(f"samples: {name}", _folder(*files), EVAL)


def _member(name: str, content: bytes | Callable[[], bytes]) -> Poison:
    """The archive is sound, the array in it is not."""
    made = content if callable(content) else lambda: content
    return Poison(name, _file("x.npz", lambda: _zip(("x.npy", made()))), PERF)


def _png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


_PICKLE = pickle.dumps(Payload())
_OBJECTS = np.array([Payload()], dtype=object)
_DEEP = "[" * 100_000

_ARCHIVES = (
    Poison("archive: empty file", _file("x.npz", b""), PERF),
    Poison("archive: text", _file("x.npz", b"1, 2, 3, 4\n"), PERF),
    Poison("archive: one array, no archive", _file("x.npz", lambda: _npy(GOOD)), PERF),
    Poison("archive: a pickle", _file("x.npz", _PICKLE), PERF),
    Poison("archive: cut short", _file("x.npz", lambda: _npz(x=GOOD)[:-30]), PERF),
    Poison("archive: only a beginning", _file("x.npz", b"PK\x03\x04" + b"\0" * 40), PERF),
    Poison("archive: encrypted", _file("x.npz", lambda: _flag(_npz(x=GOOD), 6, 1)), PERF),
    Poison("archive: packed in an unknown way", _file("x.npz", lambda: _flag(_npz(x=GOOD), 8, 77)), PERF),
    Poison("archive: wrong checksum", _file("x.npz", _wrong_checksum), PERF),
    Poison("archive: an array twice", _file("x.npz", lambda: _zip(("x.npy", _npy(GOOD)), ("x.npy", _npy(GOOD)))), PERF),
    Poison("archive: a pickle inside", _file("x.npz", lambda: _zip(("x.npy", _PICKLE))), PERF),
    Poison("archive: a program inside", _file("x.npz", lambda: _zip(("x.py", b"import os"))), PERF),
    Poison("archive: a path out of it", _file("x.npz", lambda: _zip(("../../x.npy", _npy(GOOD)))), PERF),
    Poison("archive: half a gigabyte in half a megabyte", _file("x.npz", lambda: _bomb("x", (1, 1 << 27))), PERF),
    Poison("archive: the same under a name nobody knows", _file("x.npz", lambda: _bomb("z", (1 << 27,))), PERF),
    Poison("archive: nothing in it", _file("x.npz", lambda: _zip()), PERF),
    Poison("archive: a pipe", _fifo("x.npz"), PERF),
    Poison("archive: a device", _link("/dev/zero"), PERF),
    Poison("archive: a link to itself", _link("x.npz"), PERF),
    Poison("archive: a folder", _folder(), PERF),
    Poison("archive: not there", lambda folder: folder / "x.npz", PERF),
)
_ARRAYS = (
    _member("header of 4 TiB", lambda: _header(_said("(1, 1099511627776)"), content=b"\0" * 16)),
    _member("header with a negative dimension", lambda: _header(_said("(-1, 4)"), content=b"\0" * 16)),
    _member("header with a number of 5,000 digits", lambda: _header(_said(f"({'9' * 5000},)"))),
    _member("header of 5,000 brackets", lambda: _header("(" * 5000)),
    _member("header that is a program", lambda: _header(f"__import__('pathlib').Path('{CANARY}').touch()")),
    _member("header longer than the file", lambda: _header(_said("(1, 4)"), (2, 0), 2**31)),
    _member("header of another version", lambda: _header(_said("(1, 4)"), (9, 9))),
    _member("header without a shape", lambda: _header("{'descr': '<f4', 'fortran_order': False}")),
    _member("header of objects", lambda: _header(_said("(1, 4)", "'|O'"), content=_PICKLE)),
    _member("pickled objects", lambda: _npy(_OBJECTS)),
    _member("fewer bytes than the header says", lambda: _npy(GOOD)[:-8]),
    _member("more bytes than the header says", lambda: _npy(GOOD) + b"\0" * 8),
    _arrays("another name", y=GOOD),
    _arrays("a name with an escape", **{"x\x1b[31m": GOOD}),
    _arrays("one name too many", FINE, x=GOOD, other=GOOD),
    _arrays("doubles", FINE, x=GOOD.astype(np.float64)),
    _arrays("dates", x=np.zeros((1, 4), "datetime64[s]")),
    _arrays("text", x=np.full((1, 4), "abc")),
    _arrays("records", x=np.zeros((1, 4), [("a", "<f4")])),
    _arrays("four dimensions", x=GOOD[None, None]),
    _arrays("no dimensions", x=np.float32(1)),
    _arrays("five columns", x=np.ones((1, 5), np.float32)),
    _arrays("the other byte order", FINE, x=GOOD.astype(">f4")),
    _arrays("the other memory order", FINE, x=np.asfortranarray(np.ones((3, 4), np.float32))),
    _arrays("nothing but NaN", FINE, x=GOOD * np.nan),
)
_SHELL = b"data = '$(touch canary)'\n[quantize]\nmethod = 'entropy'\n"
_RECIPES = (
    _recipe("5,000 brackets", b"a = " + b"[" * 5000),
    _recipe("100,000 brackets in JSON", _DEEP.encode(), suffix="json"),
    _recipe("number of 5,000 digits", b"policy_version = " + b"9" * 5000),
    _recipe("number of 5,000 digits in JSON", b'{"policy_version": ' + b"9" * 5000 + b"}", suffix="json"),
    _recipe("infinity", b'{"data": {"seed": Infinity}}', suffix="json"),
    _recipe("no text", b"\xff\xfe\0"),
    _recipe("UTF-16", "precision = 'fp32'".encode("utf-16")),
    _recipe("YAML that asks for a command", YAML, suffix="yaml"),
    _recipe("a list", b"[]", suffix="json"),
    _recipe("the same key twice", b"target = 'cpu'\ntarget = 'qnn-npu'\n"),
    _recipe("unknown key", b"colour = 'red'\n"),
    _recipe("unknown key with an escape", b'"a\\u001b[31m" = 1\n'),
    _recipe("a section that is a number", b"quantize = 7\n"),
    _recipe("a stage with a list of lists", b"[optimize]\npasses = [[[]]]\n"),
    _recipe("a stage with a number for a list", b"[optimize]\npasses = 7\n"),
    _recipe("sizes that are no sizes", b"[optimize]\nfix_dims = [1, 2]\n"),
    _recipe("a precision that is a table", b"[precision]\na = 1\n"),
    _recipe("data that is a command", _SHELL),
    Poison("recipe: a pipe", _fifo("r.toml"), RECIPE),
    Poison("recipe: a folder", _folder(), RECIPE),
    _recipe("nothing in it", b"", FINE),
)
_ROW, _NAMED = b'{"x": [[1, 2, 3, 4]]}\n', b'{"x": "x.npy"}\n'
_SAMPLES = (
    Poison("calibration: pickled objects", _file("x.npz", lambda: _zip(("x.npy", _npy(_OBJECTS)))), QUANTIZE),
    Poison("calibration: half a gigabyte a sample", _file("x.npz", lambda: _bomb("x", (1, 1 << 27))), QUANTIZE),
    Poison("calibration: no samples", _file("x.npz", lambda: _npz(x=GOOD[:0])), QUANTIZE),
    Poison("calibration: a folder with one bad file", _folder(("0.npz", _npz(x=GOOD)), ("1.npz", b"PK")), QUANTIZE),
    Poison("calibration: an empty folder", _folder(), QUANTIZE),
    _samples("rows nested 100,000 deep", ("data.jsonl", b'{"x": ' + _DEEP.encode() + b"\n")),
    _samples("a line that is no JSON", ("data.jsonl", _ROW + b"{\n")),
    _samples("a line that is no text", ("data.jsonl", b"\xff\xfe\n")),
    _samples("an array with objects", ("data.jsonl", _NAMED), ("x.npy", _npy(_OBJECTS))),
    _samples("an array of 4 TiB", ("data.jsonl", _NAMED), ("x.npy", _header(_said("(1, 1099511627776)")))),
    _samples("shared arrays with objects", ("data.jsonl", _ROW), ("shared.npz", _zip(("w.npy", _npy(_OBJECTS))))),
    _samples("a picture of 100,000 × 100,000", ("0/a.png", _png(100_000, 100_000)), ("labels.txt", b"0\n")),
    _samples("a class without a line", ("evil/a.png", _png(1, 1)), ("labels.txt", b"good\n")),
    Poison("samples: two numbers of them", _file("x.npz", lambda: _npz(x=GOOD, label=np.zeros(2))), EVAL),
)
CASES: tuple[Poison, ...] = _ARCHIVES + _ARRAYS + _RECIPES + _SAMPLES
