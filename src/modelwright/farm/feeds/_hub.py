"""The Hugging Face Hub as a feed: a model is a repository, a package is a folder in it that came with one commit.

`index.json` and the card name all packages of the model. Whoever commits says on which state, so of two that publish at
once the second looks again.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._json import digest
from modelwright._lazy import lazy
from modelwright.errors import UsageError
from modelwright.farm.feeds._errors import FeedError, FeedFault, corrupt
from modelwright.farm.feeds._feed import Feed, Offered, OnBytes
from modelwright.farm.feeds._http import FIXES, STALL_S, TRIES, Http, receive_patiently
from modelwright.farm.feeds._hub_card import card
from modelwright.farm.feeds._hub_wire import HubFile, HubState, HubWire, hub_token, pointed, written
from modelwright.farm.feeds._model_index import ModelIndex, is_index, read_index
from modelwright.farm.feeds._names import word_name
from modelwright.farm.feeds._package import Package, Shipment
from modelwright.models import FileDigest

if TYPE_CHECKING:
    import urllib.parse
else:
    urllib = lazy("urllib")

_ADDRESS = re.compile(r"([A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)/?(?:\?(.*))?")
_HUB = "https://huggingface.co"
_LONGEST = 96
_ROUNDS = 20
_INDEX, _CARD, _RULES = "index.json", "README.md", ".gitattributes"
_ALL_BY_DIGEST = b"*/** filter=lfs diff=lfs merge=lfs -text\n"
"""What is in a folder is kept by its SHA-256, also where it is small text."""


class HubFeed(Feed):
    """`hf://organization`, with `?endpoint=https://…` where it is another Hub. New repositories are private, unless
    `?visibility=public` says otherwise."""

    def __init__(self, scheme: str, rest: str, stall_s: float = STALL_S) -> None:
        found = _ADDRESS.fullmatch(rest)
        said = dict(urllib.parse.parse_qsl(found[2] or "", keep_blank_values=True)) if found else {}
        endpoint = said.pop("endpoint", None) or os.environ.get("HF_ENDPOINT") or _HUB
        visibility = said.pop("visibility", "private")
        if found is None or said or visibility not in ("private", "public"):
            raise UsageError(
                f"{scheme}://{rest} is no place on the Hub",
                cause="it is one organization or user; each model gets a repository there",
                fix="hf://organization, and ?visibility=public where everybody may see it",
            )
        self._owner, self._private = found[1], visibility == "private"
        self.address = f"{scheme}://{rest}"
        self._http = Http(self.address, stall_s)
        self._wire = HubWire(self.address, endpoint.rstrip("/"), self._http)

    def preflight(self) -> None:
        """The token must be good for writing there, as far as the Hub tells; only a commit shows it for certain."""
        if hub_token() is None:
            raise self._failed("auth", "there is no token")
        me = self._wire.whoami()
        token = (me.get("auth") or {}).get("accessToken") or {}
        roles = {org.get("name"): org.get("roleInOrg") for org in me.get("orgs") or ()} | {me.get("name"): "admin"}
        if self._owner not in roles:
            raise self._failed("auth", f"{me.get('name')} is not of {self._owner}")
        if "read" in (token.get("role"), roles[self._owner]):
            raise self._failed("auth", f"{me.get('name')} may only read there, with this token")

    def reference(self, shipment: Shipment) -> str:
        """Where people and other tools find it, for good."""
        repository, tag = self._repository(shipment.package.model), shipment.package.tag
        return f"{self._wire.endpoint}/{repository}/tree/{self._brought(shipment.package) or 'main'}/{tag}"

    def find(self, package: Package) -> Shipment | None:
        commit = self._brought(package)
        data = None if commit is None else self._read(package.model, commit, _place(package))
        return None if data is None else self.described(package, data)

    def confirm(self, shipment: Shipment) -> tuple[FileDigest, ...]:
        """By the SHA-256 that the Hub has for a file; where it has none, by reading it back."""
        commit = self._brought(shipment.package)
        places = {f"{shipment.package.tag}/{file.name}": file for file in shipment.files}
        there = self._wire.files(self._repository(shipment.package.model), commit, list(places)) if commit else {}
        held = {path for path, found in there.items() if self._is(shipment.package, found, places[path], str(commit))}
        return tuple(file for path, file in places.items() if path in held)

    def send(self, shipment: Shipment, folder: Path, on_bytes: OnBytes) -> None:
        repository, package = self._repository(shipment.package.model), shipment.package
        self._prepare(repository)
        places = {f"{package.tag}/{file.name}": file for file in shipment.files}
        local = {path: folder / file.name for path, file in places.items()}
        modes = self._wire.modes(repository, local)
        for path, file in places.items():
            if modes[path] == "lfs":
                self._upload(repository, file, local[path], on_bytes)
        lines = [
            pointed(path, file) if modes[path] == "lfs" else written(path, local[path].read_bytes())
            for path, file in places.items()
        ]
        self._publish(repository, shipment, lines)
        for path, file in places.items():
            if modes[path] != "lfs":
                on_bytes(file.name, file.size)

    def fetch(self, shipment: Shipment, folder: Path, on_bytes: OnBytes) -> None:
        """All of one commit, whatever happens meanwhile."""
        commit = self._brought(shipment.package)
        if commit is None:
            raise corrupt(f"{self.address} does not have {shipment.package}", "it was there a moment ago")
        repository = self._repository(shipment.package.model)
        for file in shipment.files:
            path = folder / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            url = self._wire.place(repository, commit, f"{shipment.package.tag}/{file.name}")
            receive_patiently(functools.partial(self._wire.streaming, url), path, file, on_bytes)

    def offers(self, model: str) -> tuple[Offered, ...]:
        state = self._wire.state(self._repository(model))
        if state is None:
            return ()
        offers = self._index(model, state.head).offers()
        return tuple(offer for offer in offers if offer.package.model == model)

    def _repository(self, model: str) -> str:
        name = word_name(*model.split("/"))
        if len(f"{self._owner}/{name}") > _LONGEST or name.endswith((".git", ".ipynb")):
            name = f"{name[: _LONGEST - len(self._owner) - 15].rstrip('._-')}-{digest([model])[:12]}"
        return f"{self._owner}/{name}"

    def _brought(self, package: Package) -> str | None:
        """The commit that brought a package; None when the Hub says that there is none."""
        path = _place(package)
        found = self._wire.files(self._repository(package.model), "main", [path]).get(path)
        return None if found is None else found.commit or "main"

    def _is(self, package: Package, found: HubFile, file: FileDigest, commit: str) -> bool:
        if found.size != file.size:
            return False
        if found.sha256 is not None:
            return found.sha256 == file.sha256
        data = self._read(package.model, commit, found.path)
        return data is not None and hashlib.sha256(data).hexdigest() == file.sha256

    def _read(self, model: str, revision: str, path: str) -> bytes | None:
        return self._wire.read(self._repository(model), revision, path)

    def _prepare(self, repository: str) -> None:
        """A repository that is ours, that nobody sees who should not, with its rules."""
        state = self._wire.state(repository) or self._made(repository)
        index = self._wire.read(repository, state.head, _INDEX)
        if index is not None and is_index(index):
            return
        if index is not None or set(self._wire.root(repository, state.head)) - {_RULES, _CARD}:
            raise self._failed("refused", f"{repository} is something else, and stays as it is; give another `model`")
        rules = (self._wire.read(repository, state.head, _RULES) or b"") + _ALL_BY_DIGEST
        lines = [written(_RULES, rules), written(_INDEX, ModelIndex().document)]
        # Twice is once: the second has another parent.
        self._http.patiently(lambda: self._wire.commit(repository, state.head, "Begin", lines))

    def _made(self, repository: str) -> HubState:
        self._wire.create(repository, private=self._private)
        state = self._state(repository)
        if self._private and not state.private:
            raise self._failed("refused", f"it made {repository} for all to see; nothing was sent")
        return state

    def _state(self, repository: str) -> HubState:
        state = self._wire.state(repository)
        if state is None:
            raise self._failed("refused", f"{repository} is gone")
        return state

    def _upload(self, repository: str, file: FileDigest, path: Path, on_bytes: OnBytes) -> None:
        """What has arrived is not sent again, also when only the answer was lost."""
        for left in reversed(range(TRIES)):
            actions = self._wire.actions(repository, [file]).get(file.sha256)
            if actions is None:
                return
            try:
                with path.open("rb") as stream:
                    self._wire.upload(file, stream, actions, lambda count: on_bytes(file.name, count))
                return
            except FeedError as error:
                if error.kind != "unavailable" or not left:
                    raise

    def _publish(self, repository: str, shipment: Shipment, lines: list[dict[str, Any]]) -> None:
        """One commit with the files, the index and the card, on the newest state."""
        left = TRIES
        for _ in range(_ROUNDS):
            head = self._state(repository).head
            index = self._index(shipment.package.model, head)
            if shipment.package.tag in index.entries:
                raise self._failed("conflict", f"it has {shipment.package} already")
            described = written(_place(shipment.package), shipment.description)
            whole = [*lines, described, *self._listed(head, shipment, index)]
            try:
                if self._wire.commit(repository, head, f"Publish {shipment.package}", whole):
                    return
            except FeedError as error:
                left -= 1
                # Where it was made, and only the answer was lost, whoever asked for it asks the Hub.
                if error.kind != "unavailable" or not left or self._brought(shipment.package):
                    raise
        raise self._failed("unavailable", "others commit all the time")

    def _listed(self, head: str, shipment: Shipment, index: ModelIndex) -> list[dict[str, Any]]:
        model = shipment.package.model
        index = index.with_descriptions({shipment.package.tag: shipment.description})
        before = self._read(model, head, _CARD)
        told = card(None if before is None else before.decode("utf-8", "replace"), model, index.entries)
        cards = [] if told is None else [written(_CARD, told.encode())]
        return [written(_INDEX, index.document), *cards]

    def _index(self, model: str, revision: str) -> ModelIndex:
        """What the index says, and what is not in it: others may have committed too."""
        known = read_index(self._read(model, revision, _INDEX))
        named = [_tag(path) for path in self._wire.root(self._repository(model), revision) if path != _INDEX]
        fresh = [tag for tag in named if tag is not None and tag not in known.entries]
        found = {tag: self._read(model, revision, f"{tag}.json") for tag in fresh}
        return known.with_descriptions({tag: data for tag, data in found.items() if data is not None})

    def _failed(self, kind: FeedFault, cause: str) -> FeedError:
        fix = "hf auth login with a token that may write there, or HF_TOKEN" if kind == "auth" else FIXES[kind]
        return FeedError(f"{self.address} did not do it", kind=kind, cause=cause, fix=fix)


def _place(package: Package) -> str:
    """The description is beside the folder of the package, which holds what was built and nothing else."""
    return f"{package.tag}.json"


def _tag(path: str) -> str | None:
    return path.removesuffix(".json") if path.endswith(".json") and "/" not in path else None
