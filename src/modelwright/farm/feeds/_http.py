"""HTTP as feeds need it: streams, a limit on silence instead of on time, and failures by their kind."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from modelwright import __version__
from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.farm.feeds._errors import FeedError, FeedFault
from modelwright.models import FileDigest

if TYPE_CHECKING:
    import http.client
    import urllib.error
    import urllib.parse
    import urllib.request
else:
    http = lazy("http")
    urllib = lazy("urllib")

T = TypeVar("T")
CHUNK = 1 << 20
STALL_S = 60.0
"""After so long without a byte nobody is there. Slow is not silent."""
TRIES = 3
_PAUSE_S = 0.3
_LONGEST = 16 << 20
_FAULTS: Mapping[int, FeedFault] = {401: "auth", 403: "auth", 407: "auth", 409: "conflict", 412: "conflict"}
_BUSY = (408, 425, 429)
FIXES: Mapping[FeedFault, str] = {
    "auth": "log in again, and check that this account may write there",
    "conflict": "ask what is there under that name, and give another `version`",
    "unavailable": "check the address and the network, then run the same command again: it goes on where it stopped",
    "refused": "look into the feed's own log; other packages are not concerned",
}


@dataclass(frozen=True)
class HttpAnswer:
    """What a server said. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpBody:
    """Part of a file that is sent: `length` bytes from `start`."""

    def __init__(self, stream: IO[bytes], start: int, length: int, told: Callable[[int], None]) -> None:
        self._stream, self.start, self.length, self._told = stream, start, length, told
        self.rewind()

    def rewind(self) -> None:
        self._stream.seek(self.start)
        self._left = self.length

    def read(self, count: int = CHUNK) -> bytes:
        piece = self._stream.read(min(count, self._left))
        self._left -= len(piece)
        self._told(len(piece))
        return piece


class Http:
    """Asks the servers of one feed. Every failure is a `FeedError`."""

    def __init__(self, address: str, stall_s: float = STALL_S) -> None:
        self._address, self._stall_s = address, stall_s

    def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | HttpBody | None = None,
        also: tuple[int, ...] = (),
    ) -> HttpAnswer:
        """The answer to one request. A status outside 200 to 299 that is not in `also` is a failure."""
        with self.opened(method, url, headers, body, also) as (answer, stream):
            return HttpAnswer(answer.status, answer.headers, stream.read(_LONGEST))

    @contextlib.contextmanager
    def opened(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | HttpBody | None = None,
        also: tuple[int, ...] = (),
    ) -> Iterator[tuple[HttpAnswer, IO[bytes]]]:
        """The same, with a body that is yet to be read."""
        with self._failures(method, url):
            try:
                response = _opener().open(_request(method, url, headers, body), timeout=self._stall_s)
            except urllib.error.HTTPError as error:
                response = error
            with response:
                answer = HttpAnswer(response.status, {k.lower(): v for k, v in response.headers.items()}, b"")
                yield self.accepted(method, url, answer, also), response

    def accepted(self, method: str, url: str, answer: HttpAnswer, also: tuple[int, ...] = ()) -> HttpAnswer:
        """The answer, if it is none of failure."""
        if 200 <= answer.status < 300 or answer.status in also:
            return answer
        raise self._failed(method, url, answer.status)

    def patiently(self, ask: Callable[[], T], kinds: tuple[FeedFault, ...] = ("unavailable",)) -> T:
        """What fails because nobody answers is asked again, a few times. Only for what may be asked twice."""
        for left in reversed(range(TRIES)):
            try:
                return ask()
            except FeedError as error:
                if error.kind not in kinds or not left:
                    raise
                time.sleep(_PAUSE_S * (TRIES - left))
        raise AssertionError("the last try returns or raises")

    def _failed(self, method: str, url: str, status: int) -> FeedError:
        kind = fault_of(status)
        what = f"HTTP status {status} to {method} {_shown(url)}"
        return FeedError(f"{self._address} answered {status}", kind=kind, cause=what, fix=FIXES[kind])

    @contextlib.contextmanager
    def _failures(self, method: str, url: str) -> Iterator[None]:
        try:
            yield
        except FeedError:
            raise
        except ValueError as error:  # not an address at all
            raise self._silent(f"{_shown(url)}: {error}") from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            why = f"nothing for {self._stall_s:g} s" if isinstance(reason, TimeoutError) else str(reason) or repr(error)
            raise self._silent(f"{why}, asked {method} {_shown(url)}") from error

    def _silent(self, cause: str) -> FeedError:
        fix = FIXES["unavailable"]
        return FeedError(f"{self._address} does not answer", kind="unavailable", cause=cause, fix=fix)


