"""Model folders that lie: configurations, weights, links, and programs beside them."""

from __future__ import annotations

import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hostile.case import BAD
from hostile.models_bytes import CANARY, Payload

CONFIG = {
    "architectures": ["BertForSequenceClassification"],
    "model_type": "bert",
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 50,
}
PLAN, EXPORT = ("--plan",), ("-o", "out")
PROGRAM = f"import pathlib\npathlib.Path('{CANARY}').touch()\n"


@dataclass(frozen=True)
class Folder:
    """`fill` writes the folder; with `words` that export, the model is really loaded."""

    name: str
    fill: Callable[[Path], object]
    code: int = BAD
    words: tuple[str, ...] = PLAN


def _text(text: str | bytes, name: str = "config.json") -> Callable[[Path], object]:
    """One file; with a configuration there are weights too, so that only the configuration is wrong."""

    def fill(folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(safetensors({}))
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())

    return fill


def _config(**changes: object) -> Callable[[Path], object]:
    return _text(json.dumps({**CONFIG, **changes}))


def safetensors(header: object, size: int | None = None) -> bytes:
    """Weights with this header and no tensors; `size` is how long the header says it is."""
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text


def _weights(name: str, content: bytes | Callable[[Path], object]) -> Callable[[Path], object]:
    """A good configuration and these weights."""

    def fill(folder: Path) -> None:
        (folder / "config.json").write_text(json.dumps(CONFIG))
        if callable(content):
            content(folder / name)
        else:
            (folder / name).write_bytes(content)

    return fill


def _index(index: object) -> Callable[[Path], object]:
    return _weights("model.safetensors.index.json", json.dumps(index).encode())


def _torch(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Payload()))
        archive.writestr("archive/version", "3\n")


def _with_program(name: str, **changes: object) -> Callable[[Path], object]:
    def fill(folder: Path) -> None:
        _config(**changes)(folder)
        (folder / name).write_text(PROGRAM)

    return fill


def _linked(name: str, target: str) -> Callable[[Path], object]:
    def fill(folder: Path) -> None:
        _config()(folder)
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(target)

    return fill


def _secret(folder: Path) -> None:
    (folder.parent / "secret.safetensors").write_bytes(safetensors({}))
    _linked("model.safetensors", "../secret.safetensors")(folder)


def _pipe(name: str) -> Callable[[Path], object]:
    def fill(folder: Path) -> None:
        _config()(folder)
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return fill


_AUTO = {"AutoModelForSequenceClassification": "evil.Model"}
_DEEP = "[" * 100_000
_SHARD = {"weight_map": {"a": "model-00001-of-00001.safetensors"}}
_IMMENSE = safetensors({}, 2**60)

CASES: tuple[Folder, ...] = (
    Folder("nothing in it", lambda _: None),
    Folder("configuration without weights", lambda folder: (folder / "config.json").write_text(json.dumps(CONFIG))),
    Folder("configuration of no bytes", _text("")),
    Folder("configuration that is no JSON", _text("{")),
    Folder("configuration that is a list", _text("[]")),
    Folder("configuration 100,000 deep", _text('{"a": ' + _DEEP)),
    Folder("configuration with a number of 5,000 digits", _text('{"model_type": ' + "9" * 5000 + "}")),
    Folder("configuration in UTF-16", _text(json.dumps(CONFIG).encode("utf-16"))),
    Folder("configuration that is no text", _text(b"\xff\xfe\xfd")),
    Folder("configuration that asks for a command", _text(f"!!python/object/apply:os.system ['touch {CANARY}']")),
    Folder("configuration that is a folder", lambda folder: (folder / "config.json").mkdir()),
    Folder("configuration that is a pipe", _pipe("config.json")),
    Folder("configuration that is a device", _linked("config.json", "/dev/zero")),
    Folder("configuration that is a link out", _linked("config.json", "/etc/hostname")),
    Folder("no model type", _config(model_type="")),
    Folder("model type that is a list", _config(model_type=["bert"])),
    Folder("model type that is a path", _config(model_type="../../etc", architectures=None)),
    Folder("model type nobody knows", _config(model_type="evil", architectures=["EvilForDoing"])),
    Folder("architectures that are a number", _config(architectures=7, model_type="evil")),
    Folder("architecture with an escape", _config(architectures=["\x1b[31mEvil"], model_type="\x1b[31m")),
    Folder("code of its own", _with_program("evil.py", auto_map=_AUTO)),
    Folder("an adapter", _with_program("adapter_config.json")),
    Folder("index that is a list", _index([])),
    Folder("index whose map is a list", _index({"weight_map": ["a"]})),
    Folder("index whose map names numbers", _index({"weight_map": {"a": 7}})),
    Folder("index whose map leaves the folder", _index({"weight_map": {"a": "../secret.safetensors"}})),
    Folder("index whose map is absolute", _index({"weight_map": {"a": "/etc/passwd"}})),
    Folder("index of files that are not there", _index(_SHARD)),
    Folder("index 100,000 deep", _weights("model.safetensors.index.json", _DEEP.encode())),
    Folder("weights that are a link out", _secret),
    Folder("weights that are a pipe", _pipe("model.safetensors")),
    Folder("weights that are a device", _linked("model.safetensors", "/dev/zero")),
    Folder("only a pickle named in the index", _weights("pytorch_model.bin.index.json", b"7")),
    Folder("weights that are an archive with code", _weights("pytorch_model.bin", _torch), BAD, EXPORT),
    Folder("weights whose header leaves the file", _weights("model.safetensors", _IMMENSE), BAD, EXPORT),
)  # fmt: skip
