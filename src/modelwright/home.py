"""Where everything we keep lives. `MODELWRIGHT_HOME` moves all of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy

if TYPE_CHECKING:
    import tempfile

    import platformdirs
else:
    platformdirs = lazy("platformdirs")
    tempfile = lazy("tempfile")

HOME_VARIABLE = "MODELWRIGHT_HOME"
LOCKS_VARIABLE = "MODELWRIGHT_LOCKS"


def home() -> Path:
    """The root of the store, the runtimes, the logs and the locks. Not created by asking."""
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    return Path(platformdirs.user_cache_dir("modelwright", appauthor=False))


def store_dir() -> Path:
    return home() / "store"


def runtimes_dir() -> Path:
    return home() / "runtimes"


def logs_dir() -> Path:
    return home() / "logs"


def findings_file() -> Path:
    """The journal of what this user has found; what came with the package is elsewhere."""
    return Path(home(), "kb", "findings.jsonl")


def machine_dir() -> Path:
    """What all users and homes of this machine share: the lock of measurements. `MODELWRIGHT_LOCKS` moves it."""
    chosen = os.environ.get(LOCKS_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    # Not the temporary folder of this user or job: those who measure at once would not meet there.
    return Path(os.environ.get("PROGRAMDATA", tempfile.gettempdir())) if os.name == "nt" else Path("/tmp")
