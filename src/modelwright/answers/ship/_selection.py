"""`selection.txt`: what the selectors of all languages read. Lines of words with tabs between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from modelwright.answers.ship._types import ShippedVariant

SELECTION = "selection.txt"
SELECTORS = ("wright_select.py", "wright_select.hpp", "WrightSelect.cs")
_FIRST = "wright-selection\t1"


def selection(variants: Iterable[ShippedVariant]) -> str:
    lines = [_FIRST, *("\t".join(words) for variant in variants for words in _lines(variant))]
    return "\n".join(lines) + "\n"


def _lines(variant: ShippedVariant) -> Iterator[tuple[str, ...]]:
    yield "variant", variant.target, variant.ep, variant.device
    for least in variant.needs:
        yield "needs", least.what, least.version
    for word, options in (("option", variant.options), ("where", variant.where)):
        for key, value in sorted(options.items()):
            yield word, key, value
    for model in variant.models:
        yield "model", model.component, model.path
    for file in variant.files:
        yield "file", file.name, file.sha256


def selector(name: str) -> bytes:
    """The source of a selector, as it goes into every package."""
    return (Path(__file__).with_name("selectors") / name).read_bytes()
