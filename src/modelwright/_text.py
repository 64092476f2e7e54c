"""Text that comes from outside (models, files, other programs), made safe to print."""

from __future__ import annotations

import re

# What a terminal would obey or hide instead of showing: C0 and C1 controls, marks that turn the direction of writing,
# characters without width, and halves of surrogate pairs (bytes of a file name that are no UTF-8).
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
_HIDDEN_BUT_NEWLINE = re.compile(f"(?!\n){_HIDDEN.pattern}")


def visible(text: str) -> str:
    r"""One line that shows every character: a newline is `\n`, an escape `\x1b`, a direction mark `\u202e`."""
    return _HIDDEN.sub(lambda found: _escaped(found.group()), text)


def visible_lines(text: str) -> str:
    """The same for text whose line breaks are ours."""
    return _HIDDEN_BUT_NEWLINE.sub(lambda found: _escaped(found.group()), text)


def visible_json(text: str) -> str:
    """The same for a JSON document, whose meaning stays what it was."""
    return _HIDDEN_BUT_NEWLINE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