def fault_of(status: int) -> FeedFault:
    """What an HTTP status means for a package, or for all of them."""
    if status in _FAULTS:
        return _FAULTS[status]
    return "unavailable" if status >= 500 or status in _BUSY else "refused"


@functools.cache
def _opener() -> urllib.request.OpenerDirector:
    """A server that sends us on within itself still knows who we are; another one is not told."""

    class WithinOneServer(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, req: Any, *said: Any) -> urllib.request.Request | None:
            following = super().redirect_request(req, *said)
            known = req.unredirected_hdrs.get("Authorization")
            if following is not None and known and _origin(following.full_url) == _origin(req.full_url):
                following.add_unredirected_header("Authorization", known)
            return following

    return urllib.request.build_opener(WithinOneServer)


def _origin(url: str) -> tuple[str, str]:
    return urllib.parse.urlsplit(url)[:2]


def _request(
    method: str, url: str, headers: Mapping[str, str] | None, body: bytes | HttpBody | None
) -> urllib.request.Request:
    request = urllib.request.Request(url, data=body, method=method)
    if body is not None:
        size = body.length if isinstance(body, HttpBody) else len(body)
        request.add_header("Content-Length", str(size))
        request.add_header("Content-Type", "application/octet-stream")
    request.add_header("User-Agent", f"modelwright/{__version__}")
    for name, value in (headers or {}).items():
        # `_opener` decides who gets our credentials where we are sent on.
        (request.add_unredirected_header if name == "Authorization" else request.add_header)(name, value)
    return request


def _shown(url: str) -> str:
    """Without what may be secret."""
    return url.partition("?")[0]


def receive_patiently(
    asked: Callable[[Mapping[str, str]], AbstractContextManager[tuple[HttpAnswer, IO[bytes]]]],
    path: Path,
    file: FileDigest,
    on_bytes: Callable[[str, int], None],
) -> None:
    """Write a file that is asked for with these headers. After a failure it goes on behind the last byte that came."""
    left = TRIES
    with path.open("wb") as target:
        while True:
            before = target.tell()
            try:
                _receive_rest(asked, target, file, lambda count: on_bytes(file.name, count))
                return
            except FeedError as error:
                left = TRIES if target.tell() > before else left - 1
                if error.kind != "unavailable" or left < 0:
                    raise


def _receive_rest(
    asked: Callable[[Mapping[str, str]], AbstractContextManager[tuple[HttpAnswer, IO[bytes]]]],
    target: IO[bytes],
    file: FileDigest,
    told: Callable[[int], None],
) -> None:
    have = target.tell()
    with asked({"Range": f"bytes={have}-{file.size - 1}"} if have else {}) as (answer, stream):
        if have and answer.status != 206:
            target.seek(0)
            target.truncate()
        _receive(stream, target, file.size, told)


def _receive(stream: IO[bytes], target: IO[bytes], size: int, told: Callable[[int], None]) -> None:
    """Write what comes, until `target` has `size` bytes. Less is an OSError: the connection was lost."""
    while target.tell() < size:
        piece = stream.read(min(CHUNK, size - target.tell()))
        if not piece:
            raise OSError(f"the answer ended after {target.tell()} of {size} bytes")
        target.write(piece)
        told(len(piece))
