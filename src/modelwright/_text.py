"""Text that comes from outside (models, files, other programs), made safe to print."""

from __future__ import annotations

import re

# What a terminal would obey or hide instead of showing: C0 and C1 controls, marks that turn the direction of writing,
# characters without width, tags that spell text nobody sees, fillers that look like nothing, and halves of surrogate
# pairs (bytes of a file name that are no UTF-8).
_HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_HIDDEN_BUT_NEWLINE = re.compile(f"(?!\n){_HIDDEN.pattern}")


def visible(text: str) -> str:
    r"""One line that shows every character: a newline is `\n`, an escape `\x1b`, a direction mark `\u202e`."""
    return _HIDDEN.sub(lambda found: _escaped(found.group()), text)


def visible_lines(text: str) -> str:
    """The same for text whose line breaks are ours."""
    return _HIDDEN_BUT_NEWLINE.sub(lambda found: _escaped(found.group()), text)


def visible_json(text: str) -> str:
    """The same for a JSON document, whose meaning stays what it was."""
    return _HIDDEN_BUT_NEWLINE.sub(lambda found: _json_escaped(found.group()), text)


def hidden_in(text: str) -> str | None:
    """The first character of a line that a reader would not see, spelt out, or None."""
    found = _HIDDEN.search(text)
    return None if found is None else _escaped(found.group())


def _json_escaped(character: str) -> str:
    r"""`\u202e`; what needs more than 16 bits is a pair of such."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
