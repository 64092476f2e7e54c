"""What this machine can target: every EP asked in its own child, none able to hurt another's row."""

from __future__ import annotations

import enum
import sys
from typing import TYPE_CHECKING

from modelwright._dataclass import dataclass
from modelwright._installed import installed
from modelwright._lazy import lazy
from modelwright.targets._catalogue import ExecutionProvider, catalogue
from modelwright.targets._host import Host, read_host
from modelwright.targets._plugins import Plugin, installed_plugins
from modelwright.targets._probe import Builtin, EpDevice, probe_builtin, probe_plugin
from modelwright.worker import CallResult, Failure, Runtime, RuntimeStatus, list_runtimes, run

if TYPE_CHECKING:
    from concurrent import futures
else:
    futures = lazy("concurrent.futures")

# A probe that stands still hangs; one that is slow may be on a busy machine.
PROBE_STALL_S = 12.0
PROBE_TIMEOUT_S = 60.0
_LIBRARIES = ("onnxruntime", "onnx", "onnx-ir", "numpy", "torch", "transformers")
_PLATFORM_NAMES = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}


class Status(enum.Enum):
    """The answer of one EP on this machine."""

    USABLE = "usable"
    SIMULATOR = "simulator"
    NO_DEVICE = "registered, no device"
    NOT_INSTALLED = "not installed"
    OTHER_PLATFORM = "other platform"
    CRASHES = "crashes"
    HANGS = "hangs"
    FAILS = "fails"


@dataclass(frozen=True)
class EpRow:
    """One EP: can this machine run it, and if not, why and what to do."""

    ep: str
    name: str
    status: Status
    reason: str | None
    next_step: str | None
    package: str | None
    version: str | None
    targets: tuple[str, ...]
    devices: tuple[EpDevice, ...]
    ep_context: bool


@dataclass(frozen=True)
class RuntimeRow:
    """Another interpreter with its own onnxruntime."""

    name: str
    status: str
    reason: str | None
    versions: tuple[tuple[str, str], ...]
    providers: tuple[str, ...]


@dataclass(frozen=True)
class Survey:
    host: Host
    libraries: dict[str, str | None]
    eps: tuple[EpRow, ...]
    runtimes: tuple[RuntimeRow, ...]


def survey(timeout: float = PROBE_TIMEOUT_S) -> Survey:
    """Probe everything installed, in parallel children."""
    plugins = installed_plugins()
    host = read_host()
    with futures.ThreadPoolExecutor(max_workers=8) as pool:
        builtin = pool.submit(lambda: run(probe_builtin.call(), timeout=timeout, stall=PROBE_STALL_S))
        asked = [(plugin, pool.submit(_ask, plugin, timeout)) for plugin in plugins]
        runtimes = list(pool.map(lambda status: _runtime_row(status, timeout), list_runtimes()))
        plugin_rows = [_plugin_row(plugin, answer.result(), host) for plugin, answer in asked]
        rows = [*_builtin_rows(builtin.result()), *plugin_rows]
    seen = {row.ep for row in rows}
    missing = [_absent_row(ep) for ep in catalogue().eps if ep.key not in seen]
    order = {ep.key: position for position, ep in enumerate(catalogue().eps)}
    rows = sorted([*rows, *missing], key=lambda row: order.get(row.ep, len(order)))
    return Survey(host, {name: installed(name) for name in _LIBRARIES}, tuple(rows), tuple(runtimes))


def _ask(plugin: Plugin, timeout: float) -> CallResult[tuple[EpDevice, ...]]:
    provider = plugin.provider
    option = provider.backend_option if provider else None
    getter = provider.devices[0].backend if provider else None
    call = probe_plugin.call(plugin=plugin, backend_option=option, backend_getter=getter)
    return run(call, timeout=timeout, stall=PROBE_STALL_S)


def _builtin_rows(result: CallResult[Builtin]) -> list[EpRow]:
    rows = []
    providers = result.value.providers if result.value else ("CPUExecutionProvider",)
    for ep in catalogue().eps:
        if ep.name not in providers:
            continue
        status: Status = Status.USABLE
        reason: str | None = None
        if result.failure is not None:
            status, reason = _failed(result.failure)
        elif result.value is not None and result.value.proof_error and ep.key == "cpu":
            status, reason = Status.FAILS, result.value.proof_error
        version = result.value.version if result.value else installed("onnxruntime")
        rows.append(_row(ep, status, reason, version=version))
    return rows


