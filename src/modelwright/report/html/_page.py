"""One self-contained page: its frame, style and scripts. It refers to no other file and to no host."""

from __future__ import annotations

import html
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright._output import SEAL
from modelwright.report.html._kit import Html, Shade, text

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
# A page that was opened from a disk has no origin of its own: there `file:` is what `'self'` is on a server.
_SHARED_POLICY = "default-src 'none'; style-src 'self' file: 'unsafe-inline'; script-src 'self' file:"
_MARKS = {"uplot": 'class="chart"', "dagre": 'class="graph"'}


@dataclass(frozen=True)
class Section:
    title: str
    body: Html
    hint: str = ""


@dataclass(frozen=True)
class Note:
    words: str
    tone: Literal["", "fair"] = "fair"


@dataclass(frozen=True)
class NextStep:
    """A command worth running now, and why."""

    why: str
    command: str


@dataclass(frozen=True)
class Page:
    """`title` is in the user's words, `kind` says what it is about them; the verdict comes before everything else.
    `back` are the words and the place of the page that led here, `links` those of pages beside it; the one that is this
    page leads nowhere."""

    kind: str
    title: str
    verdict: tuple[str, Shade] | None = None
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[Note, ...] = ()
    sections: tuple[Section, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    footer: str = ""
    back: tuple[str, str] | None = None
    links: tuple[tuple[str, str], ...] = ()

    def html(self, assets: str | None = None) -> str:
        """Complete in itself; with `assets`, the place of what `asset_files` gives, seen from the page."""
        body = "".join(self._parts())
        policy, style, script = _inside(body) if assets is None else _beside(body, assets)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
            f"<title>{text(self.title)}: {text(self.kind)}</title>\n{style}\n</head>\n"
            f"<body>\n{self._nav()}<main>\n{body}</main>\n{script}\n</body>\n</html>\n<!-- {SEAL} -->\n"
        )

    def _nav(self) -> str:
        if not self.links:
            return ""
        found = (f'<a href="{text(place)}">{text(words)}</a>' if place else _here(words) for words, place in self.links)
        return f'<nav aria-label="pages">{"".join(found)}</nav>\n'

    def _parts(self) -> Iterable[str]:
        back = "" if self.back is None else f'<a href="{text(self.back[1])}">{text(self.back[0])}</a> · '
        yield f'<div class="kind">{back}{text(self.kind)}</div>\n<h1>{text(self.title)}</h1>\n'
        if self.verdict is not None:
            words, tone = self.verdict
            yield f'<p class="verdict {tone}">{text(words)}</p>\n'
        yield f'<dl class="facts">{"".join(_fact(label, words) for label, words in self.facts)}</dl>\n'
        yield from (f'<p class="note {note.tone}">{text(note.words)}</p>\n' for note in self.notes)
        yield from map(_section, self.sections)
        if self.next_steps:
            steps = "".join(
                f"<dt>{text(step.why)}</dt><dd><code>{text(step.command)}</code></dd>" for step in self.next_steps
            )
            yield f'<section class="next"><h2>Next</h2><dl>{steps}</dl></section>\n'
        if self.footer:
            yield f"<footer>{text(self.footer)}</footer>\n"


def framed(page: str, height: int = 640) -> str:
    """A page inside a notebook: in a frame of its own, so that neither changes how the other looks."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" sandbox="allow-scripts" title="modelwright" '
        f'style="width:100%;height:{height}px;border:1px solid #8884;border-radius:8px"></iframe>'
    )


def _fact(label: str, words: str) -> str:
    return f"<div><dt>{text(label)}</dt><dd>{text(words)}</dd></div>"


def _section(section: Section) -> str:
    hint = f"<small>{text(section.hint)}</small>" if section.hint else ""
    return f"<section><h2>{text(section.title)}{hint}</h2>{section.body}</section>\n"


def _here(words: str) -> str:
    return f'<a aria-current="page">{text(words)}</a>'


def _inside(body: str) -> tuple[str, str, str]:
    """Policy, style and script of a page that is one file."""
    style = (_file("vendor/uplot.css") if 'class="chart"' in body else "") + _file("page.css")
    script = "".join(_library(name) for name in _used(body)) + _file("page.js")
    return _POLICY, f"<style>{style}</style>", f"<script>{script}</script>"


def _beside(body: str, place: str) -> tuple[str, str, str]:
    """The same of a page among many, which share them."""
    names = [f"{name}.js" for name in (*_used(body), "page")]
    sheets = [*(["uplot.css"] if "uplot" in _used(body) else []), "page.css"]
    style = "".join(f'<link rel="stylesheet" href="{text(place)}/{name}">' for name in sheets)
    return _SHARED_POLICY, style, "".join(f'<script src="{text(place)}/{name}"></script>' for name in names)


def asset_files() -> dict[str, str]:
    """What pages share, by name."""
    found = {f"{name}.js": _library(name) for name in _MARKS}
    found |= {"uplot.css": _file("vendor/uplot.css"), "page.css": _file("page.css"), "page.js": _file("page.js")}
    return {name: f"{content}\n/* {SEAL} */\n" for name, content in found.items()}


def _used(body: str) -> list[str]:
    """The libraries only where something is drawn with them."""
    return [name for name, mark in _MARKS.items() if mark in body]


def _library(name: str) -> str:
    """With its licence."""
    return f"/*\n{_file(f'vendor/{name}.LICENSE')}\n*/\n{_file(f'vendor/{name}.js')}\n"


@cache
def _file(name: str) -> str:
    return (Path(__file__).parent / name).read_text("utf-8")
