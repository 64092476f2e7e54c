"""What a file that is not an ONNX model most likely is, and what its owner meant to do."""

from __future__ import annotations

import codecs

from modelwright._dataclass import dataclass

# Every field of ModelProto, as the first byte(s) of its protobuf tag. Any other beginning is another format.
_MODEL_TAGS = frozenset({0x08, 0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72, 0xA2, 0xCA, 0xD2})
HEAD = 512


@dataclass(frozen=True)
class Suspect:
    """A guess at the format, and the next step for someone who has that file."""

    what: str
    fix: str


_EXPORT = "Export the model to ONNX first, then point at the .onnx file."
_PREFIXES: tuple[tuple[bytes, Suspect], ...] = (
    (
        b"version https://git-lfs",
        Suspect(
            "it is a Git LFS pointer; the model itself was not downloaded",
            "Run `git lfs pull` in the repository, or download the file with its real content.",
        ),
    ),
    (
        b"PK\x03\x04",
        Suspect("it is a ZIP archive (a PyTorch checkpoint, an .npz or a packed folder)", _EXPORT),
    ),
    (b"\x1f\x8b", Suspect("it is gzip-compressed", "Unpack it, then point at the .onnx file inside.")),
    (b"\x89HDF", Suspect("it is an HDF5 file (Keras weights)", _EXPORT)),
    (b"GGUF", Suspect("it is a GGUF file (llama.cpp)", _EXPORT)),
    (b"\x93NUMPY", Suspect("it is a NumPy array", "Point at the .onnx model, not at its input data.")),
    (b"\x80", Suspect("it is a Python pickle (a PyTorch checkpoint)", _EXPORT)),
)
_TAGS_AT_4: tuple[tuple[bytes, Suspect], ...] = (
    (
        b"ORTM",
        Suspect("it is an ORT-format model (.ort)", "Use the .onnx file that the .ort file was made from."),
    ),
    (b"TFL3", Suspect("it is a TensorFlow Lite model", "Convert it to ONNX (tf2onnx), then try again.")),
)


def can_be_model(head: bytes) -> bool:
    """Whether a ModelProto can begin like this."""
    return bool(head) and head[0] in _MODEL_TAGS


def suspect(head: bytes) -> Suspect | None:
    """The likely format of a file that begins with `head`, or None when nothing is recognised."""
    for prefix, guess in _PREFIXES:
        if head.startswith(prefix):
            return guess
    for tag, guess in _TAGS_AT_4:
        if head[4:8] == tag:
            return guess
    if _is_safetensors(head):
        return Suspect("it is a safetensors file: weights without a graph", _EXPORT)
    return _text(head)


def _is_safetensors(head: bytes) -> bool:
    """Eight bytes of little-endian header length, then a JSON object."""
    return head[8:10] == b'{"' and 0 < int.from_bytes(head[:8], "little") < 2**40


def _text(head: bytes) -> Suspect | None:
    if b"\0" in head:
        return None
    try:
        # Incremental, because a character may be cut at the end of the head.
        text = codecs.getincrementaldecoder("utf-8")().decode(head).lstrip("\ufeff \t\r\n")
    except UnicodeDecodeError:
        return None
    if any(ord(letter) < 32 and letter not in "\t\r\n\f" for letter in text):
        return None
    start = text[:64].lower()
    if start.startswith(("<!doctype html", "<html")):
        return Suspect(
            "it is an HTML page, usually a log-in or error page saved by a download",
            "Download the file again with the raw or resolve link, and a token when the model is gated.",
        )
    if start.startswith("<?xml"):
        return Suspect("it is XML (an OpenVINO model?)", "Point at the .onnx file it was made from.")
    if start.startswith(("{", "[")):
        return Suspect("it is JSON", "Point at the .onnx file, not at its configuration.")
    return Suspect("it is a text file", "Point at the binary .onnx file.")
