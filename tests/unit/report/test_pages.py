"""Pages carry whatever a model's author wrote, need nothing from outside, and say what to do next."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from modelwright._output import is_sealed, sealed
from modelwright.judge import VerdictKind
from modelwright.report.html import has_page, notebook, page
from support import results

PAGES = results.every_page()


class _Links(HTMLParser):
    """Attributes that make a browser load something."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [(tag, *pair) for pair in attrs if pair[0] in ("src", "href", "srcset", "action", "data")]


@pytest.mark.parametrize("name", PAGES)
class TestEveryPage:
    def test_no_name_in_a_model_breaks_out_of_it(self, name):
        assert "<img" not in PAGES[name]
        assert PAGES[name].count("<script") == PAGES[name].count("</script>")
        assert "\x1b" not in PAGES[name]

    def test_it_needs_nothing_from_outside(self, name):
        links = _Links()
        links.feed(PAGES[name])
        # A page beside this one is opened by whoever clicks on it, and by nobody else.
        beside = re.compile(r"(\.\./)?[a-z0-9./-]+\.html")
        assert [one for one in links.found if one[:2] != ("a", "href") or not beside.fullmatch(one[2])] == []
        assert re.findall(r"https?://|url\(|@import|fetch\(|XMLHttp|import\(", PAGES[name]) == []

    def test_it_is_ours_to_replace(self, name):
        assert is_sealed(sealed(PAGES[name]))

    def test_what_is_drawn_is_strict_json(self, name):
        for found in re.findall(r'<script type="application/json">(.*?)</script>', PAGES[name], re.DOTALL):
            json.loads(found, parse_constant=lambda word: pytest.fail(word))


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("analyze", "wright build net.onnx --target qnn-npu --precision w8a16"),
        ("compare", "--budget 400"),
        ("debug", "wright debug w8a8.onnx --reference float.onnx --fix --target-sqnr"),
        ("eval", "--samples 9000"),
        ("trace", "--op-trace detail"),
    ],
)
def test_a_page_says_what_to_run_next(name, command):
    assert command in re.sub(r"\s+", " ", PAGES[name].rpartition("<h2>Next</h2>")[2])


def test_a_library_is_only_in_pages_that_draw_with_it():
    assert "uPlot 1.6" in PAGES["debug"]
    assert "Leon Sorokin" in PAGES["debug"]
    assert "uPlot 1.6" not in PAGES["repair"]
    assert "dagre 3" in PAGES["analyze"]
    assert "dagre 3" not in PAGES["debug"]


def test_made_up_samples_are_said_on_the_page():
    report = results.debug(5)
    made_up = replace(report, data=replace(report.data, random=True))
    assert "The samples are made up" in page(made_up)
    assert "The samples are made up" not in page(report)


def test_an_accuracy_that_passes_leads_to_the_speed():
    passed = replace(results.evaluation(), verdict=VerdictKind.PASS)
    assert "wright compare float.onnx w8a8.onnx" in page(passed)


def test_rows_are_sorted_by_what_matters():
    tensors = PAGES["debug"].partition("<h2>Tensors")[2]
    shares = [float(found) for found in re.findall(r'data-v="([^"]*)">[\d.]+%</td><td class="n" data-v', tensors)]
    assert len(shares) == results.LARGE
    assert shares == sorted(shares, reverse=True)
    left = PAGES["analyze"].partition("<h2>The graph")[2]
    assert "rank 5 tensors" in left.partition("<tbody>")[2].partition("</tr>")[0]


def test_a_notebook_shows_the_page_in_a_frame_of_its_own():
    assert notebook(results.fix()).startswith("<iframe srcdoc=")
    assert not has_page("text")
    assert notebook("text") is None


def test_the_next_step_of_a_search_is_the_whole_command_or_none():
    words = ("tune", "net.onnx", "--data", "few.npz", "--only", "level=basic", "--budget", "10s")
    short = replace(results.tune(), call=words, needed_s=49.0)
    assert "wright tune net.onnx --data few.npz --only level=basic --budget 10s --budget 49s" in page(short)
    assert "wright tune" not in page(replace(short, call=()))


def test_a_page_about_many_searches_has_a_title_that_can_be_read():
    row = results.sweep().rows[1]
    many = replace(results.sweep(), rows=tuple(replace(row, name=f"model-{place}") for place in range(200)))
    assert "model-0, model-1, model-2 and 197 more" in page(many)