def _plugin_row(plugin: Plugin, result: CallResult[tuple[EpDevice, ...]], host: Host) -> EpRow:
    provider = plugin.provider or _stranger(plugin)
    if result.failure is not None:
        status, reason = _failed(result.failure)
        return _row(provider, status, reason, version=plugin.version, step=_log_hint(result))
    devices = result.value or ()
    status, reason = _answer(provider, devices, host)
    return _row(provider, status, reason, version=plugin.version, devices=devices)


def _answer(ep: ExecutionProvider, devices: tuple[EpDevice, ...], host: Host) -> tuple[Status, str | None]:
    if not devices:
        return Status.NO_DEVICE, f"the library loads but finds no {ep.vendor} device it supports here"
    proven = [device for device in devices if device.proof_error is None]
    if not proven:
        return Status.FAILS, devices[0].proof_error
    kinds = {device.kind for device in ep.devices}
    if ep.devices and not kinds & {device.hardware for device in proven}:
        if host.platform_key in ep.simulator:
            return Status.SIMULATOR, "computes like the chip; timings mean nothing"
        return Status.NO_DEVICE, f"offers only {proven[0].hardware}, which is not a device of this EP"
    return Status.USABLE, None


def _failed(failure: Failure) -> tuple[Status, str | None]:
    if failure.kind in ("crash", "oom"):
        return Status.CRASHES, failure.message
    if failure.kind in ("timeout", "stalled"):
        return Status.HANGS, failure.message
    return Status.FAILS, str(failure.error) if failure.error else failure.message


def _row(
    ep: ExecutionProvider,
    status: Status,
    reason: str | None,
    *,
    version: str | None,
    devices: tuple[EpDevice, ...] = (),
    step: str | None = None,
) -> EpRow:
    hardware = {device.hardware for device in devices if device.proof_error is None}
    return EpRow(
        ep=ep.key,
        name=ep.name,
        status=status,
        reason=reason,
        next_step=step,
        package=ep.package,
        version=version,
        targets=_targets(ep, status, hardware),
        devices=devices,
        ep_context=ep.ep_context,
    )


def _targets(ep: ExecutionProvider, status: Status, hardware: set[str]) -> tuple[str, ...]:
    """The `--target` names that can run here now."""
    kinds = [device.kind for device in ep.devices]
    if status is Status.SIMULATOR:
        kinds = kinds[:1]
    elif status is not Status.USABLE:
        return ()
    elif ep.delivery == "plugin":
        kinds = [kind for kind in kinds if kind in hardware]
    return tuple(ep.key if ep.key == kind else f"{ep.key}-{kind}" for kind in kinds)


def _absent_row(ep: ExecutionProvider) -> EpRow:
    how = f"pip install {ep.package}"
    if ep.delivery == "flavour":
        how = ep.install or f"wright runtime create {ep.key} {ep.package}"
    if sys.platform not in ep.platforms:
        places = " or ".join(_PLATFORM_NAMES[name] for name in ep.platforms)
        return _row(ep, Status.OTHER_PLATFORM, f"runs on {places} only", version=None, step=f"there: {how}")
    if ep.delivery == "builtin":
        return _row(ep, Status.NOT_INSTALLED, "this onnxruntime wheel was built without it", version=None)
    return _row(ep, Status.NOT_INSTALLED, None, version=None, step=how)


def _stranger(plugin: Plugin) -> ExecutionProvider:
    """A row for a plugin the catalogue does not know: no devices promised, nothing assumed."""
    name = plugin.ep_name or plugin.label
    return ExecutionProvider(
        key=name,
        name=name,
        title=name,
        vendor="unknown",
        delivery="plugin",
        package=plugin.label,
        platforms=(sys.platform,),
        devices=(),
    )


def _log_hint(result: CallResult[tuple[EpDevice, ...]]) -> str | None:
    return f"see {result.log}" if result.log else None


def _runtime_row(status: RuntimeStatus, timeout: float) -> RuntimeRow:
    runtime: Runtime | None = status.runtime
    if runtime is None or status.reason is not None:
        return RuntimeRow(status.name, "broken", status.reason, (), ())
    answer = run(probe_builtin.call(), runtime=runtime, timeout=timeout, stall=PROBE_STALL_S)
    if answer.failure is not None:
        return RuntimeRow(status.name, "broken", answer.failure.message, runtime.versions, ())
    assert answer.value is not None
    return RuntimeRow(status.name, "ready", answer.value.proof_error, runtime.versions, answer.value.providers)
