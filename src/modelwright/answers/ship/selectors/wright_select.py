"""Opens the variant of this package that fits the machine it runs on. Needs onnxruntime and nothing else.

    import wright_select

    opened = wright_select.open_session("path/of/package")
    opened.session.run(None, {...})  # an onnxruntime.InferenceSession
    print(opened.why())              # which variant was taken, and why none before it

A plugin EP has to be registered: `libraries={"QNNExecutionProvider": path}` does it. `seal` is the digest that
`wright ship` printed: give it, and nobody can exchange the package. A file that is not what was shipped is refused, and
then no other variant is tried.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import onnxruntime as ort

SELECTION = "selection.txt"
CPU = "CPUExecutionProvider"


class PackageRefused(Exception):
    """The package is not what was shipped, or has nothing for this machine."""


@dataclass(frozen=True)
class PackageVariant:
    """`device` is cpu, gpu or npu. `where` are options that name it, for an EP that is told its device by a word."""

    name: str
    ep: str = CPU
    device: str = "cpu"
    models: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    needs: dict[str, str] = field(default_factory=dict)
    option: dict[str, str] = field(default_factory=dict)
    where: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class UserMachine:
    """The version of onnxruntime, and (EP, device, version of the EP) of all that is here; None is not known."""

    onnxruntime: str
    devices: Sequence[tuple[str, str | None, str | None]] = ()


@dataclass(frozen=True)
class OpenedVariant:
    """`tried` are the variants before it, each with the reason why it was not taken."""

    session: Any
    variant: PackageVariant
    tried: Sequence[tuple[str, str]]

    def why(self) -> str:
        return "\n".join([*(f"not {name}: {reason}" for name, reason in self.tried), f"took {self.variant.name}"])


def read_selection(package: str | Path, seal: str | None = None) -> list[PackageVariant]:
    """The variants, best first."""
    data = (Path(package) / SELECTION).read_bytes()
    if seal is not None and hashlib.sha256(data).hexdigest() != seal:
        raise PackageRefused(f"{SELECTION} is not what was shipped")
    rows = [line.split("\t") for line in data.decode().split("\n") if line]
    if not rows or rows[0] != ["wright-selection", "1"]:
        raise PackageRefused(f"{SELECTION} is of another kind than this selector reads")
    found: list[PackageVariant] = []
    for word, key, *value in rows[1:]:
        if word == "variant":
            found.append(PackageVariant(key, value[0], value[1]))
        else:  # model, file, needs, option, where
            getattr(found[-1], {"model": "models", "file": "files"}.get(word, word))[key] = value[0]
    for name in (name for one in found for name in (*one.files, *one.models.values())):
        place = PurePosixPath(name)
        if place.is_absolute() or ".." in place.parts or "\\" in name or ":" in name:
            raise PackageRefused(f"{name} leads out of the package")
    return found


def this_machine(libraries: Mapping[str, str | Path] | None = None) -> UserMachine:
    """Asks onnxruntime. A library of a plugin EP that does not load offers no device."""
    for name, path in (libraries or {}).items():
        try:
            ort.register_execution_provider_library(name, str(path))
        except Exception as error:  # noqa: BLE001 - onnxruntime has exceptions of its own
            if "already registered" not in str(error):
                print(f"{name} cannot be registered: {error}")
    found = [(one.ep_name, one.device.type.name.lower(), one.ep_metadata.get("version")) for one in _devices()]
    known = {ep for ep, _, _ in found}
    others = [(ep, None, None) for ep in ort.get_available_providers() if ep not in known]
    return UserMachine(ort.__version__, [*found, *others])


def unfit(variant: PackageVariant, machine: UserMachine, any_device: bool = False) -> str | None:
    """Why a variant cannot run on a machine; None where it may. `any_device` takes a vendor's simulator too."""
    least, here = variant.needs.get("onnxruntime", "0"), machine.onnxruntime
    if _version(here) < _version(least):
        return f"it needs onnxruntime {least}, this is {here}"
    devices = [(kind, version) for ep, kind, version in machine.devices if ep == variant.ep]
    if not devices:
        return f"{variant.ep} is not here"
    versions = [version for kind, version in devices if any_device or kind in (variant.device, None)]
    if not versions:
        return f"{variant.ep} has no {variant.device} here"
    least = variant.needs.get(variant.ep, "0")
    if all(version is not None and _version(version) < _version(least) for version in versions):
        return f"it needs {variant.ep} {least}, this is {versions[0]}"
    return None


def open_session(
    package: str | Path,
    *,
    component: str | None = None,
    libraries: Mapping[str, str | Path] | None = None,
    seal: str | None = None,
    any_device: bool = False,
    make_options: Callable[[], Any] = ort.SessionOptions,
) -> OpenedVariant:
    """The first variant that fits and opens. `component` names one of several models."""
    machine = this_machine(libraries)
    tried: list[tuple[str, str]] = []
    for variant in read_selection(package, seal):
        reason = unfit(variant, machine, any_device)
        if reason is None:
            check_files(package, variant)
            path = Path(package, variant.models[component] if component else next(iter(variant.models.values())))
            try:
                return OpenedVariant(_session(path, variant, any_device, make_options()), variant, tried)
            except Exception as error:  # noqa: BLE001 - onnxruntime has exceptions of its own
                reason = f"it does not open: {' '.join(str(error).split())[:300]}"
        tried.append((variant.name, reason))
    raise PackageRefused("no variant runs here: " + "; ".join(f"{name}: {reason}" for name, reason in tried))


def check_files(package: str | Path, variant: PackageVariant) -> None:
    """Every file of a variant, by its digest."""
    for name, wanted in variant.files.items():
        digest = hashlib.sha256()
        try:
            with Path(package, name).open("rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
        except OSError as error:
            raise PackageRefused(f"{name} cannot be read: {error}") from None
        if digest.hexdigest() != wanted:
            raise PackageRefused(f"{name} is not what was shipped")


def _session(path: Path, variant: PackageVariant, any_device: bool, options: Any) -> Any:
    """With this EP on one device, named; onnxruntime is not to take another one by itself, nor to compute all of it."""
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    owned = [one for one in _devices() if one.ep_name == variant.ep != CPU]
    fitting = [one for one in owned if any_device or one.device.type.name.lower() == variant.device]
    if fitting:
        options.add_provider_for_devices(fitting[:1], variant.option)
        session = ort.InferenceSession(str(path), options, enable_fallback=0)
    else:
        told = [(variant.ep, {**variant.option, **variant.where})]
        session = ort.InferenceSession(str(path), options, providers=told, enable_fallback=0)
    if variant.ep not in session.get_providers():
        raise PackageRefused(f"onnxruntime left {variant.ep} out")
    groups: Sequence[Any] = getattr(session, "get_provider_graph_assignment_info", list)()  # older ones do not tell
    if groups and variant.ep not in {group.ep_name for group in groups}:
        raise PackageRefused(f"{variant.ep} takes no node of it")
    return session


def _devices() -> Sequence[Any]:
    return ort.get_ep_devices() if hasattr(ort, "get_ep_devices") else []


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text.partition("+")[0])))
