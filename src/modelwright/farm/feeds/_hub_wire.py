"""Requests to the Hugging Face Hub, as its own client makes them.

Files go by the LFS protocol: the Hub knows them by their SHA-256, and is not sent what it has. A commit names its
parent, so it is made on the state it was thought out for, or not at all.
"""

from __future__ import annotations

import base64
import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._json import canonical, loads
from modelwright._lazy import lazy
from modelwright.farm.feeds._errors import FeedError
from modelwright.farm.feeds._http import FIXES, Http, HttpAnswer, HttpBody
from modelwright.models import FileDigest

if TYPE_CHECKING:
    import urllib.parse
else:
    urllib = lazy("urllib")

_JSON = {"Content-Type": "application/json"}
_LFS = dict.fromkeys(("Accept", "Content-Type"), "application/vnd.git-lfs+json")
_MOST_PATHS = 100
_SAMPLE = 512
_NEXT = re.compile(r'<([^>]+)>;\s*rel="?next')


@dataclass(frozen=True)
class HubFile:
    """A file of a repository. `sha256` is None for small text, of which the Hub tells no such digest."""

    path: str
    size: int
    sha256: str | None
    commit: str | None


@dataclass(frozen=True)
class HubState:
    """The newest commit of a repository, and who sees it."""

    head: str
    private: bool


class HubWire:
    """Requests to one Hub. Every failure is a `FeedError`; servers it sends us on to are not told who we are."""

    def __init__(self, address: str, endpoint: str, http: Http) -> None:
        self._address, self.endpoint, self._http = address, endpoint, http

    def whoami(self) -> Mapping[str, Any]:
        return self._object(self._patiently("GET", f"{self.endpoint}/api/whoami-v2"))

    def state(self, repository: str) -> HubState | None:
        """None when the Hub says that there is no such repository."""
        answer = self._patiently("GET", self._api(repository), also=(404,))
        if answer.status == 404:
            return None
        with self._readable():
            said = loads(answer.body)
            return HubState(str(said["sha"]), private=bool(said.get("private")))

    def create(self, repository: str, *, private: bool) -> None:
        owner, _, name = repository.partition("/")
        said = {"name": name, "organization": owner, "private": private}
        url = f"{self.endpoint}/api/repos/create"
        self._patiently("POST", url, headers=_JSON, body=canonical(said), also=(409,))

    def files(self, repository: str, revision: str, paths: Sequence[str]) -> dict[str, HubFile]:
        """Those of the paths that are there, each with the commit that brought it."""
        found: dict[str, HubFile] = {}
        for start in range(0, len(paths), _MOST_PATHS):
            asked = [("paths", path) for path in paths[start : start + _MOST_PATHS]]
            body = urllib.parse.urlencode([*asked, ("expand", "True")]).encode()
            url = f"{self._api(repository)}/paths-info/{revision}"
            answer = self._patiently(
                "POST", url, headers={"Content-Type": "application/x-www-form-urlencoded"}, body=body, also=(404,)
            )
            listed = [] if answer.status == 404 else self._list(answer)
            found |= {entry["path"]: _file(entry) for entry in listed if entry.get("type") == "file"}
        return found

    def root(self, repository: str, revision: str) -> list[str]:
        """What is at the root, to the last page of the listing."""
        found: list[str] = []
        page: str | None = f"{self._api(repository)}/tree/{revision}?recursive=False&expand=False"
        seen: set[str] = set()
        while page is not None and page not in seen:
            seen.add(page)
            answer = self._patiently("GET", page)
            found += [str(entry.get("path")) for entry in self._list(answer)]
            following = _NEXT.search(answer.headers.get("link", ""))
            page = urllib.parse.urljoin(page, following[1]) if following else None
        return found

    def modes(self, repository: str, files: Mapping[str, Path]) -> dict[str, str]:
        """For each path in the repository: `lfs`, or `regular` for what the Hub wants in the commit itself."""
        said = {"files": [_announced(path, local) for path, local in files.items()]}
        url = f"{self._api(repository)}/preupload/main"
        answer = self._object(self._patiently("POST", url, headers=_JSON, body=canonical(said)))
        with self._readable():
            modes = {str(entry["path"]): str(entry["uploadMode"]) for entry in answer["files"]}
            # The storage takes no empty object.
            return {path: modes[path] if local.stat().st_size else "regular" for path, local in files.items()}

    def actions(self, repository: str, files: Iterable[FileDigest]) -> dict[str, Mapping[str, Any]]:
        """How to send each file, by its digest. What the Hub has is not among them."""
        objects = [{"oid": file.sha256, "size": file.size} for file in files]
        said = {"operation": "upload", "transfers": ["basic", "multipart"], "objects": objects, "hash_algo": "sha256"}
        url = f"{self.endpoint}/{repository}.git/info/lfs/objects/batch"
        answer = self._object(self._patiently("POST", url, headers=_LFS, body=canonical(said)))
        with self._readable():
            refused = [entry["error"].get("code") for entry in answer["objects"] if "error" in entry]
            if refused:
                raise self._failed("refused", f"it takes no file, by its codes {refused}")
            return {entry["oid"]: entry["actions"] for entry in answer["objects"] if entry.get("actions")}

    def upload(
        self, file: FileDigest, stream: IO[bytes], actions: Mapping[str, Any], told: Callable[[int], None]
    ) -> None:
        """Send a file as the Hub said: in one piece or in several, and have it verified."""
        with self._readable():
            place, header = str(actions["upload"]["href"]), actions["upload"].get("header") or {}
            size = int(header.get("chunk_size") or 0)
            parts = [url for _, url in sorted((int(key), str(url)) for key, url in header.items() if key.isdigit())]
        if size:
            self._in_parts(file, stream, place, parts, size, told)
        else:
            self._http.ask("PUT", place, body=HttpBody(stream, 0, file.size, told))
        if "verify" in actions:
            said = canonical({"oid": file.sha256, "size": file.size})
            self._patiently("POST", str(actions["verify"]["href"]), headers=_JSON, body=said)

    def _in_parts(
        self, file: FileDigest, stream: IO[bytes], place: str, parts: list[str], size: int, told: Callable[[int], None]
    ) -> None:
        done = []
        for number, url in enumerate(parts):
            start = number * size
            body = HttpBody(stream, start, min(size, file.size - start), told)
            answer = self._http.ask("PUT", url, body=body)
            done.append({"partNumber": number + 1, "etag": answer.headers.get("etag", "")})
        self._http.ask("POST", place, _LFS, canonical({"oid": file.sha256, "parts": done}))

    def commit(self, repository: str, parent: str, title: str, lines: Iterable[Mapping[str, Any]]) -> bool:
        """Whether it was made; False when the newest commit is another than `parent`."""
        head = {"key": "header", "value": {"summary": title, "description": "", "parentCommit": parent}}
        body = b"".join(canonical(line) + b"\n" for line in (head, *lines))
        headers = {"Content-Type": "application/x-ndjson"}
        answer = self.ask("POST", f"{self._api(repository)}/commit/main", headers, body, also=(409, 412))
        return answer.status not in (409, 412)

    def read(self, repository: str, revision: str, path: str) -> bytes | None:
        """A small file; None when the Hub says that there is none."""
        answer = self._patiently("GET", self.place(repository, revision, path), also=(404,))
        return None if answer.status == 404 else answer.body

    @contextlib.contextmanager
    def streaming(self, url: str, headers: Mapping[str, str]) -> Iterator[tuple[HttpAnswer, IO[bytes]]]:
        with self._http.opened("GET", url, {**self._login(url), **headers}) as found:
            yield found

    def place(self, repository: str, revision: str, path: str) -> str:
        return f"{self.endpoint}/{repository}/resolve/{revision}/{urllib.parse.quote(path)}"

    def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        also: tuple[int, ...] = (),
    ) -> HttpAnswer:
        return self._http.ask(method, url, {**self._login(url), **(headers or {})}, body, also)

    def _patiently(self, method: str, url: str, **said: Any) -> HttpAnswer:
        return self._http.patiently(lambda: self.ask(method, url, **said))

    def _login(self, url: str) -> dict[str, str]:
        token = hub_token() if url.startswith(f"{self.endpoint}/") else None
        return {"Authorization": f"Bearer {token}"} if token else {}

    def _api(self, repository: str) -> str:
        return f"{self.endpoint}/api/models/{repository}"

    def _object(self, answer: HttpAnswer) -> Mapping[str, Any]:
        with self._readable():
            return dict(loads(answer.body))

    def _list(self, answer: HttpAnswer) -> list[Mapping[str, Any]]:
        with self._readable():
            return [dict(entry) for entry in loads(answer.body)]

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        """An answer that is not what the Hub says is no answer, and never an empty one."""
        try:
            yield
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._failed("unavailable", f"its answer cannot be read: {type(error).__name__}") from error

    def _failed(self, kind: Any, cause: str) -> FeedError:
        return FeedError(f"{self._address} did not do it", kind=kind, cause=cause, fix=FIXES[kind])


