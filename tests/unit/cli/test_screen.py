"""Text from outside is shown, never obeyed, and no renderer can forget it."""

import io
import json
import re
from pathlib import Path

import pytest
import rich.table
import rich.text
from hypothesis import given
from hypothesis import strategies as st

import modelwright
from modelwright._text import visible, visible_json, visible_lines
from modelwright.report.screen import Screen

ROOT = Path(modelwright.__file__).parent
HOSTILE = "[/x] [bold]b[/] :smile: \x1b[31m\x1b]0;t\x07 \x9b2J \u202eevil\nerror: forged\x85\u2028"
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def shown(*things, width=500) -> str:
    stream = io.StringIO()
    screen = Screen(stream, width=width)
    for thing in things:
        screen.print(thing)
    return stream.getvalue()


@given(st.text(alphabet=st.characters()))
def test_visible_text_is_one_line_of_harmless_characters(text):
    assert not OBEYED.search(visible(text))
    assert "\n" not in visible(text)
    assert visible(visible(text)) == visible(text)


@pytest.mark.parametrize("text", ["conv/1:0", "größe → 2 × ½", "层", "a\\nb", "😀"])
def test_ordinary_names_are_shown_as_they_are(text):
    assert visible(text) == text


def test_hidden_characters_have_readable_names():
    assert visible("a\nb\x1b[0m\u202e\udcff") == "a\\nb\\x1b[0m\\u202e\\udcff"
    assert visible_lines("a\nb\x1b") == "a\nb\\x1b"


@given(st.text(alphabet=st.characters()))
def test_visible_json_means_the_same(text):
    document = json.dumps({"name": text}, indent=2, ensure_ascii=False)
    assert json.loads(visible_json(document)) == {"name": text}
    assert not OBEYED.search(visible_json(document))


@pytest.mark.parametrize("kind", ["string", "text", "cell", "text cell", "title"])
def test_names_reach_the_screen_as_text(kind):
    table = rich.table.Table("name", title=HOSTILE if kind == "title" else None)
    table.add_row(rich.text.Text(HOSTILE) if kind == "text cell" else HOSTILE)
    thing = {"string": HOSTILE, "text": rich.text.Text(HOSTILE)}.get(kind, table)
    out = shown(thing)
    assert not OBEYED.search(out)
    assert "[/x] [bold]b[/] :smile: \\x1b[31m" in out
    assert not any(line.startswith("error: forged") for line in out.splitlines())


def test_styles_stay_on_their_characters_when_one_becomes_several():
    stream = io.StringIO()
    screen = Screen(stream, width=80)
    screen._color_system = rich.console.ColorSystem.STANDARD
    screen.print(rich.text.Text.assemble(("a\x1b", "red"), "b\x1b", ("c", "green")))
    assert stream.getvalue() == "\x1b[31ma\\x1b\x1b[0mb\\x1b\x1b[32mc\x1b[0m\n"


def test_nothing_is_printed_around_the_screen():
    """Markup is only read by what is listed here, and stderr is only written where text is made visible."""
    around = re.compile(
        r"console\.Console\(|from_markup|rich\.markup|\.status\((?!rich\.text)|stderr\.write\(|\[/\w*\]"
    )
    allowed = {"report/screen.py", "cli/_streams.py", "cli/_app.py"}
    wrong = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for room in ("report", "cli")
        for path in sorted((ROOT / room).glob("*.py"))
        for line in path.read_text("utf-8").splitlines()
        if around.search(line) and path.relative_to(ROOT).as_posix() not in allowed
    ]
    assert not wrong
