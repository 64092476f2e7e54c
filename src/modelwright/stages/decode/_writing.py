"""How a model writes: with which tokens it begins and ends, and which it never writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.models import read_config

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

_FILES = ("config.json", "generation_config.json")


@dataclass(frozen=True)
class Writing:
    """Token ids. `start` is fed before anything is written; empty where nothing says it."""

    start: tuple[int, ...] = ()
    end: tuple[int, ...] = ()
    never: tuple[int, ...] = ()

    def allowed(self, scores: NDArray[Any]) -> NDArray[Any]:
        """The scores of the next token, without those that are never written."""
        found = np.array(scores)
        found[[token for token in self.never if token < len(found)]] = -np.inf
        return found


def read_generation(folder: str | None) -> dict[str, Any]:
    """What a Hugging Face folder says about writing; its generation settings go before its configuration."""
    found: dict[str, Any] = {}
    for name in _FILES:
        if folder is not None and (path := Path(folder, name)).is_file():
            found |= {key: value for key, value in read_config(path).items() if value is not None}
    return found


def writing_of(generation: Mapping[str, Any]) -> Writing:
    end = _flat(generation.get("eos_token_id"))
    never = tuple(token for token in _forbidden(generation) if token not in end)
    return Writing(tuple(_first_tokens(generation)), tuple(end), never)


def _first_tokens(generation: Mapping[str, Any]) -> list[int]:
    """The start token, then what is forced to follow it: a language, a task."""
    found = _flat(generation.get("decoder_start_token_id"))
    if not found:
        return []
    for _, token in generation.get("forced_decoder_ids") or ():
        if token is None:
            break
        found.append(int(token))
    return found + [token for token in _flat(generation.get("forced_bos_token_id")) if token not in found]


def _forbidden(generation: Mapping[str, Any]) -> list[int]:
    """Tokens that the model's own settings never let it write."""
    words = [word[0] for word in generation.get("bad_words_ids") or () if len(word) == 1]
    return _flat([*words, *(generation.get("suppress_tokens") or ())])


def _flat(token: Any) -> list[int]:
    tokens = token if isinstance(token, list) else [] if token is None else [token]
    return [int(item) for item in tokens if int(item) >= 0]
