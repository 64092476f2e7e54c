"""The card of a model on the Hub: its licence, and what is there, for people."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from modelwright._json import dumps
from modelwright.farm.feeds._package import LICENCE, package_of

_BEGIN, _END = "<!-- wright: begin -->", "<!-- wright: end -->"
_OURS = re.compile(f"{re.escape(_BEGIN)}.*{re.escape(_END)}", re.DOTALL)
_COLUMNS = ("folder", "target", "precision", "version", "opset", "passed its gate", "licence")
_KNOWN = re.compile(
    r"apache-2\.0|mit|afl-3\.0|artistic-2\.0|bsd|bsd-[23]-clause(-clear)?|bsl-1\.0|c-uda|cc|cc0-1\.0|"
    r"cc-by(-nc|-sa|-nd|-nc-sa|-nc-nd)?-[234]\.[05]|ecl-2\.0|epl-[12]\.0|eupl-1\.[12]|agpl-3\.0|gfdl|gpl(-[23]\.0)?|"
    r"lgpl(-2\.1|-3\.0)?|isc|mpl-2\.0|ms-pl|ncsa|odbl|ofl-1\.1|openrail|openrail\+\+|osl-3\.0|pddl|postgresql|"
    r"unlicense|wtfpl|zlib|gemma|llama[23](\.[123])?|bigscience-openrail-m|creativeml-openrail-m"
)
"""Licences that the Hub has a word for."""


def card(before: str | None, model: str, entries: Mapping[str, Mapping[str, Any]]) -> str | None:
    """What README.md is to be; None where it is somebody's own and stays as it is."""
    if before is None:
        return f"---\n{_metadata(entries)}---\n\n# {_plain(model)}\n\n{_section(entries)}\n"
    if not _OURS.search(before):
        return None
    return _OURS.sub(lambda _: _section(entries), before)


def _metadata(entries: Mapping[str, Mapping[str, Any]]) -> str:
    return f"{_licence(entries)}library_name: onnx\ntags:\n- onnx\n- modelwright\n"


def _licence(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """One licence by the Hub's word for it, another by its name; several are told in the table alone."""
    said = sorted({str(note) for entry in entries.values() if (note := entry["annotations"].get(LICENCE))})
    if not said:
        return ""
    if len(said) == 1 and _KNOWN.fullmatch(said[0].lower()):
        return f"license: {said[0].lower()}\n"
    return f"license: other\nlicense_name: {dumps(', '.join(said)).strip()}\n"


def _section(entries: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [_row(tag, entries[tag]["annotations"]) for tag in sorted(entries)]
    head = (
        "| folder | target | precision | version | opset | passed its gate | licence |\n|---|---|---|---|---|---|---|"
    )
    return "\n".join((_BEGIN, head, *rows, _END))


def _row(tag: str, notes: Mapping[str, str]) -> str:
    package = package_of(notes)
    known = (package.target, package.precision, package.version, notes.get("org.modelwright.opset"))
    told = (*known, notes.get("org.modelwright.passed"), notes.get(LICENCE))
    return f"| [{tag}](./{tag}) | {' | '.join(_plain(word or '') for word in told)} |"


def _plain(words: str) -> str:
    """Somebody else's words on one line of a table."""
    return re.sub(r"[|<>\[\]`\s]+", " ", words).strip()
