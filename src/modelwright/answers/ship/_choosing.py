"""The selector of a package, asked in a child: on machines that are only described, and on the one it is on.

Imported by foreign interpreters too, so: standard library, numpy and onnxruntime only.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from modelwright._dataclass import dataclass
from modelwright.errors import WrightError
from modelwright.targets import installed_plugins, locate_plugin, one_line
from modelwright.worker import load_file, task

Devices = tuple[tuple[str, str | None, str | None], ...]


@dataclass(frozen=True)
class SelectorChoice:
    """Which variant, and why none before it. `ran` with what came out of it, where it was opened."""

    onnxruntime: str
    devices: Devices
    chosen: str | None
    tried: tuple[tuple[str, str], ...]
    ran: bool = False
    reason: str | None = None


@task
def choose_for(package: str, machines: Sequence[tuple[str, Devices]]) -> tuple[SelectorChoice, ...]:
    """What it would take on each machine: a version of onnxruntime with its EPs and devices."""
    selector = _selector(package)
    variants = selector.read_selection(package)
    return tuple(_described(selector, variants, *machine) for machine in machines)


@task
def choose_here(package: str, component: str, feeds: Mapping[str, Any], any_device: bool) -> SelectorChoice:
    """What it takes here, opened and run once."""
    selector = _selector(package)
    libraries = dict(_libraries())
    machine = selector.this_machine(libraries)
    about = (machine.onnxruntime, tuple(tuple(one) for one in machine.devices))
    try:
        opened = selector.open_session(package, component=component, libraries=libraries, any_device=any_device)
    except selector.PackageRefused as error:
        return SelectorChoice(*about, None, (), reason=one_line(error))
    tried = tuple(tuple(one) for one in opened.tried)
    wanted = {node.name for node in opened.session.get_inputs()}
    try:
        opened.session.run(None, {name: array for name, array in feeds.items() if name in wanted})
    except Exception as error:  # noqa: BLE001 - onnxruntime raises its own C++ exception types here
        return SelectorChoice(*about, opened.variant.name, tried, reason=one_line(error))
    return SelectorChoice(*about, opened.variant.name, tried, ran=True)


def _described(selector: ModuleType, variants: Sequence[Any], version: str, devices: Devices) -> SelectorChoice:
    machine = selector.UserMachine(version, devices)
    reasons = [(variant.name, selector.unfit(variant, machine)) for variant in variants]
    place = next((place for place, (_, reason) in enumerate(reasons) if reason is None), len(reasons))
    chosen = reasons[place][0] if place < len(reasons) else None
    return SelectorChoice(version, devices, chosen, tuple(reasons[:place]))


def _libraries() -> Iterator[tuple[str, str]]:
    """Of the plugin EPs that are installed; an application knows its own."""
    for plugin in installed_plugins():
        with contextlib.suppress(WrightError, ImportError):
            name, path, _ = locate_plugin(plugin, None)
            yield name, path


def _selector(package: str) -> ModuleType:
    """The file that lies in the package, and no other."""
    return load_file(Path(package, "wright_select.py"), "wright_select")
