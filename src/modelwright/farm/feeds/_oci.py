"""Any OCI registry as a feed: files are blobs, packages are tagged manifests, and each model has an index.

The protocol is that of the OCI distribution specification 1.1. What is pushed here can be pulled with `oras`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING

from modelwright._json import loads
from modelwright._lazy import lazy
from modelwright.errors import UsageError
from modelwright.farm.feeds._errors import FeedError
from modelwright.farm.feeds._feed import Offered, OnBytes
from modelwright.farm.feeds._http import STALL_S, TRIES, Http, HttpAnswer, HttpBody, receive_patiently
from modelwright.farm.feeds._model_index import INDEX, OCI_INDEX, ModelIndex, read_index
from modelwright.farm.feeds._names import path_name
from modelwright.farm.feeds._oci_wire import RegistryWire
from modelwright.farm.feeds._package import EMPTY, OCI_MANIFEST, Package, Shipment
from modelwright.farm.feeds._shelves import BlobFeed
from modelwright.models import FileDigest

if TYPE_CHECKING:
    import urllib.parse
else:
    urllib = lazy("urllib")

_ADDRESS = re.compile(r"([A-Za-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?((?:/[a-z0-9._-]+)*)/?")
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_PIECE = 64 << 20
"""A large file goes in pieces, so that a lost connection costs one of them at most."""
_ACCEPT = {"Accept": f"{OCI_MANIFEST}, {OCI_INDEX}"}
_ROUNDS = 20
_NEXT = re.compile(r'<([^>]+)>;\s*rel="?next')


class OciFeed(BlobFeed):
    """`oci://host[:port]/prefix`; `oci+http://` speaks without TLS, as on loopback."""

    def __init__(self, scheme: str, rest: str, stall_s: float = STALL_S) -> None:
        found = _ADDRESS.fullmatch(rest)
        if found is None:
            raise UsageError(
                f"{scheme}://{rest} is no registry", cause="it is host:port/name, in lower case", fix="oci://host/team"
            )
        self._host, self._prefix = f"{found[1]}{found[2] or ''}", found[3].strip("/")
        plain = scheme == "oci+http" or found[1] in _LOOPBACK
        self.address = f"{scheme}://{self._host}{found[3]}"
        self._base = f"{'http' if plain else 'https'}://{self._host}/v2"
        self._http = Http(self.address, stall_s)
        self._wire = RegistryWire(self._host, self._base, self._http)

    def preflight(self) -> None:
        """An upload is begun and taken back: that needs all that publishing needs."""
        self._wire.patiently("GET", f"{self._base}/")
        place = self._begin(self._url("wright-preflight"))
        self._wire.ask("DELETE", place, also=(404, 405))

    def reference(self, shipment: Shipment) -> str:
        repository = "/".join(filter(None, (self._host, self._prefix, shipment.package.repository)))
        return f"{repository}:{shipment.package.tag}"

    def offers(self, model: str) -> tuple[Offered, ...]:
        """What the index says, and what has a tag but is not in it yet."""
        url = self._url(path_name(model))
        known = self._index(url)
        fresh = [tag for tag in self._tags(url) if tag not in known.entries]
        offers = known.with_descriptions(self._descriptions(url, fresh)).offers()
        return tuple(offer for offer in offers if offer.package.model == model)

    def _url(self, repository: str) -> str:
        return "/".join(filter(None, (self._base, self._prefix, repository)))

    def _place(self, package: Package) -> str:
        return f"{self._url(package.repository)}/manifests/{package.tag}"

    def _blob(self, package: Package, sha256: str) -> str:
        return f"{self._url(package.repository)}/blobs/sha256:{sha256}"

    def _description(self, package: Package) -> bytes | None:
        return self._manifest(self._place(package))

    def _manifest(self, url: str) -> bytes | None:
        answer = self._wire.patiently("GET", url, headers=_ACCEPT, also=(404,))
        return None if answer.status == 404 else answer.body

    def _describe(self, shipment: Shipment) -> None:
        self._put_empty(shipment.package)
        self._put(self._place(shipment.package), OCI_MANIFEST, shipment.description)
        self._list(shipment)

    def _put_empty(self, package: Package) -> None:
        empty = FileDigest("config", hashlib.sha256(EMPTY).hexdigest(), len(EMPTY))
        url = self._url(package.repository)
        if not self._holds(package, empty):
            self._http.patiently(lambda: self._finish(self._begin(url), empty, EMPTY))

    def _put(self, url: str, kind: str, data: bytes) -> None:
        """Refused is asked again too: while others send the same file, a registry may not see it for a moment."""
        headers = {"Content-Type": kind}
        self._http.patiently(lambda: self._wire.ask("PUT", url, headers, data), ("unavailable", "refused"))

    def _list(self, shipment: Shipment) -> None:
        """Bring the index up to date. Others may do so at the same time: whoever writes last has then seen all tags."""
        url, own = self._url(shipment.package.repository), shipment.package.tag
        for _ in range(_ROUNDS):
            index = self._index(url)
            fresh = [tag for tag in self._tags(url) if tag not in index.entries and tag != own]
            found = self._descriptions(url, fresh) | {own: shipment.description}
            fuller = index.with_descriptions(found)
            if fuller == index:
                return
            self._put(f"{url}/manifests/{INDEX}", OCI_INDEX, fuller.document)

    def _index(self, url: str) -> ModelIndex:
        return read_index(self._manifest(f"{url}/manifests/{INDEX}"))

    def _descriptions(self, url: str, tags: list[str]) -> dict[str, bytes]:
        found = {tag: self._manifest(f"{url}/manifests/{tag}") for tag in tags}
        return {tag: data for tag, data in found.items() if data is not None}

    def _tags(self, url: str) -> list[str]:
        """All pages of the listing; one that is cut short only costs what the index does not know either."""
        found: list[str] = []
        page: str | None = f"{url}/tags/list"
        seen: set[str] = set()
        while page is not None and page not in seen:
            seen.add(page)
            answer = self._page(page)
            found += [str(tag) for tag in _tags_in(answer) if tag != INDEX]
            following = _NEXT.match(answer.headers.get("link", ""))
            page = urllib.parse.urljoin(page, following[1]) if following else None
        return found

    def _page(self, url: str) -> HttpAnswer:
        return self._wire.patiently("GET", url, also=(404,))

    def _holds(self, package: Package, file: FileDigest) -> bool:
        """The registry has checked the digest when it took the blob."""
        url = self._blob(package, file.sha256)
        answer = self._wire.patiently("HEAD", url, also=(404,))
        said = answer.headers.get("docker-content-digest", f"sha256:{file.sha256}")
        size = answer.headers.get("content-length")
        return answer.status == 200 and said == f"sha256:{file.sha256}" and size == str(file.size)

    def _upload(self, package: Package, file: FileDigest, path: Path, on_bytes: OnBytes) -> None:
        """In pieces; after a failure it goes on behind the last byte that arrived."""
        place, sent, left = self._begin(self._url(package.repository)), 0, TRIES
        with path.open("rb") as stream:
            while True:
                try:
                    self._send_rest(place, file, sent, stream, lambda count: on_bytes(file.name, count))
                    return
                except FeedError as error:
                    left -= 1
                    if error.kind != "unavailable" or left < 0:
                        raise
                if self._holds(package, file):
                    return  # it has arrived, and only the answer was lost
                before = sent
                place, sent = self._resumed(package, place)
                left = TRIES if sent > before else left

    def _send_rest(
        self, place: str, file: FileDigest, sent: int, stream: IO[bytes], told: Callable[[int], None]
    ) -> None:
        while file.size - sent > _PIECE:
            headers = {"Content-Range": f"{sent}-{sent + _PIECE - 1}"}
            answer = self._wire.ask("PATCH", place, headers, HttpBody(stream, sent, _PIECE, told))
            place, sent = self._location(place, answer), sent + _PIECE
        headers = {"Content-Range": f"{sent}-{file.size - 1}"} if sent else {}
        self._finish(place, file, HttpBody(stream, sent, file.size - sent, told), headers)

    def _begin(self, url: str) -> str:
        start = f"{url}/blobs/uploads/"
        return self._location(start, self._wire.patiently("POST", start, body=b""))

    def _resumed(self, package: Package, place: str) -> tuple[str, int]:
        """Where an upload goes on, and how much of it has arrived."""
        answer = self._wire.patiently("GET", place, also=(404, 405))
        arrived = re.fullmatch(r"(?:bytes=)?0-(\d+)", answer.headers.get("range", ""))
        if answer.status != 204 or arrived is None:
            return self._begin(self._url(package.repository)), 0
        # A registry says 0-0 for one byte and for none; nothing is lost by beginning anew.
        end = int(arrived[1])
        return (self._location(place, answer), end + 1) if end else (self._begin(self._url(package.repository)), 0)

    def _finish(
        self, place: str, file: FileDigest, body: bytes | HttpBody, headers: dict[str, str] | None = None
    ) -> None:
        url = f"{place}{'&' if '?' in place else '?'}digest=sha256%3A{file.sha256}"
        self._wire.ask("PUT", url, headers=headers, body=body)

    def _location(self, asked: str, answer: HttpAnswer) -> str:
        return urllib.parse.urljoin(asked, answer.headers.get("location", asked))

    def _download(self, package: Package, file: FileDigest, path: Path, on_bytes: OnBytes) -> None:
        url = self._blob(package, file.sha256)
        receive_patiently(lambda headers: self._wire.streaming(url, headers), path, file, on_bytes)


def _tags_in(answer: HttpAnswer) -> list[str]:
    """Of a page of a listing; a repository that is not there has none."""
    try:
        return list(loads(answer.body)["tags"] or ()) if answer.status == 200 else []
    except (ValueError, KeyError, TypeError):
        return []
