"""The name of a result before it exists: a digest of everything that shapes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from modelwright import _json
from modelwright._dataclass import dataclass

RECORD = "record:"
"""How the stage of a record begins; its kind follows."""
DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, order=True)
class Key:
    """A SHA-256 in hex, and the stage it belongs to."""

    digest: str
    stage: str

    def __post_init__(self) -> None:
        require_digest(self.digest)

    @property
    def is_record(self) -> bool:
        """What was found, not what was made: it cannot be made again."""
        return self.stage.startswith(RECORD)

    def __str__(self) -> str:
        return f"{self.stage}:{self.digest[:12]}"


def stage_key(
    *,
    stage: str,
    version: str,
    libraries: Mapping[str, str],
    inputs: Mapping[str, str],
    params: Any,
) -> Key:
    """The key of one run of a stage.

    `libraries` are the versions that shape the output, `inputs` the digests of what goes in (never paths),
    `params` the resolved parameters: anything with a JSON form.
    """
    for digest in inputs.values():
        require_digest(digest)
    parts = {
        "stage": stage,
        "version": version,
        "libraries": dict(libraries),
        "inputs": dict(inputs),
        "params": params,
    }
    return Key(_json.digest(parts), stage)


def require_digest(text: str) -> None:
    """A wrong digest is a programming error, so it stays a ValueError."""
    if not DIGEST.fullmatch(text):
        raise ValueError(f"not a SHA-256 in lower-case hex: {text!r}")
