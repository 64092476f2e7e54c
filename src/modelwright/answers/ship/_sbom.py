"""What is in a package and what made it, as CycloneDX 1.6. No times and no random numbers: the same package, the same
document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from modelwright import __version__
from modelwright.answers.ship._types import ShippedVariant
from modelwright.models import FileDigest

SBOM = "sbom.cdx.json"


def sbom(
    model: str,
    variants: Iterable[ShippedVariant],
    licence: str | None,
    tools: Mapping[str, str],
    files: list[FileDigest],
) -> dict[str, Any]:
    """`tools` are the libraries that made it; `files` are those beside the variants."""
    listed = list(variants)
    made = [{"type": "application", "name": "modelwright", "version": __version__}]
    made += [{"type": "library", "name": name, "version": version} for name, version in sorted(tools.items())]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {"type": "machine-learning-model", "bom-ref": "model", "name": model, **_licences(licence)},
            "tools": {"components": made},
        },
        "components": [*map(_variant, listed), *(_file(file) for file in files)],
        "dependencies": [{"ref": "model", "dependsOn": [_ref(variant) for variant in listed]}],
    }


def _variant(variant: ShippedVariant) -> dict[str, Any]:
    said = {"target": variant.target, "precision": variant.precision, "portability": variant.carried}
    said |= {f"needs {least.what}": least.version for least in variant.needs}
    return {
        "type": "machine-learning-model",
        "bom-ref": _ref(variant),
        "name": variant.target,
        "properties": [{"name": f"modelwright:{key}", "value": value} for key, value in said.items()],
        "components": [{**_file(file), "bom-ref": f"{_ref(variant)}/{file.name}"} for file in variant.files],
    }


def _file(file: FileDigest) -> dict[str, Any]:
    digest = {"alg": "SHA-256", "content": file.sha256}
    return {"type": "file", "bom-ref": f"file:{file.name}", "name": file.name, "hashes": [digest]}


def _ref(variant: ShippedVariant) -> str:
    return f"variant:{variant.target}"


def _licences(licence: str | None) -> dict[str, Any]:
    return {} if licence is None else {"licenses": [{"expression": licence}]}
