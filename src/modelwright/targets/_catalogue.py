"""The table of execution providers, read once from `eps.toml`."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Literal

from modelwright._dataclass import dataclass
from modelwright._extensions import EPS, broken_extension, extensions, load_extension

Delivery = Literal["builtin", "plugin", "flavour"]
DeviceKind = Literal["npu", "gpu", "cpu"]


@dataclass(frozen=True)
class Device:
    """One kind of device an EP can drive, with what `auto` means there; `soc` is assumed where no chip is named.
    `tries` are other values of its options that a search may try; `shipped` are options for an application, which has
    no path of a library to give."""

    kind: DeviceKind
    precision: str
    options: Mapping[str, str] = field(default_factory=dict)
    backend: str | None = None
    soc: str | None = None
    tries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shipped: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Soc:
    """A chip by its market name, and what its EP calls it. Without `fp16` it computes no float operators."""

    title: str
    words: Mapping[str, str]
    fp16: bool = True


@dataclass(frozen=True)
class ExecutionProvider:
    """Everything we know about one EP without asking this machine."""

    key: str
    name: str
    title: str
    vendor: str
    delivery: Delivery
    package: str
    platforms: tuple[str, ...]
    devices: tuple[Device, ...]
    aliases: tuple[str, ...] = ()
    flavour: str | None = None
    install: str | None = None
    ep_context: bool = False
    quantizes_itself: bool = False
    simulator: tuple[str, ...] = ()
    backend_option: str | None = None
    chip_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    socs: Mapping[str, Soc] = field(default_factory=dict)

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every lower-case name a user may type for this EP."""
        full = self.name.lower()
        return (self.key, full, full.removesuffix("executionprovider"), *self.aliases)

    def device(self, kind: str) -> Device | None:
        return next((device for device in self.devices if device.kind == kind), None)


@dataclass(frozen=True)
class Catalogue:
    """All EPs; `policy_version` changes whenever `auto` starts to mean something else.

    `isas`: instruction sets of CPUs, and whether their products of 8-bit numbers are added up without saturating.
    """

    policy_version: int
    eps: tuple[ExecutionProvider, ...]
    isas: Mapping[str, bool]

    def packages(self, *, compilers: bool = False) -> tuple[str, ...]:
        """The packages that EPs come in, onnxruntime's own first; with `compilers` only of those that can compile."""
        names = [name for ep in self.eps if ep.ep_context or not compilers for name in (ep.package, ep.flavour) if name]
        return tuple(dict.fromkeys(("onnxruntime", *names)))

    def find(self, spelling: str) -> ExecutionProvider | None:
        return self._by_spelling.get(spelling.strip().lower())

    @functools.cached_property
    def _by_spelling(self) -> Mapping[str, ExecutionProvider]:
        """Of two that share a word, the first."""
        return {word: ep for ep in reversed(self.eps) for word in ep.spellings}


@functools.cache
def catalogue() -> Catalogue:
    text = Path(__file__).with_name("eps.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    ours = tuple(_provider(row) for row in data["ep"])
    return Catalogue(data["policy_version"], (*ours, *_from_outside(ours)), data["isa"])


def _from_outside(ours: tuple[ExecutionProvider, ...]) -> Iterator[ExecutionProvider]:
    """EPs of other packages: their adapters bring the row."""
    taken = {spelling for ep in ours for spelling in ep.spellings}
    for key, found in extensions(EPS).items():
        provider: ExecutionProvider = load_extension(EPS, key, object).provider  # type: ignore[attr-defined]
        if provider.key != key or taken & set(provider.spellings):
            raise broken_extension(found, f"an EP called {provider.key} exists already, or its key is not {key}")
        taken |= set(provider.spellings)
        yield provider


def _device(row: dict[str, Any]) -> Device:
    tries = {key: tuple(values) for key, values in row.pop("tries", {}).items()}
    return Device(**row, tries=tries)


def _provider(row: dict[str, Any]) -> ExecutionProvider:
    """Turn a table row into a value; a key we do not know is a TypeError here, caught by the tests."""
    row = dict(row)
    row["devices"] = tuple(_device(dict(device)) for device in row["devices"])
    row["socs"] = {
        name: Soc(soc.pop("title"), fp16=soc.pop("fp16", True), words=soc) for name, soc in row.get("socs", {}).items()
    }
    row["chip_keys"] = {key: tuple(values) for key, values in row.get("chip_keys", {}).items()}
    for key in ("aliases", "platforms", "simulator"):
        row[key] = tuple(row.get(key, ()))
    return ExecutionProvider(**row)
