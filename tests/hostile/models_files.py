"""Things on disk that are not the plain file a model should be, and weights in files beside it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import onnx
from onnx import TensorProto

from hostile.case import BAD, FINE, USAGE, Case
from support import models

PATH = "model.onnx"


def _folder(folder: Path) -> Path:
    (folder / PATH).mkdir()
    return folder / PATH


def _fifo(folder: Path) -> Path:
    os.mkfifo(folder / PATH)
    return folder / PATH


def _socket(folder: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as listening:
        here = Path.cwd()
        os.chdir(folder)  # the name of a socket may have 100 characters
        listening.bind(PATH)
        os.chdir(here)
    return folder / PATH


def _link(target: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / PATH).symlink_to(target)
        return folder / PATH

    return make


def _named(name: str) -> Callable[[Path], Path]:
    return lambda folder: models.save(models.mlp(), folder, name)


def _absent(name: str) -> Callable[[Path], Path]:
    return lambda folder: folder / name


def _below_a_file(folder: Path) -> Path:
    return models.save(models.mlp(), folder) / "model.onnx"


def _huge(folder: Path) -> Path:
    path = models.save(models.mlp(), folder)
    os.truncate(path, 3 << 30)
    return path


def _surrogate(folder: Path) -> Path:
    path = os.fsdecode(b"m\xff\xfe.onnx")
    return models.save(models.mlp(), folder, path)


def _external(change: Callable[[onnx.TensorProto, Path], None]) -> Callable[[Path], Path]:
    """A model with its weights beside it, after `change` had its way with the first of them."""

    def make(folder: Path) -> Path:
        path = models.save_external(models.mlp(), folder)
        proto = onnx.load(path, load_external_data=False)
        change(proto.graph.initializer[0], folder)
        path.write_bytes(proto.SerializeToString())
        return path

    return make


def _entry(key: str, value: str) -> Callable[[Path], Path]:
    def change(tensor: onnx.TensorProto, _: Path) -> None:
        kept = [(entry.key, entry.value) for entry in tensor.external_data if entry.key != key]
        del tensor.external_data[:]
        for name, text in [*kept, (key, value)]:
            tensor.external_data.add(key=name, value=text)

    return _external(change)


def _secret(folder: Path) -> None:
    (folder.parent / "secret.bin").write_bytes(b"\x42" * 4096)


def _outside(location: Callable[[Path], str]) -> Callable[[Path], Path]:
    """The weights are said to be in a file that exists and is none of the model's."""

    def make(folder: Path) -> Path:
        _secret(folder)
        return _entry("location", location(folder))(folder)

    return make


def _data(change: Callable[[Path], None]) -> Callable[[Path], Path]:
    """The data file itself is changed after the model was written."""

    def make(folder: Path) -> Path:
        path = models.save_external(models.mlp(), folder)
        change(folder / "model.onnx.data")
        return path

    return make


