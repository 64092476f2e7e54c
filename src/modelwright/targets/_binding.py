"""From a Target to session options bound to one explicit device. Runs in a child.

Imported by foreign interpreters too, so: standard library and onnxruntime only.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import ExecutionError, UsageError
from modelwright.targets._catalogue import ExecutionProvider
from modelwright.targets._host import usable_cpus
from modelwright.targets._plugins import Plugin, installed_plugins
from modelwright.targets._probe import existing_library, locate_plugin, new_options, one_line
from modelwright.targets._target import Target

if TYPE_CHECKING:
    import onnxruntime as ort
else:
    ort = lazy("onnxruntime")

GraphOptimization = Literal["disabled", "basic", "extended", "all"]
CPU_EP = "CPUExecutionProvider"
PLACEMENT = "session.record_ep_graph_assignment_info"
"""The config entry without which a session cannot say which EP took which node."""
MOST_THREADS = 1024
_LEVELS = {
    "disabled": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
_SWITCHES = ("enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse")
"""Switches of onnxruntime's SessionOptions that are no config entries; `config` takes them by name."""
_PLATFORM_NAMES = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}


class NotBound(ExecutionError):
    """The fault is this machine's: it has no such device, or the EP's libraries do not load here."""


@dataclass(frozen=True)
class SessionSpec:
    """How to open a session, beside the model and the target. The defaults are what a user gets.

    `allow_unused` takes a session whose EP has no node of the model for an answer; otherwise it is an error. `frugal`
    computes every value right before it is needed and frees it right after: less memory, more time.
    """

    threads: int | None = None
    config: Mapping[str, str] | None = None
    provider_options: Mapping[str, str] | None = None
    profile_prefix: str | None = None
    graph_optimization: GraphOptimization = "all"
    allow_unused: bool = False
    log_severity: int = 2
    frugal: bool = False
    plugin: Plugin | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and not 1 <= self.threads <= MOST_THREADS:
            raise UsageError(
                f"{self.threads} threads are not possible",
                cause=f"onnxruntime starts every one of them; 1 to {MOST_THREADS} can be asked for",
                fix="leave the number out to use the CPUs this process may use",
            )
        if self.graph_optimization not in _LEVELS:
            raise UsageError(
                f"`level` {self.graph_optimization} is not possible",
                cause="onnxruntime has no such level of graph optimization",
                fix=f"one of {', '.join(_LEVELS)}",
            )
        for name in _SWITCHES:
            if (self.config or {}).get(name, "1") not in ("0", "1"):
                raise UsageError(f"{name} is a switch", cause="it is on or off", fix=f"{name}=0 or {name}=1")


CALM = SessionSpec(config={"session.intra_op.allow_spinning": "0"})
"""As a user will run it, but without threads that spin between two operators: for answers, not for times."""


@dataclass(frozen=True, eq=False)
class Binding:
    """One EP on one device. `device` is onnxruntime's own object, None where the EP is part of the wheel."""

    target: Target
    device: Any
    options: Mapping[str, str]
    hardware: str
    hardware_vendor: str | None
    ep_version: str | None
    simulated: bool

    @property
    def ep_name(self) -> str:
        return self.target.provider.name

    @property
    def providers(self) -> list[tuple[str, dict[str, str]]] | None:
        """What `InferenceSession(providers=…)` needs; None when the options already carry the device."""
        return [(self.ep_name, dict(self.options))] if self.device is None else None


def bind(target: Target, spec: SessionSpec | None = None, *, virtual: bool = False) -> Binding:
    """Register what the target needs and choose its device. Missing is an error, never another EP or device.

    `virtual` asks the plugin for devices this machine does not have, which can answer but not compute.
    """
    spec = spec or SessionSpec()
    provider = target.provider
    wanted = {**target.provider_options, **(spec.provider_options or {})}
    plugin = spec.plugin or _installed(target)
    if plugin is None:
        return _builtin(target, wanted)
    name, library, backend = locate_plugin(plugin, target.device_entry.backend)
    _refuse_unknown(name, library, spec.provider_options or {})
    _register(f"{name}.virtual" if virtual else name, library)
    device, simulated = _choose(target, library, virtual)
    wanted = {key: value for key, value in wanted.items() if key not in target.adapter.device_words}
    if provider.backend_option and backend:
        wanted.setdefault(provider.backend_option, backend)
    return Binding(
        target=target,
        device=device,
        options=wanted,
        hardware=_kind(device),
        hardware_vendor=device.device.vendor or None,
        # What the library says about itself may be a number nobody can install: 0.1.0 inside version 2.7.0.
        ep_version=plugin.version or dict(device.ep_metadata).get("version"),
        simulated=simulated,
    )


