"""Requests to a registry, and who we are to it.

That is what `docker login` and its helpers have noted, and the tokens that are given for it.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from modelwright._json import loads
from modelwright._lazy import lazy
from modelwright.farm.feeds._http import Http, HttpAnswer, HttpBody

if TYPE_CHECKING:
    import shutil
    import subprocess
    import urllib.parse
else:
    shutil = lazy("shutil")
    subprocess = lazy("subprocess")
    urllib = lazy("urllib")

_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_HELPER_S = 30


class RegistryWire:
    """Requests to one registry. When it asks who we are it is told, and what it gives for that is used again.

    A server that a registry sends us on to is told nothing.
    """

    def __init__(self, host: str, base: str, http: Http) -> None:
        self._host, self._base, self._http = host, base, http
        self._known: dict[tuple[bool, str], str] = {}

    def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | HttpBody | None = None,
        also: tuple[int, ...] = (),
    ) -> HttpAnswer:
        answer = self._http.ask(method, url, self._with_login(method, url, headers), body, (*also, 401))
        if answer.status == 401 and self._log_in(method, url, answer):
            if isinstance(body, HttpBody):
                body.rewind()
            return self._http.ask(method, url, self._with_login(method, url, headers), body, also)
        return self._http.accepted(method, url, answer, also)

    @contextlib.contextmanager
    def streaming(self, url: str, headers: Mapping[str, str]) -> Iterator[tuple[HttpAnswer, IO[bytes]]]:
        """The answer to a GET whose body is yet to be read. Whether we may read has been asked before."""
        with self._http.opened("GET", url, self._with_login("GET", url, headers)) as found:
            yield found

    def patiently(self, method: str, url: str, **said: Any) -> HttpAnswer:
        return self._http.patiently(lambda: self.ask(method, url, **said))

    def _with_login(self, method: str, url: str, headers: Mapping[str, str] | None) -> dict[str, str]:
        known = self._known.get(_scope(method, url)) if url.startswith(f"{self._base}/") else None
        return {**(headers or {}), **({"Authorization": known} if known else {})}

    def _log_in(self, method: str, url: str, answer: HttpAnswer) -> bool:
        header = self._header(answer.headers.get("www-authenticate", ""))
        if header is None or not url.startswith(f"{self._base}/"):
            return False
        self._known[_scope(method, url)] = header
        return True

    def _header(self, challenge: str) -> str | None:
        scheme, _, words = challenge.partition(" ")
        basic = _basic(self._host)
        if scheme.lower() != "bearer":
            return basic
        return self._bearer(dict(_CHALLENGE.findall(words)), basic)

    def _bearer(self, words: Mapping[str, str], basic: str | None) -> str | None:
        asked = {name: words[name] for name in ("service", "scope") if name in words}
        url = f"{words.get('realm', '')}?{urllib.parse.urlencode(asked)}"
        said = loads(self._http.ask("GET", url, {"Authorization": basic} if basic else {}).body)
        token = said.get("token") or said.get("access_token")
        return f"Bearer {token}" if token else None


def _scope(method: str, url: str) -> tuple[bool, str]:
    """What a token is good for: reading or writing, in one repository."""
    return method not in ("GET", "HEAD"), re.split("/(?:blobs|manifests|tags)/", url)[0]


def _basic(host: str) -> str | None:
    config = _docker_config()
    helper = config.get("credHelpers", {}).get(host) or config.get("credsStore")
    if helper:
        return _from_helper(str(helper), host)
    noted = config.get("auths", {}).get(host, {}).get("auth")
    return f"Basic {noted}" if noted else None


def _docker_config() -> Mapping[str, Any]:
    folder = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    try:
        found = loads((folder / "config.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _from_helper(helper: str, host: str) -> str | None:
    program = shutil.which(f"docker-credential-{helper}")
    if program is None:
        return None
    try:
        done = subprocess.run([program, "get"], input=host.encode(), capture_output=True, timeout=_HELPER_S, check=True)
        said = loads(done.stdout)
        return "Basic " + base64.b64encode(f"{said['Username']}:{said['Secret']}".encode()).decode()
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError):
        return None
