"""What runs in a child: register a plugin, list its devices, prove each one by a one-node model.

Imported by foreign interpreters too, so: standard library, numpy and onnxruntime only.
"""

from __future__ import annotations

import importlib
import re
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import ExecutionError
from modelwright.targets._plugins import Plugin
from modelwright.worker import task

if TYPE_CHECKING:
    import numpy as np
    import onnxruntime as ort
else:
    np = lazy("numpy")
    ort = lazy("onnxruntime")

# y = x + x over float[1,4], opset 17: the smallest proof that a device computes.
ONE_ADD = bytes.fromhex(
    "08083a3d0a0e0a01780a017812017922034164641201675a130a0178120e0a0c080112080a0208010a02080462130a0179"
    "120e0a0c080112080a0208010a02080442040a001011"
)
_LONGEST = 600
_PLACES = re.compile(r"Exception from \S+\.\w+:\d+:\s*")
# A path of the machine that built onnxruntime, and a whole signature, stand before what it has to say.
_SIGNATURE = re.compile(
    r"(?:/|[A-Za-z]:\\)\S*[/\\](?P<file>[^/\\\s]+\.(?:cc|cpp|cu|h|hpp|mm):\d+)"
    r" (?:[^()]*\s)?(?P<name>[^\s()]*::[^\s()]+)"
    r"\([^()]*(?:\([^()]*\)[^()]*)*\)(?: const)?\s*"
)


@dataclass(frozen=True)
class EpDevice:
    """One device as the EP describes it; `proof_error` is None when the one-node model ran right on it."""

    ep_name: str
    ep_vendor: str
    ep_version: str | None
    hardware: str
    hardware_vendor: str
    vendor_id: int
    device_id: int
    metadata: tuple[tuple[str, str], ...]
    proof_error: str | None


@dataclass(frozen=True)
class Builtin:
    """What an onnxruntime wheel brings by itself."""

    version: str
    package: str | None
    providers: tuple[str, ...]
    proof_error: str | None


def new_options() -> Any:
    """The SessionOptions that every session starts from, in a process that tells nobody about it.

    Beside ORT_DISABLE_TELEMETRY, which children are started with: Windows has events of its own.
    """
    ort.disable_telemetry_events()
    return ort.SessionOptions()


@task
def probe_builtin() -> Builtin:
    """The built-in providers of this interpreter's onnxruntime, with a run on its CPU."""
    return Builtin(
        version=ort.__version__,
        package=getattr(ort, "package_name", None),
        providers=tuple(ort.get_available_providers()),
        proof_error=_proof(new_options(), "CPUExecutionProvider", ["CPUExecutionProvider"]),
    )


@task
def probe_plugin(plugin: Plugin, backend_option: str | None, backend_getter: str | None) -> tuple[EpDevice, ...]:
    """Every device the plugin offers here. Registration failures are ExecutionErrors; crashes are the worker's."""
    name, library, backend = locate_plugin(plugin, backend_getter)
    try:
        ort.register_execution_provider_library(name, library)
    except Exception as error:  # noqa: BLE001 - onnxruntime raises its own C++ exception types here
        raise ExecutionError(
            f"{name} could not be registered",
            cause=one_line(error),
            fix=f"check that {library} fits onnxruntime",
        ) from None
    options = {backend_option: backend} if backend_option and backend else {}
    owned = [device for device in ort.get_ep_devices() if _is_from(device, name, library)]
    return tuple(_describe(device, options) for device in owned)


def locate_plugin(plugin: Plugin, backend_getter: str | None) -> tuple[str, str, str | None]:
    if plugin.library is not None and plugin.ep_name is not None:
        return plugin.ep_name, existing_library(plugin.library), None
    assert plugin.module is not None
    if plugin.search_path and plugin.search_path not in sys.path:
        sys.path.append(plugin.search_path)
    module = importlib.import_module(plugin.module)
    if not hasattr(module, "get_library_path"):
        raise ExecutionError(
            f"{plugin.label} is not an EP plugin",
            cause=f"module {plugin.module} has no get_library_path()",
            fix="ask its maker for a package that follows the onnxruntime plugin convention",
        )
    names = [module.get_ep_name()] if hasattr(module, "get_ep_name") else module.get_ep_names()
    backend = getattr(module, backend_getter)() if backend_getter else None
    return names[0], existing_library(str(module.get_library_path())), backend


def existing_library(library: str) -> str:
    if not Path(library).is_file():
        raise ExecutionError(
            f"library not found: {library}",
            cause="the plugin names a file that is not there",
            fix="reinstall the plugin package, or correct the path",
        )
    return library


def _is_from(device: Any, name: str, library: str) -> bool:
    metadata = dict(device.ep_metadata)
    return metadata.get("library_path") == library or device.ep_name == name


def _describe(device: Any, options: dict[str, str]) -> EpDevice:
    metadata = dict(device.ep_metadata)
    metadata.pop("library_path", None)
    session_options = new_options()
    session_options.add_provider_for_devices([device], options)
    return EpDevice(
        ep_name=device.ep_name,
        ep_vendor=device.ep_vendor,
        ep_version=metadata.pop("version", None),
        hardware=device.device.type.name.lower(),
        hardware_vendor=device.device.vendor,
        vendor_id=device.device.vendor_id,
        device_id=device.device.device_id,
        metadata=tuple(sorted(metadata.items())),
        proof_error=_proof(session_options, device.ep_name, None),
    )


def _proof(options: Any, ep_name: str, providers: list[str] | None) -> str | None:
    """None when one Add ran on the EP itself and gave the right answer, else why not."""
    options.log_severity_level = 3
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "0" if providers else "1")
    try:
        session = ort.InferenceSession(ONE_ADD, options, providers=providers, enable_fallback=0)
        result = session.run(None, {"x": np.arange(4, dtype=np.float32).reshape(1, 4)})[0]
    except Exception as error:  # noqa: BLE001 - onnxruntime raises its own C++ exception types here
        return one_line(error)
    if ep_name not in session.get_providers():
        return f"the session bound {session.get_providers()[0]} instead"
    return None if np.allclose(result, [[0, 2, 4, 6]], atol=0.05) else f"wrong answer: {result.tolist()}"


def one_line(error: BaseException) -> str:
    """The text of an error without line breaks and places in C++ files, short enough to be read; no word is cut."""
    words = _SIGNATURE.sub(r"\g<file> \g<name>: ", _PLACES.sub("", str(error)))
    return textwrap.shorten(words, _LONGEST, placeholder=" …") or type(error).__name__
