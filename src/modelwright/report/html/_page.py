"""One self-contained page: its frame, style and scripts. It refers to no other file and to no host."""

from __future__ import annotations

import html
from collections.abc import Iterable
from functools import cache
from importlib import resources
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright._output import SEAL
from modelwright.report.html._kit import Html, Shade, text

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


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
    `back` are the words and the place of the page that led here."""

    kind: str
    title: str
    verdict: tuple[str, Shade] | None = None
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[Note, ...] = ()
    sections: tuple[Section, ...] = ()
    next_steps: tuple[NextStep, ...] = ()
    footer: str = ""
    back: tuple[str, str] | None = None

    def html(self) -> str:
        body = "".join(self._parts())
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            f"<title>{text(self.title)}: {text(self.kind)}</title>\n<style>{_styles(body)}</style>\n</head>\n"
            f"<body>\n<main>\n{body}</main>\n<script>{_scripts(body)}</script>\n</body>\n</html>\n<!-- {SEAL} -->\n"
        )

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


def _styles(body: str) -> str:
    return (_file("vendor/uplot.css") if 'class="chart"' in body else "") + _file("page.css")


def _scripts(body: str) -> str:
    """The libraries only where something is drawn with them, each with its licence."""
    used = (name for name, mark in (("uplot", 'class="chart"'), ("dagre", 'class="graph"')) if mark in body)
    libraries = (f"/*\n{_file(f'vendor/{name}.LICENSE')}\n*/\n{_file(f'vendor/{name}.js')}\n" for name in used)
    return "".join(libraries) + _file("page.js")


@cache
def _file(name: str) -> str:
    return resources.files("modelwright.report.html").joinpath(name).read_text("utf-8")
