"""The JSON Schema of a recipe, from its types."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from modelwright._json import plain

Schema = dict[str, Any]
_WORDS = {str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null"}


def schema_of(kind: type) -> Schema:
    """Of a dataclass; those in its fields are definitions."""
    definitions: dict[str, Schema] = {}
    found = _table(kind, definitions)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found, "$defs": definitions}


def _table(kind: Any, definitions: dict[str, Schema]) -> Schema:
    hints = typing.get_type_hints(kind)
    fields = [field for field in dataclasses.fields(kind) if field.init]
    return {
        "title": kind.__name__,
        "description": " ".join((kind.__doc__ or "").split()),
        "type": "object",
        "properties": {field.name: _property(field, hints[field.name], definitions) for field in fields},
        "required": [field.name for field in fields if _default(field) is dataclasses.MISSING],
        "additionalProperties": False,
    }


def _property(field: dataclasses.Field[Any], kind: Any, definitions: dict[str, Schema]) -> Schema:
    default = _default(field)
    said = {} if default is dataclasses.MISSING else {"default": plain(default)}
    return {**_any(kind, definitions), **field.metadata, **said}


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is dataclasses.MISSING else field.default_factory()


def _any(kind: Any, definitions: dict[str, Schema]) -> Schema:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return {"enum": list(inner)}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_any(one, definitions) for one in inner]}
    if origin is tuple and inner[-1] is Ellipsis:
        return {"type": "array", "items": _any(inner[0], definitions)}
    if origin is tuple:
        items = [_any(one, definitions) for one in inner]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _any(inner[1], definitions)}
    if kind in _WORDS:
        return {"type": _WORDS[kind]}
    definitions[kind.__name__] = _table(kind, definitions)
    return {"$ref": f"#/$defs/{kind.__name__}"}
