"""JSON Schemas of tools: what goes in, from the signatures of verbs; what comes out."""

from __future__ import annotations

import inspect
from typing import Any, get_args

from modelwright.answers import SYMPTOMS
from modelwright.mcp._tools import VerbTool
from modelwright.measure import Arm
from modelwright.pipeline import schema_of
from modelwright.search import Objective
from modelwright.support import Effort, Level, Outcome
from modelwright.targets import GraphOptimization
from modelwright.vocabulary import Data, PixelInputs

Schema = dict[str, Any]
_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_WHOLE: Schema = {"type": "integer"}
_NUMBER: Schema = {"type": "number"}
_TEXTS: Schema = {"type": "array", "items": _TEXT}
_PAIRS: Schema = {"type": "object", "additionalProperties": _TEXT}
_DROP: Schema = {"anyOf": [_TEXT, _NUMBER], "description": "What may be lost: 1%, 1pt, or a number in its unit."}
_WORDS = {"str": _TEXT, "int": _WHOLE, "float": _NUMBER, "bool": _FLAG}
_MODEL = "An .onnx file, a build folder or a Hugging Face folder under the roots, or an id of the Hub."


def _named(text: str, schema: Schema | None = None) -> Schema:
    return {**(schema or _TEXT), "description": text}


def _table(kind: type) -> Schema:
    """A dataclass with everything it holds inside it."""
    found = schema_of(kind)
    return {key: value for key, value in found.items() if key not in ("$schema", "$defs")}


def _by_name() -> dict[str, Schema]:
    targets = {"anyOf": [_TEXT, _TEXTS], "description": "EP and device, for example cpu or qnn-npu:soc=x-elite."}
    row = {"anyOf": [_TEXT, {"type": "object"}]}
    return {
        "model": _named(_MODEL),
        "reference": _named(_MODEL),
        "other": _named(_MODEL),
        "target": _named("EP and device, for example cpu or qnn-npu."),
        "reference_target": _named("The same, for the reference."),
        "targets": targets,
        "data": {
            "anyOf": [_TEXT, _table(Data)],
            "description": "Samples: a file or folder under the roots, or random.",
        },
        "inputs": _table(PixelInputs),
        "recipe": {"anyOf": [_TEXT, {"type": "object"}], "description": "A file, catalog:NAME, or what it says."},
        "arms": {"type": "array", "items": {"anyOf": [_TEXT, _table(Arm)]}, "minItems": 1},
        "models": {"anyOf": [_TEXT, {"type": "array", "items": row}], "description": "A list file, or its rows."},
        "objective": {"enum": list(get_args(Objective))},
        "ceiling": {"enum": list(get_args(Level))},
        "effort": {"enum": list(get_args(Effort))},
        "outcome": {"enum": list(get_args(Outcome))},
        "folder": _named("A build folder under the roots."),
        "max_drop": _DROP,
        "target_drop": _DROP,
        "by": {"type": "array", "items": _NUMBER},
        "priorities": {"type": "array", "items": _WHOLE},
        "dims": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
        "output": _named("A new folder under the roots."),
        "record": _named("The beginning of a record's id, or a saved file under the roots."),
        "to": _named("A folder under the roots; any other feed where the server was started with trust."),
        "symptom": {"enum": list(SYMPTOMS), "description": "What somebody complains of."},
        "level": {"enum": list(get_args(GraphOptimization)), "description": "onnxruntime's graph optimizations."},
        "config": _named("Session config entries; where the server was started with trust.", _PAIRS),
        "suite": _named("A suite.toml under the roots: pinned models, and the two runtimes they are watched on."),
        "old": _named("A runtime by name, or here."),
        "new": _named("A runtime by name, or here."),
        "runtimes": _named("Other runtimes by name, in which it is tried too.", _TEXTS),
        "history": _named("A file under the roots to which a line for each case is added."),
        "log": _named("A file with error texts, under the roots."),
        "reduce": _named("A new file under the roots, for the smallest model that still fails so."),
        "bug_report": _named("A new folder under the roots."),
        "replay": _named("The beginning of an earlier decision's record id, or its saved file under the roots."),
        "memory": _named("Bytes that the process may reach.", _WHOLE),
        "feed": _named("A folder under the roots; any other feed where the server was started with trust."),
    }


def input_schema(tool: VerbTool) -> Schema:
    known = _by_name()
    found = {name: known.get(name) or _of(str(one.annotation)) for name, one in tool.parameters().items()}
    return {
        "type": "object",
        "properties": {**found, **_paging(tool)},
        "required": [name for name, one in tool.parameters().items() if one.default is inspect.Parameter.empty],
        "additionalProperties": False,
    }


def _paging(tool: VerbTool) -> Schema:
    """Where an answer was cut, the rest of it can be asked for."""
    if tool.name != "read":
        return {"save": _named("Write the whole answer as JSON to this new file under the roots.")}
    at = "Only this part of the record, for example analyses.0.nodes; as `cut` spells it."
    return {"at": _named(at), "start": {"type": "integer", "minimum": 0, "description": "From this item of it on."}}


def _of(annotation: str) -> Schema:
    """Of what an annotation says; None is left out, which is the same as not saying it."""
    kinds = [word.strip() for word in annotation.split("|") if word.strip() not in ("None", "Path")]
    forms = [form for kind in kinds if (form := _single(kind)) is not None]
    return forms[0] if len(forms) == 1 else {"anyOf": forms} if forms else {}


def _single(kind: str) -> Schema | None:
    if kind.startswith("Literal["):
        return {"enum": [word.strip(" \"'") for word in kind[8:-1].split(",")]}
    if kind.startswith(("Sequence[", "tuple[")):
        return _TEXTS
    return _PAIRS if kind.startswith("Mapping[") else _WORDS.get(kind)


def output_schema(tool: VerbTool) -> Schema:
    """What every answer has; the rest are the fields that `--json` prints."""
    cut = {"type": "object", "properties": {"at": _TEXT, "had": _WHOLE, "kept": _WHOLE}, "required": ["at", "had"]}
    head = {"schema_version": _WHOLE, "command": _TEXT, "tool_version": _TEXT, "record_id": _TEXT}
    head |= {"notes": _TEXTS, "cut": {"type": "array", "items": cut}, "whole": _TEXT}
    return {"type": "object", "properties": head, "required": ["schema_version", "command", "tool_version"]}


def described(tool: VerbTool) -> str:
    """Its docstring, without the rests of lines."""
    return inspect.cleandoc(tool.function.__doc__ or "Answers with what the function of that name does.")
