"""What a model answers, as arrays: sequences, maps and optionals are taken apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

LENGTH = ".length"


def leaves(outputs: Mapping[str, Any]) -> Iterator[tuple[str, NDArray[Any]]]:
    """The tensors of all outputs under the names they have inside sequences and maps; nothing at all is a value too."""
    for name, value in outputs.items():
        if isinstance(value, Mapping):
            yield from leaves({f"{name}[{key!r}]": part for key, part in value.items()})
        elif isinstance(value, list | tuple):
            yield f"{name}{LENGTH}", np.array([len(value)])
            yield from leaves({f"{name}[{place}]": part for place, part in enumerate(value)})
        else:
            yield name, np.asarray(value)
