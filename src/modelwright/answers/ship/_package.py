"""The package as files: variants, what selectors read, the selectors, what is in it, and what was found about it."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelwright import __version__
from modelwright._dataclass import dataclass
from modelwright._json import dumps, plain
from modelwright._output import SEAL, sealed
from modelwright._scratch import scratch
from modelwright.answers.ship._sbom import SBOM, sbom
from modelwright.answers.ship._selection import SELECTION, SELECTORS, selection, selector
from modelwright.answers.ship._types import ShippedVariant, ShipResult
from modelwright.answers.ship._variants import folders_of, package_files, shipped
from modelwright.models import FileDigest
from modelwright.pipeline import BuildResult
from modelwright.store import Artifact, Produced, Store, stage_key

PACKAGE = "wright-package.json"
README = "README.md"
_VERSION = 1


@dataclass(frozen=True, eq=False)
class PackageDraft:
    """The variants on disk, before anything is known about them."""

    folder: Path
    builds: tuple[BuildResult, ...]
    variants: tuple[ShippedVariant, ...]
    store: Store

    def select(self, variants: Sequence[ShippedVariant]) -> str:
        """Write what selectors read, and the Python one; gives the digest that seals it."""
        text = selection(variants).encode()
        (self.folder / SELECTION).write_bytes(text)
        (self.folder / SELECTORS[0]).write_bytes(selector(SELECTORS[0]))
        return hashlib.sha256(text).hexdigest()


@contextlib.contextmanager
def draft_package(builds: Sequence[BuildResult], store: Store) -> Iterator[PackageDraft]:
    """In a folder of its own, away from the store: variants with external data cannot be links."""
    files = package_files(builds, store)
    with scratch("package", store.root.parent / "scratch") as place:
        folder = store.materialize(_artifact(store, {"draft": True}, {}, files), place / "package")
        pairs = zip(builds, folders_of(builds), strict=True)
        variants = tuple(shipped(build, where, folder) for build, where in pairs)
        yield PackageDraft(folder, tuple(builds), variants, store)


def write_package(draft: PackageDraft, result: ShipResult, tools: Mapping[str, str], *, overwrite: bool) -> None:
    """Whole or not at all: the folder is swapped in."""
    written = {SELECTION: selection(result.variants).encode()}
    written |= {name: selector(name) for name in SELECTORS}
    written[README] = _readme(result).encode()
    about = [FileDigest(name, hashlib.sha256(data).hexdigest(), len(data)) for name, data in sorted(written.items())]
    listed = sbom(result.model, result.variants, result.licence, tools, about)
    written[SBOM] = (dumps(listed) + "\n").encode()
    written[PACKAGE] = sealed(dumps(_manifest(result, written)) + "\n")
    artifact = _artifact(draft.store, {"sealed": hashlib.sha256(written[PACKAGE]).hexdigest()}, written,
                         package_files(draft.builds, draft.store))  # fmt: skip
    draft.store.materialize(artifact, result.folder, overwrite=overwrite)


def _manifest(result: ShipResult, written: Mapping[str, bytes]) -> dict[str, Any]:
    """Everything that is known, for people and tools; no path of this machine is in it."""
    found = plain(replace(result, folder=Path()).content())
    del found["folder"]
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in written.items()}
    head = {"schema_version": _VERSION, "tool": f"modelwright {__version__}"}
    made = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {**head, "made": made, **found, "files": digests, "seal": SEAL}


def _artifact(
    store: Store, params: Mapping[str, object], written: Mapping[str, bytes], reused: Sequence[Any]
) -> Artifact:
    inputs = {file.name: file.digest for file in reused}
    key = stage_key(stage="package", version="1", libraries={}, inputs=inputs, params=dict(params))

    def produce(workdir: Path) -> Produced:
        for name, data in written.items():
            (workdir / name).write_bytes(data)
        return Produced(roles=dict.fromkeys(written, "package"), reused=tuple(reused))

    return store.once(key, produce, label="a package").artifact


def _readme(result: ShipResult) -> str:
    rows = [f"| {one.target} | {one.precision} | {one.carried} | {_needs(one)} |" for one in result.variants]
    return "\n".join(
        [
            f"# {result.model}",
            "",
            "| variant, best first | precision | where it can go | needs |",
            "|---|---|---|---|",
            *rows,
            "",
            "`wright_select.py`, `wright_select.hpp` and `WrightSelect.cs` open the first variant that the machine can",
            "run, after checking every file of it by its digest. They need onnxruntime and nothing else:",
            "",
            "```python",
            "import wright_select",
            f'opened = wright_select.open_session("path/of/this/folder", seal="{result.selection_seal}")',
            "print(opened.why())",
            "```",
            "",
            f"Licence of the model: {result.licence or 'not said'}. What is in here: `{SBOM}` (CycloneDX). "
            f"What was asked of it: `{PACKAGE}`.",
            "",
        ]
    )


def _needs(variant: ShippedVariant) -> str:
    return ", ".join(least.words for least in variant.needs)