def _replace(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(data: Path) -> None:
        data.unlink()
        make(data)

    return change


def _leave(data: Path) -> None:
    _secret(data.parent)
    data.symlink_to(data.parent.parent / "secret.bin")


def _no_keys(tensor: onnx.TensorProto, _: Path) -> None:
    del tensor.external_data[:]


def _strings(tensor: onnx.TensorProto, _: Path) -> None:
    tensor.data_type = TensorProto.STRING


def _negative(tensor: onnx.TensorProto, _: Path) -> None:
    tensor.dims[0] = -4


def _immense(tensor: onnx.TensorProto, _: Path) -> None:
    tensor.dims[:] = [2**62, 4]


_FILES = (
    Case("a folder", _folder, BAD, BAD),
    Case("a pipe nobody writes to", _fifo, BAD, BAD),
    Case("a socket", _socket, BAD),
    Case("a link to /dev/zero", _link("/dev/zero"), BAD, BAD),
    Case("a link to /dev/null", _link("/dev/null"), BAD),
    Case("a link to /dev/tty", _link("/dev/tty"), BAD),
    Case("a link to the memory of a process", _link("/proc/self/mem"), BAD),
    Case("a link to nothing", _link("gone.onnx"), BAD, BAD),
    Case("a link to itself", _link(PATH), BAD, BAD),
    Case("no such file", _absent("absent.onnx"), BAD, BAD),
    Case("a name of 300 letters", _absent("n" * 300 + ".onnx"), BAD, BAD),
    Case("a path of 5,000 letters", _absent("/".join(["d" * 99] * 50) + "/m.onnx"), BAD, BAD),
    Case("a path through a file", _below_a_file, BAD),
    Case("three gigabytes of nothing behind a model", _huge, BAD, BAD),
    Case("a file name with a newline", _named("a\nb.onnx"), FINE),
    Case("a file name with markup", _named("[red]a[on blue].onnx"), FINE),
    Case("a file name with an escape", _named("a\x1b[31mb.onnx"), FINE),
    Case("a file name that is no UTF-8", _surrogate, USAGE),
    Case("a file name with blanks and quotes", _named(" '\"$(touch canary)`touch canary`.onnx"), FINE, FINE),
)
_EXTERNAL = (
    Case("external: absolute path", _outside(lambda f: str(f.parent / "secret.bin")), BAD, BAD),
    Case("external: up and out", _outside(lambda _: "../secret.bin"), BAD, BAD),
    Case("external: up and out behind a folder", _outside(lambda _: "a/../../secret.bin"), BAD),
    Case("external: up and out with backslashes", _outside(lambda _: "..\\secret.bin"), BAD),
    Case("external: drive letter", _entry("location", "C:\\secret.bin"), BAD),
    Case("external: share", _entry("location", "\\\\host\\share\\secret.bin"), BAD),
    Case("external: environment of the process", _entry("location", "/proc/self/environ"), BAD),
    Case("external: web address", _entry("location", "http://localhost/w.bin"), BAD),
    Case("external: no location", _entry("location", ""), BAD),
    Case("external: the folder itself", _entry("location", "."), BAD),
    Case("external: NUL in the location", _entry("location", "model.onnx.data\0"), BAD),
    Case("external: newline in the location", _entry("location", "model\n.data"), BAD),
    Case("external: location of 5,000 letters", _entry("location", "x" * 5000), BAD),
    Case("external: memory address", _entry("location", "*/_ORT_MEM_ADDR_/*"), BAD, BAD),
    Case("external: missing file", _data(Path.unlink), BAD, BAD),
    Case("external: a folder", _data(_replace(Path.mkdir)), BAD),
    Case("external: a pipe", _data(_replace(os.mkfifo)), BAD, BAD),
    Case("external: a link to /dev/zero", _data(_replace(lambda data: data.symlink_to("/dev/zero"))), BAD, BAD),
    Case("external: a link to a file that is gone", _data(_replace(lambda data: data.symlink_to("gone"))), BAD),
    Case("external: a link out of the folder", _data(_replace(_leave)), BAD, BAD),
    Case("external: cut short", _data(lambda data: os.truncate(data, 10)), BAD, BAD),
    Case("external: empty", _data(lambda data: os.truncate(data, 0)), BAD),
    Case("external: negative offset", _entry("offset", "-4"), BAD, BAD),
    Case("external: offset behind the end", _entry("offset", str(1 << 20)), BAD),
    Case("external: offset of 64 bits", _entry("offset", str(2**64)), BAD),
    Case("external: offset of 5,000 digits", _entry("offset", "9" * 5000), BAD, BAD),
    Case("external: length of 5,000 digits", _entry("length", "9" * 5000), BAD),
    Case("external: offset in hexadecimal", _entry("offset", "0x10"), BAD),
    Case("external: offset with an underscore", _entry("offset", "1_0"), BAD),
    Case("external: offset that is no number", _entry("offset", "NaN"), BAD),
    Case("external: offset in other digits", _entry("offset", "٤"), BAD),
    Case("external: length too small", _entry("length", "3"), BAD),
    Case("external: length too large", _entry("length", "4096"), BAD),
    Case("external: half of another tensor", _entry("offset", "16"), BAD),
    Case("external: no keys at all", _external(_no_keys), BAD, BAD),
    Case("external: strings", _external(_strings), BAD),
    Case("external: negative dimension", _external(_negative), BAD),
    Case("external: dimension of 2^62", _external(_immense), BAD),
    Case("external: unknown key", _entry("colour", "red"), FINE),
)
CASES: tuple[Case, ...] = _FILES + _EXTERNAL