def session_options(binding: Binding, spec: SessionSpec) -> Any:
    """onnxruntime SessionOptions with everything set; a plugin's device is already added."""
    options = new_options()
    options.intra_op_num_threads = resolved_threads(spec)
    options.inter_op_num_threads = 1
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, _LEVELS[spec.graph_optimization])
    options.log_severity_level = spec.log_severity
    if spec.frugal:
        options.execution_order = ort.ExecutionOrder.PRIORITY_BASED
        options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    if spec.profile_prefix is not None:
        options.enable_profiling = True
        options.profile_file_prefix = spec.profile_prefix
    for key, value in session_config(spec).items():
        if key in _SWITCHES:
            setattr(options, key, value == "1")
        else:
            options.add_session_config_entry(key, value)
    if binding.device is not None:
        options.add_provider_for_devices([binding.device], dict(binding.options))
    return options


def session_config(spec: SessionSpec) -> dict[str, str]:
    """The session config entries this spec sets."""
    return {PLACEMENT: "1", **(spec.config or {})}


def resolved_threads(spec: SessionSpec) -> int:
    """onnxruntime itself counts physical cores, not what this process may use."""
    return spec.threads if spec.threads is not None else max(1, int(usable_cpus()))


def missing(target: Target) -> ExecutionError:
    """This interpreter has no such EP: where there is one, or how to get it."""
    provider = target.provider
    if sys.platform not in provider.platforms:
        places = " or ".join(_PLATFORM_NAMES[name] for name in provider.platforms)
        cause = f"{provider.title} exists for {places} only"
        return _unbound(target, cause, f"needs a worker that has {provider.title}; there: {_how(provider)}")
    if provider.delivery == "builtin":
        cause = f"this onnxruntime wheel was built without {provider.name}"
        return _unbound(target, cause, f"needs a worker whose onnxruntime has {provider.name}")
    return _unbound(target, f"{provider.package} is not installed in this interpreter", _how(provider))


def _how(provider: ExecutionProvider) -> str:
    if provider.delivery == "flavour":
        return provider.install or f"wright runtime create {provider.key} {provider.package}"
    return f"pip install {provider.package}"


def _installed(target: Target) -> Plugin | None:
    """Looked for before the providers onnxruntime lists: a registered plugin appears among those too."""
    return next((found for found in installed_plugins() if found.provider == target.provider), None)


def _builtin(target: Target, options: Mapping[str, str]) -> Binding:
    if target.provider.name not in ort.get_available_providers():
        raise missing(target)
    return Binding(target, None, options, target.device, None, ort.__version__, simulated=False)


def _register(name: str, library: str) -> None:
    try:
        ort.register_execution_provider_library(name, existing_library(library))
    except Exception as error:  # noqa: BLE001 - onnxruntime raises its own C++ exception types here
        if "already registered" in str(error):
            return
        raise ExecutionError(
            f"{name} could not be registered",
            cause=one_line(error),
            fix=f"check that {library} fits onnxruntime",
        ) from None


def _refuse_unknown(name: str, library: str, options: Mapping[str, str]) -> None:
    """EPs pass over options that they do not know without a word; one that reads an option has its name inside."""
    if not options:
        return
    content = Path(library).read_bytes()
    for key in options:
        if key.encode() + b"\0" not in content:
            raise UsageError(
                f"{name} does not know the option {key}",
                cause=f"{Path(library).name} holds no such name, and would pass over it without a word",
                fix=f"leave {key} out, or check its spelling in the EP's documentation",
            )


def _choose(target: Target, library: str, virtual: bool) -> tuple[Any, bool]:
    """The device of the target's kind, first by its ids; where there is only a simulator, that."""
    owned = [device for device in ort.get_ep_devices() if _is_owned(device, target, library, virtual)]
    owned.sort(key=lambda device: (device.device.vendor_id, device.device.device_id))
    matching = [device for device in owned if _kind(device) == target.device]
    if matching:
        return matching[0], False
    provider = target.provider
    # The simulator stands in for the EP's first kind of device only.
    if owned and _platform_key() in provider.simulator and target.device == provider.devices[0].kind:
        return owned[0], True
    kinds = ", ".join(sorted({_kind(device) for device in owned})) or "nothing"
    raise _unbound(
        target,
        f"{provider.package} is installed but offers {kinds} on this machine",
        f"needs a worker that has this device: {provider.vendor} {target.device.upper()}",
    )


def _is_owned(device: Any, target: Target, library: str, virtual: bool) -> bool:
    """Exact names only: `….AUTO` and the like are devices that choose other devices."""
    owner = dict(device.ep_metadata).get("library_path", library)
    is_virtual = dict(device.device.metadata).get("is_virtual") == "1"
    return device.ep_name == target.provider.name and owner == library and is_virtual == virtual


def _kind(device: Any) -> str:
    return str(device.device.type.name).lower()


def _platform_key() -> str:
    return f"{sys.platform}-{platform.machine().lower().replace('amd64', 'x86_64')}"


def _unbound(target: Target, cause: str, fix: str) -> NotBound:
    return NotBound(f"{target} cannot run here", cause=cause, fix=fix)
