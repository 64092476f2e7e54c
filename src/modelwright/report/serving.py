"""A site shown on this machine: static files, to browsers that mean this machine."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from modelwright.errors import UsageError

_HERE = ("127.0.0.1", "localhost")
_FRESH_S = 5.0


def serve_site(folder: Path, port: int, again: Callable[[], object], ready: Callable[[str], None]) -> None:
    """Until it is interrupted; `again` builds it anew, `ready` is told its address."""
    handler = functools.partial(_SiteHandler, directory=str(folder), again=_Rebuilding(again))
    try:
        server = ThreadingHTTPServer((_HERE[0], port), handler)
    except OSError as error:
        raise UsageError(f"port {port} cannot be used", cause=str(error), fix="give another `port`") from None
    with server:
        ready(f"http://{_HERE[0]}:{server.server_port}/")
        server.serve_forever()


class _Rebuilding:
    """One at a time, and not more often than somebody reads."""

    def __init__(self, again: Callable[[], object]) -> None:
        self._again, self._lock, self._last = again, threading.Lock(), time.monotonic()

    def __call__(self) -> None:
        with self._lock:
            if time.monotonic() - self._last > _FRESH_S:
                self._again()
                self._last = time.monotonic()


class _SiteHandler(SimpleHTTPRequestHandler):
    """A page of another site that got a browser to ask here under its own name gets nothing."""

    def __init__(self, *args: Any, again: _Rebuilding, **kwargs: Any) -> None:
        self._again = again
        super().__init__(*args, **kwargs)

    def do_GET(self) -> None:
        if self.headers.get("Host", "").rpartition(":")[0] not in _HERE:
            self.send_error(HTTPStatus.FORBIDDEN)
            return
        if self.path in ("/", "/index.html"):
            self._again()
        super().do_GET()

    def list_directory(self, path: Any) -> None:
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: Any) -> None:
        """The pages are what is looked at."""
