"""A real headless browser, driven through pipes: one process for all pages, and no package for it."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    *("--headless=new", "--disable-gpu", "--no-sandbox", "--no-first-run", "--disable-extensions"),
    *("--disable-background-networking", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"),
)
# The browser wants its pipes at 3 and 4.
_START = (
    "import os, sys; a, b = map(int, sys.argv[1:3]); os.dup2(a, 3); os.dup2(b, 4); os.execv(sys.argv[3], sys.argv[3:])"
)


def find_browser() -> str | None:
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def _high_pipe() -> tuple[int, int]:
    """Neither end is 3 or 4."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]


class Browser:
    """Speaks the DevTools protocol on file descriptors 3 and 4, one message after the other, each ended by a zero."""

    def __init__(self, program: str, profile: Path) -> None:
        to_read, self._out = _high_pipe()
        self._in, to_write = _high_pipe()
        command = [sys.executable, "-c", _START, str(to_read), str(to_write), program, *_FLAGS]
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={profile}"],
            pass_fds=(to_read, to_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._number, self._rest, self._session = 0, b"", None
        self.complaints: list[str] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")

    def look(self, width: int, *, dark: bool) -> None:
        """A window of this width, in light or dark colours."""
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])

    def before_each_page(self, script: str) -> None:
        """Runs in every page from now on, before anything of its own does."""
        self._ask("Page.addScriptToEvaluateOnNewDocument", source=script)

    def open(self, path: Path) -> None:
        """Load it; what it complains about from now on is in `complaints`."""
        self.complaints, self._loaded = [], False
        self._ask("Page.navigate", url=path.resolve().as_uri())
        end = time.monotonic() + 300
        while not self._loaded:
            assert time.monotonic() < end, f"{path} was not loaded"
            self._receive(1.0)

    def value(self, expression: str) -> Any:
        found = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def screenshot(self, path: Path) -> None:
        data = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + 300
        while time.monotonic() < end:
            answer = self._receive(1.0)
            if answer is not None and answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
        raise AssertionError(f"the browser does not answer {method}")

    def _receive(self, seconds: float) -> dict[str, Any] | None:
        """The next message, after what an event says has been noted."""
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], seconds)[0]:
                return None
            piece = os.read(self._in, 1 << 20)
            assert piece, "the browser is gone"
            self._rest += piece
        text, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, told: dict[str, Any]) -> None:
        if event == "Page.loadEventFired":
            self._loaded = True
        elif event == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(told["exceptionDetails"])[:500])
        elif event == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(told["args"])[:500])
        elif event == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.complaints.append(told["entry"]["text"])
