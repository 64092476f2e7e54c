"""Names that want to be something else: markup, control characters, other scripts, invalid text, far too long."""

from __future__ import annotations

from collections.abc import Callable

import onnx
from onnx import helper

from hostile.case import BAD, FINE, Case, file, model
from support import models

ODD = {
    "markup": "[/x]",
    "open markup": "[bold red]in",
    "link markup": "[link=file:///etc/passwd]x",
    "escape": "in\x1b[2J\x1b[31mred",
    "title sequence": "in\x1b]0;owned\x07",
    "newline": "in\nerror: all is well",
    "carriage return": "input\rfake",
    "backspace": "in\b\bput",
    "C1 control": "in\x9b31m",
    "NUL": "in\0put",
    "right to left": "in\u202egpj.\u202c",
    "zero width": "in\u200b\u2060\ufeffput",
    "combining": "i" + "\u0301" * 200,
    "emoji": "👩‍👩‍👧‍👦🇺🇳",
    "line separator": "in\u2028put",
    "blank": " ",
    "percent and braces": "%s{0}{name}%n",
    "64 KiB": "n" * 65_536,
    "path": "../../etc/passwd",
    "quote": "in\"';--",
}


def _everywhere(name: str) -> Callable[[], onnx.ModelProto]:
    """Input, output, node, weight, dimension, graph and producer have the name."""

    def make() -> onnx.ModelProto:
        nodes = [
            helper.make_node("MatMul", [name, name + "w"], [name + "h"], name=name),
            helper.make_node("Relu", [name + "h"], [name + "y"], name=name + "2"),
        ]
        inputs, outputs = (models.value(item, shape=[name, 4]) for item in (name, name + "y"))
        proto = models.model(nodes, [inputs], [outputs], [models.weight("w", 4, 4)])
        proto.graph.initializer[0].name = name + "w"
        proto.graph.name = proto.producer_name = proto.producer_version = proto.doc_string = name
        proto.metadata_props.add(key=name, value=name)
        return proto

    return make


def _operator(name: str) -> Callable[[], onnx.ModelProto]:
    """An operator of a domain nobody knows, both with the name."""

    def make() -> onnx.ModelProto:
        node = helper.make_node(name, ["x"], ["y"], domain=name)
        return models.model(
            [node], [models.value("x", shape=[4])], [models.value("y", shape=[4])], opsets={"": 21, name: 1}
        )

    return make


def _not_text(find: bytes) -> Callable[[], bytes]:
    """One byte of a name is no UTF-8. Its length stays, so protobuf does not mind."""

    def make() -> bytes:
        data = models.mlp().SerializeToString()
        assert find in data
        return data.replace(find, b"\xff" + find[1:])

    return make


CASES: tuple[Case, ...] = (
    *(
        model(f"name: {word}", _everywhere(name), FINE, FINE if word in ("markup", "newline", "NUL") else None)
        for word, name in ODD.items()
    ),
    *(model(f"operator: {word}", _operator(ODD[word]), FINE) for word in ("markup", "escape", "newline", "64 KiB")),
    *(
        file(f"no text: {word}", _not_text(name), BAD)
        for word, name in {
            "operator": b"MatMul", "node": b"first", "value": b"h2", "producer": b"tests", "dimension": b"batch",
        }.items()
    ),
)  # fmt: skip
