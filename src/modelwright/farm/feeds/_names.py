"""Names for places that allow little: readable, never longer than allowed, and never the same for two things.

A name that is allowed as it is stays as it is. Any other is made so and gets the beginning of a digest of the whole
name, as does one that already ends like that; so no two names meet, also where case does not count.
"""

from __future__ import annotations

import re

from modelwright._filenames import reserved
from modelwright._json import digest

_LONGEST = 96
_WORD = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
_MARKED = re.compile(r".*-[0-9a-f]{12}")


def path_name(name: str) -> str:
    """With slashes where the name has them, for repositories and folders: `org/model`."""
    parts = name.split("/")
    if len(name) <= _LONGEST and all(map(_plain, parts)):
        return name
    return "/".join([*filter(None, map(_worn, parts[:-1])), _marked(parts[-1], name)])[-2 * _LONGEST :].lstrip("/._-")


def word_name(*words: str) -> str:
    """All words in one: `qnn-npu_w8a16_0f3c`."""
    joined = "_".join(words)
    if len(joined) <= _LONGEST and all(_plain(word) and "_" not in word for word in words):
        return joined
    return _marked(joined, *words)


def _plain(word: str) -> bool:
    return bool(_WORD.fullmatch(word)) and not _MARKED.fullmatch(word) and reserved(word) is None


def _worn(word: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", word.lower()).strip("-")[:_LONGEST].strip("-")


def _marked(shown: str, *whole: str) -> str:
    return f"{_worn(shown)}-{digest(list(whole))[:12]}".lstrip("-")