def written(path: str, data: bytes) -> dict[str, Any]:
    """A line of a commit: a small file with its content."""
    value = {"path": path, "encoding": "base64", "content": base64.b64encode(data).decode()}
    return {"key": "file", "value": value}


def pointed(path: str, file: FileDigest) -> dict[str, Any]:
    """A line of a commit: a file that was sent before."""
    return {"key": "lfsFile", "value": {"path": path, "algo": "sha256", "oid": file.sha256, "size": file.size}}


def _announced(path: str, local: Path) -> dict[str, Any]:
    with local.open("rb") as stream:
        sample = stream.read(_SAMPLE)
    return {"path": path, "size": local.stat().st_size, "sample": base64.b64encode(sample).decode()}


def _file(entry: Mapping[str, Any]) -> HubFile:
    lfs, last = entry.get("lfs") or {}, entry.get("lastCommit") or {}
    return HubFile(str(entry["path"]), int(lfs.get("size", entry["size"])), lfs.get("oid"), last.get("id"))


def hub_token() -> str | None:
    """As `hf auth login` keeps it."""
    said = os.environ.get("HF_TOKEN") or os.environ.get("HUGGING_FACE_HUB_TOKEN")
    if said:
        return said.strip()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache")
    home = Path(os.environ.get("HF_HOME") or cache / "huggingface")
    place = Path(os.environ.get("HF_TOKEN_PATH") or home / "token").expanduser()
    try:
        return place.read_text(encoding="utf-8").strip() or None
    except (OSError, ValueError):
        return None
