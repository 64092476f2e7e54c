"""`modelwright.support`: what a model needs to be built, and what is shown of it."""

from __future__ import annotations

from pathlib import Path

from modelwright import support
from modelwright.support import SupportProbe


def probe(
    model: str | Path,
    *,
    task: str | None = None,
    revision: str | None = None,
    random_weights: bool = False,
    trust_remote_code: bool = False,
) -> SupportProbe:
    """The least that it takes to build a Hugging Face model, without loading its weights: `none`, `recipe` (a setting),
    `family` (a file for its type) or `shared` (something that other models would share)."""
    return support.probe(
        str(model),
        task=task,
        revision=revision,
        random_weights=random_weights,
        trust_remote_code=trust_remote_code,
    )
