"""Every page in a real browser: wide and narrow, light and dark, with models of 2,000 nodes.

`WRIGHT_SCREENSHOTS=FOLDER` keeps pictures of them (`make screenshots`).
"""

import os
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest

from modelwright.api import matrix as matrix_verb
from support.browser import Browser, find_browser
from support.models import conv_net, save
from support.results import every_page, matrix

pytestmark = pytest.mark.skipif(find_browser() is None, reason="there is no Chromium")

NAMES = (
    "analyze",
    "compare",
    "debug",
    "debug_fix",
    "eval",
    "matrix",
    "matrix_model",
    "perf",
    "repair",
    "sweep",
    "trace",
    "tune",
)
SHOTS = os.environ.get("WRIGHT_SCREENSHOTS")
# Nothing may hang over the right edge but what scrolls inside its own box.
FITS = "document.documentElement.scrollWidth <= innerWidth && document.body.scrollWidth <= innerWidth"
# A chart is drawn anew for other colours and widths.
TWO_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
SHOWN = "[...document.querySelectorAll('table.findable tbody tr')].filter(row => !row.hidden).length"
READABLE = "getComputedStyle(document.body).color !== getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(find_browser(), tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, text in every_page().items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_every_window_and_complains_about_nothing(browser, pages, name):
    browser.look(1280, dark=False)
    browser.open(pages / f"{name}.html")
    for width, dark in ((1280, False), (1280, True), (500, True), (500, False)):
        browser.look(width, dark=dark)
        assert browser.value(f"{TWO_FRAMES}.then(() => {FITS} && {READABLE})"), (width, dark)
        if SHOTS:
            browser.screenshot(Path(SHOTS) / f"{name}_{width}_{'dark' if dark else 'light'}.png")
    assert browser.complaints == []


def test_a_click_sorts_a_table(browser, pages):
    browser.open(pages / "debug_fix.html")
    head, rows = (
        "document.querySelectorAll('table.findable th button')[4]",
        "document.querySelectorAll('.findable tbody tr')",
    )
    column = f"[...{rows}].map(row => Number(row.cells[4].dataset.v))"
    browser.value(f"{head}.click()")
    down = browser.value(column)
    assert down == sorted(down, reverse=True)
    browser.value(f"{head}.click()")
    assert browser.value(column) == sorted(down)


def test_a_click_on_a_box_of_the_graph_shows_its_nodes(browser, pages):
    browser.open(pages / "analyze.html")
    assert browser.value(SHOWN) == 2000
    browser.value("document.querySelector('.graph g.left').dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    assert browser.value(SHOWN) == 1
    browser.value("document.querySelector('.all').click()")
    assert browser.value(SHOWN) == 2000


def test_a_filter_leaves_what_it_names(browser, pages):
    browser.open(pages / "perf.html")
    browser.value("const box = document.querySelector('input[type=search]'); box.value = 'gelu'; box.oninput()")
    assert browser.value(SHOWN) == 6
    assert browser.value("document.querySelector('.found').textContent") == "6 shown"


def test_a_matrix_of_200_models_is_sorted_by_target_and_filtered_by_class(browser, pages):
    browser.open(pages / "matrix.html")
    assert browser.value("document.querySelector('section table.findable').tBodies[0].rows.length") == 200
    assert browser.value(SHOWN) == 200 + 1600
    browser.value("document.querySelectorAll('section table.findable th button')[2].click()")
    first = "document.querySelector('section table.findable tbody tr').cells[2].textContent"
    assert browser.value(first).startswith("building")
    browser.value("const box = document.querySelectorAll('input[type=search]')[1]; box.value = 'crash'; box.oninput()")
    assert browser.value(SHOWN) == 200 + 5


def test_a_matrix_is_sorted_by_latency_and_by_score_with_what_is_unknown_last(browser, pages):
    browser.open(pages / "matrix.html")
    heads = "[...document.querySelectorAll('table.findable')].at(-1).tHead.rows[0].cells"
    titles = browser.value(f"[...{heads}].map(one => one.textContent)")
    for title, most in (("p50 ms", "33.43"), ("accuracy", "0.899")):
        place = titles.index(title)
        column = (
            f"[...[...document.querySelectorAll('table.findable')].at(-1).tBodies[0].rows].map("
            f"row => row.cells[{place}].dataset.v)"
        )
        browser.value(f"{heads}[{place}].querySelector('button').click()")
        found = browser.value(column)
        known = [float(value) for value in found if value]
        assert known == sorted(known, reverse=True)
        assert f"{known[0]:.4g}" == most
        assert not any(found[len(known) :])


def test_every_model_of_a_matrix_has_a_page_that_the_first_one_leads_to(browser, tmp_path):
    found = matrix(5)
    assert matrix_verb, "whoever has an answer of a verb can draw it"
    found.save_pages(tmp_path)
    browser.open(tmp_path / "matrix.html")
    links = browser.value("[...document.querySelectorAll('section table a')].map(one => one.href)")
    assert len(set(links)) == 5
    for link in sorted(set(links)):
        browser.open(Path(unquote(urlparse(link).path)))
        assert browser.complaints == []
        assert browser.value("document.querySelectorAll('section')[0].querySelectorAll('tbody tr').length") == 8
    failed = next(model for model in found.models if model.passed is False)
    browser.open(tmp_path / failed.folder / "model.html")
    assert "SIGSEGV" in browser.value("document.body.textContent")


def test_the_graph_of_a_real_model_is_drawn(browser, wright, tmp_path):
    found = wright("analyze", save(conv_net(), tmp_path), "--html", tmp_path / "page.html")
    assert found.code == 0, found.err
    browser.open(tmp_path / "page.html")
    assert browser.complaints == []
    titles = browser.value("[...document.querySelectorAll('.graph g.node text:not(.sub)')].map(one => one.textContent)")
    assert titles == ["Conv", "Relu", "GlobalAveragePool"]
