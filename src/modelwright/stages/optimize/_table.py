"""The passes as data: names, dependencies, products. Reading it imports neither onnx nor onnxruntime."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from modelwright._dataclass import dataclass
from modelwright._extensions import PASSES, broken_extension, extensions, load_extension
from modelwright.errors import InputError, did_you_mean

if TYPE_CHECKING:
    import onnx_ir as ir

Kind = Literal["ort", "transformers", "rewrite", "surgery"]

# Names that users of other tools know, and why they cannot be had here.
_UNAVAILABLE = {
    "bias_dropout_fusion": "onnxruntime registers it for CUDA only, and Dropout does nothing at inference",
    "matmul_activation_fusion": "onnxruntime registers it for DirectML only, which applies it at load time",
    "embed_layer_norm_fusion": "it knows only one old exporter; take transformers_embed_layer_norm_fusion",
    "bias_softmax_fusion": "onnxruntime registers it for CUDA only",
    "group_query_attention_fusion": "onnxruntime registers it for CUDA only",
    "concat_slice_elimination": "only training builds of onnxruntime have it",
}
_PORTABLE_DOMAINS = ("", "ai.onnx.ml")
# onnxruntime keeps this one in the default domain, where ONNX knows no such operator.
_NOT_ONNX = ("SimplifiedLayerNormalization",)


@dataclass(frozen=True)
class Pass:
    """One row of the table; `passes.toml` says what the columns mean."""

    name: str
    kind: Kind
    group: str
    summary: str
    level: int = 1
    ort: tuple[str, ...] = ()
    switch: str | None = None
    fusion: str | None = None
    arguments: tuple[int, ...] = ()
    symbolic_shapes: bool = False
    requires: tuple[str, ...] = ()
    produces: tuple[str, ...] = ()
    needs_opset: int | None = None
    breaks_qdq: bool = False
    host_specific: bool = False
    approximate: bool = False

    @property
    def portable(self) -> bool:
        """Whether every operator it can add is standard ONNX, so that any EP may claim it."""
        return all(op.rpartition(".")[0] in _PORTABLE_DOMAINS and op not in _NOT_ONNX for op in self.produces)


@dataclass(frozen=True)
class PassExtension:
    """A pass that another package brings: its row, and a function that edits the model in place and says how many
    things it changed. Entry point group `modelwright.passes`, under the name of the pass."""

    row: Pass
    edit: Callable[[ir.Model], int]


@functools.cache
def passes() -> tuple[Pass, ...]:
    """Every pass, in the order in which they run."""
    return (*_ours(), *(outside_pass(name).row for name in extensions(PASSES)))


def outside_pass(name: str) -> PassExtension:
    """What another package brings under this name; one of ours is never replaced."""
    found = load_extension(PASSES, name, PassExtension)
    if found.row.name != name or found.row.kind not in ("rewrite", "surgery") or name in _by_name():
        raise broken_extension(extensions(PASSES)[name], "it needs a name of its own, and a rewrite or surgery row")
    return found


@functools.cache
def _ours() -> tuple[Pass, ...]:
    text = Path(__file__).with_name("passes.toml").read_text(encoding="utf-8")
    return tuple(_row(name, columns) for name, columns in tomllib.loads(text).items())


def find_pass(name: str) -> Pass:
    """The pass called `name`; kebab-case is the same name."""
    known = _by_name()
    tidy = name.strip().lower().replace("-", "_")
    if tidy in known:
        return known[tidy]
    if tidy in extensions(PASSES):
        return outside_pass(tidy).row
    if tidy in _UNAVAILABLE:
        raise InputError(f"pass {name} cannot be used", cause=_UNAVAILABLE[tidy], fix="Leave it out of the passes.")
    raise InputError(
        f"there is no pass called {name!r}",
        cause=f"the table has {len(known)} passes, and this is none of them",
        fix=_closest(tidy) or "`wright optimize --list` prints them all.",
    )


def resolve_passes(names: Iterable[str]) -> tuple[str, ...]:
    """The named passes and all they require, each once, in the order of the table.

    So the same set of passes is one set of parameters, however it was written down.
    """
    return _resolved(tuple(names))


@functools.lru_cache(256)
def _resolved(names: tuple[str, ...]) -> tuple[str, ...]:
    wanted: set[str] = set()
    pending = [find_pass(name) for name in names]
    while pending:
        item = pending.pop()
        if item.name not in wanted:
            wanted.add(item.name)
            pending += [find_pass(name) for name in item.requires]
    order = (*_by_name(), *extensions(PASSES))
    return tuple(name for name in order if name in wanted)


def _closest(name: str) -> str | None:
    """Names share long endings such as `_fusion`, which would make all of them look alike."""
    return did_you_mean(name, (*_by_name(), *extensions(PASSES))) or did_you_mean(name, _UNAVAILABLE)


@functools.cache
def _by_name() -> dict[str, Pass]:
    return {item.name: item for item in _ours()}


def _row(name: str, columns: dict[str, Any]) -> Pass:
    unknown = columns.keys() - {field.name for field in fields(Pass)}
    if unknown:
        raise TypeError(f"passes.toml: {name} has unknown columns {sorted(unknown)}")
    values: dict[str, Any] = {key: tuple(item) if isinstance(item, list) else item for key, item in columns.items()}
    return Pass(name, **values)


def _preset(*, level: int) -> tuple[str, ...]:
    """What onnxruntime itself would run at this level, minus what depends on the build machine or the numbers."""
    chosen = (
        item.name
        for item in _ours()
        if item.kind == "ort"
        and item.level <= level
        and not item.switch
        and not item.host_specific
        and not item.breaks_qdq
    )
    return resolve_passes(chosen)


def _presets() -> dict[str, tuple[str, ...]]:
    basic = _preset(level=1)
    portable = [name for name in basic if find_pass(name).portable]
    ours = [item.name for item in _ours() if item.kind == "rewrite" and item.group == "cleanup"]
    fusions = [item.name for item in _ours() if item.kind == "transformers"]
    return {
        "none": (),
        "portable": resolve_passes([*portable, *ours]),
        "ort-basic": basic,
        "ort-extended": _preset(level=2),
        "transformers": resolve_passes(["constant_folding", *fusions]),
    }


# Named sets of our passes. `portable` adds only standard operators, so that any EP can claim the result.
PRESETS: Mapping[str, tuple[str, ...]] = _presets()
