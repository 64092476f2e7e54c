"""A note in the file of what holds other numbers than in the float model by intention: factors went from one tensor
into another, and the model computes the same."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_KEY = "modelwright.rescaled"


def mark_rescaled(model: onnx.ModelProto, names: Iterable[str]) -> None:
    """Activations and stored tensors, beside those that are marked already."""
    told = sorted({*rescaled(model), *names})
    for index in reversed(range(len(model.metadata_props))):
        if model.metadata_props[index].key == _KEY:
            del model.metadata_props[index]
    model.metadata_props.add(key=_KEY, value=json.dumps(told))


def rescaled(model: onnx.ModelProto) -> frozenset[str]:
    """Anybody may have written the note: what cannot be read says nothing."""
    told = next((item.value for item in model.metadata_props if item.key == _KEY), "[]")
    try:
        names = json.loads(told)
    except ValueError:
        return frozenset()
    return frozenset(name for name in names if isinstance(name, str)) if isinstance(names, list) else frozenset()
