"""Tables on narrow terminals: numbers stay whole, no name is cut, and operators can be told apart."""

import io

import pytest

from modelwright.report._tables import Col, fitted
from modelwright.report.render import render
from modelwright.report.screen import Screen
from support import results

LONG = [f"/encoder/layer.{place}/attention/self/query/MatMul_with_a_long_name" for place in range(3)]


def printed(table, width):
    screen = Screen(io.StringIO(), width=width)
    screen.print(table)
    return screen.file.getvalue()


def test_long_names_are_folded_behind_a_slash_and_stay_whole():
    rows = [(name, "12,345.6 ms", "99.99 %") for name in LONG]
    text = printed(fitted([Col("node", "name"), Col("p50", "number"), Col("share", "number")], rows, 60), 60)
    assert max(map(len, text.splitlines())) <= 60
    assert text.count("12,345.6 ms") == text.count("99.99 %") == 3
    joined = "".join(line.split("12,345")[0].strip() for line in text.splitlines())
    assert all(name in joined for name in LONG)


def test_what_matters_least_goes_first():
    columns = [Col("node", "name"), Col("calls", "number", drop=2), Col("p90", "number", drop=1), Col("p50", "number")]
    rows = [(LONG[0], "1", "1,234.56 ms", "1,234.56 ms")]
    assert "calls" in printed(fitted(columns, rows, 200), 200)
    narrow = printed(fitted(columns, rows, 70), 70)
    assert "calls" not in narrow
    assert "p90" in narrow
    assert "p90" not in printed(fitted(columns, rows, 60), 60)


def test_headings_are_broken_between_words():
    text = printed(fitted([Col("same best class", "number"), Col("output", "name")], [("1.0%", "x" * 60)], 40), 40)
    assert "same" in text
    assert "same best class" not in text


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", ["analyses", "compare", "debug", "evaluation", "perf"])
def test_every_answer_fits_the_terminal(name, width):
    screen = Screen(io.StringIO(), width=width)
    screen._force_terminal = True
    render(getattr(results, name)(), screen)
    lines = screen.export_text().splitlines() if screen.record else _plain(screen.file.getvalue()).splitlines()
    assert max(map(len, lines)) <= width


def test_a_long_line_breaks_between_words_on_a_terminal_only():
    words = "every word of this line stays in one piece " * 4
    file, terminal = Screen(io.StringIO(), width=30), Screen(io.StringIO(), width=30)
    terminal._force_terminal = True
    for screen in (file, terminal):
        screen.print(words.strip(), soft_wrap=True)
    assert file.file.getvalue().strip() == words.strip()
    lines = _plain(terminal.file.getvalue()).splitlines()
    assert " ".join(line.strip() for line in lines) == words.strip()


def _plain(text):
    import re

    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_a_name_of_several_words_is_folded_between_them():
    rows = [("denormals=off spinning=off level=basic", "+13.3% (+11.5% … +15.1%)")]
    text = printed(fitted([Col("variant", "name"), Col("effect", "number")], rows, 44), 44)
    assert [word in text for word in rows[0][0].split()] == [True] * 3


def test_no_word_is_cut_while_there_is_room_for_all():
    columns = [Col("gate"), Col("variant", "name"), Col("answer"), Col("why", "text")]
    why = "without QNNExecutionProvider on npu the selector takes it; opened and run on onnxruntime 1.31.1"
    rows = [("agreement", "openvino-cpu:soc=a-chip-of-a-long-name/and-more/of-it", "undecided", why)]
    for width in (72, 80, 100):
        text = printed(fitted(columns, rows, width), width)
        assert max(map(len, text.splitlines())) <= width
        assert [word for word in why.split() if word not in text] == []


def test_a_cell_speaks_the_words_of_whoever_typed_the_command():
    screen = Screen(io.StringIO(), width=60, spoken=lambda text: text.replace("`budget_s`", "--budget"))
    screen.print(fitted([Col("why", "text")], [("give more `budget_s`",)], 60))
    assert "give more --budget" in screen.file.getvalue()
