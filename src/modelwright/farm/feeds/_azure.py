"""Azure Artifacts Universal Packages as a feed, through the `az` command.

What `az` prints in words is never read: its exit code says whether a call went well, and if not, the feed is asked what
there is. The service tells no digests, so a package is confirmed by getting it back once.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._json import digest, loads
from modelwright._lazy import lazy
from modelwright._scratch import scratch
from modelwright.errors import UsageError
from modelwright.farm.feeds._errors import FeedError, corrupt
from modelwright.farm.feeds._feed import Feed, Offered, OnBytes
from modelwright.farm.feeds._http import FIXES
from modelwright.farm.feeds._names import word_name
from modelwright.farm.feeds._package import DESCRIPTION, Package, Shipment, package_in
from modelwright.models import FileDigest, digests_of

if TYPE_CHECKING:
    import shutil
    import subprocess
    import urllib.parse
else:
    shutil = lazy("shutil")
    subprocess = lazy("subprocess")
    urllib = lazy("urllib")

_DEVOPS = "499b84ac-1321-427f-aa17-267ca6975798"
"""What Azure calls Azure DevOps when a token is asked for."""
_PAT = "AZURE_DEVOPS_EXT_PAT"
_PAGE = 100
_PATIENCE_S = 120.0
_SLOWEST = 1e6
"""Bytes per second. `az` does not say how far it is, so a transfer has a limit by its size."""


class AzureFeed(Feed):
    """`az://organization/project/feed`. A model is a package of the feed, an artifact is a version of it.

    Versions are lower-case SemVer and never change; a deleted one can never be used again.
    """

    def __init__(self, scheme: str, rest: str, patience_s: float = _PATIENCE_S) -> None:
        words = rest.strip("/").split("/")
        if len(words) != 3 or not all(re.fullmatch(r"[A-Za-z0-9][\w .-]*", word) for word in words):
            raise UsageError(
                f"{scheme}://{rest} is no feed",
                cause="it is organization/project/feed",
                fix=f"{scheme}://org/project/feed",
            )
        organization, self._project, self._feed = words
        self._organization = f"https://dev.azure.com/{organization}"
        self.address = f"{scheme}://{rest.strip('/')}"
        self._patience_s = patience_s

    def preflight(self) -> None:
        """The extension must be there, and the feed must answer. Only a publish shows whether we may write."""
        if self._az("extension", "show", "--name", "azure-devops") is None:
            fix = "az extension add --name azure-devops"
            raise FeedError(f"{self.address}: az cannot publish", kind="unsupported", cause="no azure-devops", fix=fix)
        self._listed("wright-preflight")

    def reference(self, shipment: Shipment) -> str:
        return f"{self.address}/{_name(shipment.package.model)}@{_version(shipment.package)}"

    def find(self, package: Package) -> Shipment | None:
        if _version(package) not in self._listed(_name(package.model)):
            return None
        with scratch("feed") as folder:
            self._download(_name(package.model), _version(package), folder, only=DESCRIPTION)
            if not (folder / DESCRIPTION).is_file():
                raise corrupt(f"{self.address} has a damaged {package}", f"it has no {DESCRIPTION}")
            return self.described(package, (folder / DESCRIPTION).read_bytes())

    def confirm(self, shipment: Shipment) -> tuple[FileDigest, ...]:
        """By getting it back."""
        with scratch("feed") as folder:
            self._download(_name(shipment.package.model), _version(shipment.package), folder, size=shipment.size)
            present = [file for file in shipment.files if (folder / file.name).is_file()]
            return tuple(file for file in present if digests_of(folder, [file.name]) == (file,))

    def send(self, shipment: Shipment, folder: Path, on_bytes: OnBytes) -> None:
        name, version = _name(shipment.package.model), _version(shipment.package)
        with _staged(shipment, folder) as staged:
            said = (
                "--name",
                name,
                "--version",
                version,
                "--description",
                _naming(shipment.package),
                "--path",
                str(staged),
            )
            done = self._universal("publish", *said, size=shipment.size)
        if done is None:
            raise self._unpublished(name, version)
        for file in shipment.files:
            on_bytes(file.name, file.size)

    def fetch(self, shipment: Shipment, folder: Path, on_bytes: OnBytes) -> None:
        self._download(_name(shipment.package.model), _version(shipment.package), folder, size=shipment.size)
        (folder / DESCRIPTION).unlink(missing_ok=True)
        for file in shipment.files:
            on_bytes(file.name, file.size)

    def offers(self, model: str) -> tuple[Offered, ...]:
        found = [(self._package(model, version, entry), entry) for version, entry in self._told(model).items()]
        return tuple(
            Offered(package, _moment(entry))
            for package, entry in found
            if package is not None and package.model == model
        )

    def _told(self, model: str) -> dict[str, Mapping[str, Any]]:
        return self._listed(_name(model), "includeDescription=true")

    def _unpublished(self, name: str, version: str) -> FeedError:
        """Why a package could not be published, by asking the feed. A version that was deleted is taken for good."""
        entry = self._listed(name, "includeDeleted=true").get(version)
        if entry is None:
            return self._failed("refused", f"the feed answers, and az could not publish {version}")
        if entry.get("isDeleted"):
            return self._failed("refused", f"{version} was there and was deleted, and is never free again")
        return self._failed("conflict", f"it has version {version} already")

    def _package(self, model: str, version: str, entry: Mapping[str, Any]) -> Package | None:
        """What a version is called by its publisher; where the listing does not say, by what is in it."""
        said = _named(str(entry.get("packageDescription") or ""))
        if said is not None:
            return said
        with scratch("feed") as folder:
            self._download(_name(model), version, folder, only=DESCRIPTION)
            return package_in((folder / DESCRIPTION).read_bytes()) if (folder / DESCRIPTION).is_file() else None

    def _listed(self, name: str, *also: str) -> dict[str, Mapping[str, Any]]:
        """All versions of a package, page by page; an answer that cannot be had or read is never an empty one."""
        found: dict[str, Mapping[str, Any]] = {}
        for start in range(0, 1_000_000, _PAGE):
            query = ("protocolType=UPack", f"packageNameQuery={name}", "includeAllVersions=true", *also)
            pages = (f"$top={_PAGE}", f"$skip={start}")
            route = ("--route-parameters", f"project={self._project}", f"feedId={self._feed}")
            where = ("--area", "packaging", "--resource", "packages", "--api-version", "7.1-preview", *route)
            said = self._az("devops", "invoke", *self._at, *where, "--query-parameters", *query, *pages)
            packages = self._packages(said)
            for package in packages:
                if package["name"] == name:
                    found |= {version["version"]: version for version in package["versions"]}
            if len(packages) < _PAGE:
                break
        return found

    def _packages(self, said: bytes | None) -> list[Mapping[str, Any]]:
        if said is None:
            raise self._unreachable()
        try:
            return list(loads(said)["value"])
        except (ValueError, KeyError, TypeError) as error:
            raise self._failed("unavailable", f"its listing cannot be read: {type(error).__name__}") from error

    def _unreachable(self) -> FeedError:
        """Why the feed did not answer: without a token, because it does not know us."""
        if not os.environ.get(_PAT) and self._az("account", "get-access-token", "--resource", _DEVOPS) is None:
            return self._failed("auth", "az gets no token for Azure DevOps")
        return self._failed("unavailable", "az could not list the feed; it is down, or the account may not read it")

    @property
    def _at(self) -> tuple[str, ...]:
        return ("--organization", self._organization)

    def _download(self, name: str, version: str, folder: Path, *, only: str | None = None, size: int = 0) -> None:
        said = ("--name", name, "--version", version, "--path", str(folder))
        filtered = ("--file-filter", only) if only else ()
        if self._universal("download", *said, *filtered, size=size) is None:
            self._listed(name)  # says whether it is the feed, or this package
            raise self._failed("corrupt", f"it lists version {version}, and az could not download it")

    def _universal(self, verb: str, *words: str, size: int) -> bytes | None:
        where = (*self._at, "--project", self._project, "--scope", "project", "--feed", self._feed)
        return self._az("artifacts", "universal", verb, *where, *words, patience_s=self._patience_s + size / _SLOWEST)

    def _az(self, *words: str, patience_s: float | None = None) -> bytes | None:
        """What it printed; None when it failed."""
        program = shutil.which("az")
        if program is None:
            fix = "install the Azure CLI with its extension azure-devops"
            raise FeedError(f"{self.address} needs az", kind="unsupported", cause="it is not on the path", fix=fix)
        command = [program, *words, "--only-show-errors", "--output", "json"]
        patience_s = patience_s or self._patience_s
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=patience_s, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise self._failed("unavailable", f"az {words[0]} took more than {patience_s:.0f} s") from error
        return done.stdout if done.returncode == 0 else None

    def _failed(self, kind: Any, cause: str) -> FeedError:
        fix = "az login, or a token in AZURE_DEVOPS_EXT_PAT" if kind == "auth" else FIXES.get(kind, FIXES["refused"])
        return FeedError(f"{self.address} did not do it", kind=kind, cause=cause, fix=fix)


def _name(model: str) -> str:
    return word_name(model)


def _version(package: Package) -> str:
    """One identifier behind the dash, as SemVer has it: readable, and with a digest of all words."""
    words = (package.target, package.precision, package.version or "")
    shown = re.sub(r"[^a-z0-9]+", "-", "-".join(words).lower()).strip("-")[:60].strip("-")
    return f"0.0.0-{shown}-{digest(list(words))[:12]}"


def _naming(package: Package) -> str:
    """What the listing shows of a version: its words, with nothing in them that a command line of Windows takes for its
    own (`az` is a batch file there)."""
    words = (package.model, package.target, package.precision, package.version or "")
    return " ".join(urllib.parse.quote(word, safe="/:=,").replace("~", "%7E").replace("%", "~") for word in words)


def _named(shown: str) -> Package | None:
    """None where somebody else described it."""
    words = [urllib.parse.unquote(word.replace("~", "%")) for word in shown.split(" ")]
    package = Package(*words) if len(words) == 4 else None
    return package if package is not None and _naming(package) == shown else None


def _moment(entry: Mapping[str, Any]) -> float:
    try:
        return datetime.fromisoformat(str(entry["publishDate"])).timestamp()
    except (KeyError, ValueError):
        return 0.0


@contextlib.contextmanager
def _staged(shipment: Shipment, folder: Path) -> Iterator[Path]:
    """A folder with nothing but the package's own files, for a command that takes a folder whole."""
    with scratch("feed") as staged:
        (staged / DESCRIPTION).write_bytes(shipment.description)
        for file in shipment.files:
            (staged / file.name).parent.mkdir(parents=True, exist_ok=True)
            try:
                (staged / file.name).hardlink_to(folder / file.name)
            except OSError:
                shutil.copyfile(folder / file.name, staged / file.name)
        yield staged
