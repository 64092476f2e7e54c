"""Files that are no model, or were one: damaged protobuf, other formats, pages and pointers saved under its name."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import random
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np
from google.protobuf import json_format, text_format

from hostile.case import BAD, FINE, Case, field, file
from support import models

CANARY = "canary"
"""A file of this name in the working folder means that a model ran code."""


class Payload:
    """Unpickling this creates the canary."""

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (Path(CANARY),)


def good() -> bytes:
    return models.mlp().SerializeToString()


def _with(data: bytes, **places: int) -> bytes:
    changed = bytearray(data)
    for place, value in places.items():
        changed[int(place[1:])] = value
    return bytes(changed)


def _seeded(count: int) -> bytes:
    return random.Random(9).randbytes(count)


def _zip(name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, content)
    return out.getvalue()


def _tar(content: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        entry = tarfile.TarInfo("model.onnx")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return out.getvalue()


def _npy() -> bytes:
    out = io.BytesIO()
    np.save(out, np.zeros(4))
    return out.getvalue()


_LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 4\n"
_HTML = b"<!DOCTYPE html><html><head><title>401</title></head><body>Please log in</body></html>"
YAML = f"!!python/object/apply:os.system ['touch {CANARY}']\n".encode()
_SAFETENSORS = struct.pack("<Q", 52) + b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}' + b"\0" * 4

CASES: tuple[Case, ...] = (
    file("empty file", b""),
    file("one zero byte", b"\0"),
    file("a megabyte of zeros", b"\0" * (1 << 20)),
    file("a kilobyte of 0xFF", b"\xff" * 1024),
    file("random bytes", _seeded(1024)),
    file("random bytes that begin like a model", b"\x08\x0a" + _seeded(1024)),
    file("only the version", b"\x08\x0a"),
    file("cut after ten bytes", lambda: good()[:10], BAD, BAD),
    file("cut at a quarter", lambda: good()[: len(good()) // 4]),
    file("cut in the middle", lambda: good()[: len(good()) // 2], BAD, BAD),
    file("one byte short", lambda: good()[:-1]),
    file("one byte too many", lambda: good() + b"\x07"),
    file("two models in a row", lambda: good() * 2, BAD, BAD),
    file("another model behind it", lambda: good() + models.conv_net().SerializeToString()),
    file("first byte flipped", lambda: _with(good(), b0=0x88)),
    file("a length that leaves the file", lambda: good() + b"\x3a\xff\xff\xff\xff\x07"),
    file("a number of eleven bytes", lambda: good() + b"\x08" + b"\xff" * 11),
    file("unknown fields", lambda: good() + b"\xc2\x3e\x03abc", FINE),
    file("the graph as a number", b"\x08\x0a\x38\x01"),
    file("groups without an end", lambda: good() + b"\x9b\x06" * 50),
    file("groups ten thousand deep", lambda: good() + b"\x9b\x06" * 10_000 + b"\x9c\x06" * 10_000),
    file("no version in front", lambda: models.mlp().graph.SerializeToString()),
    file("a graph without its model", lambda: field(7, models.mlp().graph.SerializeToString())),
    file("a tensor instead of a model", lambda: models.weight("w", 4).SerializeToString()),
    file("byte order mark", lambda: b"\xef\xbb\xbf" + good()),
    file("text form of the model", lambda: text_format.MessageToString(models.mlp()).encode()),
    file("JSON form of the model", lambda: json_format.MessageToJson(models.mlp()).encode()),
    file("every newline made two", lambda: good().replace(b"\n", b"\r\n")),
    file("every high byte made two", lambda: good().decode("latin-1").encode(), BAD),
    file("Git LFS pointer", _LFS, BAD, BAD),
    file("git-annex pointer", b"/annex/objects/SHA256E-s4--" + b"0" * 64 + b".onnx\n"),
    file("log-in page", _HTML, BAD, BAD),
    file("XML", b"<?xml version='1.0'?><net/>"),
    file("JSON", b'{"model": 1}'),
    file("YAML that asks for a command", YAML, BAD, BAD),
    file("a Python program", f"open('{CANARY}', 'w')\n".encode()),
    file("a shell script", f"#!/bin/sh\ntouch {CANARY}\n".encode()),
    file("text in UTF-16", "a model".encode("utf-16")),
    file("a pickle that runs code", lambda: pickle.dumps(Payload()), BAD, BAD),
    file("a PyTorch archive that runs code", lambda: _zip("archive/data.pkl", pickle.dumps(Payload())), BAD, BAD),
    file("gzip", lambda: gzip.compress(good())),
    file("bzip2", lambda: bz2.compress(good())),
    file("xz", lambda: lzma.compress(good())),
    file("tar", lambda: _tar(good())),
    file("zip", lambda: _zip("model.onnx", good())),
    file("ORT format", b"\x18\0\0\0ORTM" + b"\0" * 64, BAD, BAD),
    file("TensorFlow Lite", b"\x1c\0\0\0TFL3" + b"\0" * 64),
    file("HDF5", b"\x89HDF\r\n\x1a\n" + b"\0" * 64),
    file("GGUF", b"GGUF\x03\0\0\0" + b"\0" * 64),
    file("safetensors", _SAFETENSORS),
    file("NumPy array", _npy),
    file("PNG", b"\x89PNG\r\n\x1a\n" + b"\0" * 64),
    file("PDF", b"%PDF-1.7\n"),
    file("ELF", b"\x7fELF\x02\x01\x01" + b"\0" * 64),
)
