"""The site in a real browser: 30 models for 8 targets at three widths; every number is that of its record.

`WRIGHT_SCREENSHOTS=FOLDER` keeps pictures of it (`make screenshots`).
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from importlib.resources import files
from pathlib import Path

import pytest

import modelwright as mw
from modelwright import farm
from modelwright.errors import UsageError
from modelwright.store import Store
from support import site as filled
from support.browser import Browser, find_browser
from support.models import mlp, save

needs_browser = pytest.mark.skipif(find_browser() is None, reason="there is no Chromium")
SHOTS = os.environ.get("WRIGHT_SCREENSHOTS")
FITS = "document.documentElement.scrollWidth <= innerWidth && document.body.scrollWidth <= innerWidth"
SOURCED = """[...document.querySelectorAll('td[data-source]')].map(cell => [
  cell.closest('tr').id, cell.closest('table').tHead.rows[0].cells[cell.cellIndex].textContent,
  Number(cell.dataset.v), cell.dataset.source])"""
UNSOURCED = """[...document.querySelectorAll('table.pickable td.n')].filter(
  cell => cell.dataset.v && !cell.dataset.source).length"""
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
AXE = f"axe.run(document, {{runOnly: {json.dumps(TAGS)}}}).then(found => found.violations.map(one => "
AXE += "one.id + ': ' + one.nodes.map(node => node.target + ' ' + node.failureSummary).slice(0, 3).join(' | ')))"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("team") / "store") as kept:
        filled.fill(kept)
        yield kept


@pytest.fixture(scope="module")
def built(store, tmp_path_factory):
    return mw.site(tmp_path_factory.mktemp("site") / "site", store=store)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(find_browser(), tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


def _pages(built):
    one_of_each = [sorted(built.folder.glob(f"{kind}/*.html"))[0] for kind in ("models", "records")]
    return [*sorted(built.folder.glob("*.html")), *one_of_each]


def test_it_is_as_large_as_it_may_be(built):
    assert (built.models, built.targets) == (30, 8)
    assert built.cells >= 240
    assert built.bytes <= 5_000_000
    assert built.bytes == sum(path.stat().st_size for path in built.folder.rglob("*") if path.is_file())


@needs_browser
@pytest.mark.parametrize("width", [390, 768, 1440])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_kind_of_page_fits_complains_about_nothing_and_is_accessible(browser, built, width, dark):
    axe = files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    for path in _pages(built):
        browser.look(width, dark=dark)
        browser.open(path)
        name = f"{path.parent.name}-{path.stem}"
        assert browser.value(FITS), f"{name} hangs over at {width}"
        if SHOTS:
            browser.screenshot(Path(SHOTS) / f"{name}-{width}-{'dark' if dark else 'light'}.png")
        assert browser.complaints == []
        if width == 768 or path.parent.name == "records":
            continue  # what is accessible wide and narrow is so between; other pages have tests of their own
        browser.value(axe + "; 0")
        assert browser.value(AXE) == [], name


def _truth(store):
    """What records and the ledger say: by source, and the title of the column."""
    ledger = store.ledger()
    try:
        orders = farm.every_order(ledger)
        statuses = farm.statuses([cell for _, order in orders for cell in order.cells], ledger)
    finally:
        ledger.close()
    found = {}
    for name, status in statuses.items():
        facts = status.facts
        if facts is not None:
            numbers = {"size": facts.bytes, "worst cosine": facts.cosine, "on the target": facts.on_target}
            found |= {(f"matrix cell {name}", title): value for title, value in numbers.items()}
            found[f"matrix cell {name}", "of nodes"] = facts.nodes
    return found


def _recorded(store, source, title):
    payload = mw.read(source.removeprefix("record "), store=store).payload
    if payload.kind == "perf":
        return payload.latency.p50_ms
    return payload.values.reference if title == "reference" else payload.values.candidate


@needs_browser
def test_every_number_on_every_page_is_that_of_its_record(browser, built, store):
    truth, checked = _truth(store), set()
    browser.look(1440, dark=False)
    for path in [built.index, built.folder / "history.html", *sorted(built.folder.glob("models/*.html"))]:
        browser.open(path)
        assert browser.value(UNSOURCED) == 0, f"{path.name} has a number without a source"
        for row, title, value, source in browser.value(SOURCED):
            known = truth[source, title] if source.startswith("matrix") else _recorded(store, source, title)
            assert value == known, (path.name, row, title)
            checked.add((source, title))
    assert len(checked) > 900
    assert {title for _, title in checked} >= {"size", "worst cosine", "on the target", "p50 ms", "accuracy", "number"}


def test_the_data_beside_it_says_the_same(built, store):
    data = json.loads((built.folder / "site.json").read_text())
    truth = _truth(store)
    cells = [cell for model in data["models"] for cell in model["cells"]]
    assert len(cells) == built.cells
    for cell in cells:
        for field, title in (("size", "size"), ("cosine", "worst cosine"), ("placed", "on the target")):
            number = cell[field]
            if number["origin"] == "matrix cell" and number["record"]:
                assert number["value"] == truth[f"matrix cell {number['record']}", title]
            assert number["value"] is not None or number["reason"]


@needs_browser
def test_filter_sort_compare_and_link(browser, built):
    browser.look(1280, dark=False)
    browser.open(built.index)
    section = "[...document.querySelectorAll('section')].find(one => one.querySelector('.pick'))"
    rows = f"[...{section}.querySelectorAll('table.pickable tbody tr')].filter(row => !row.hidden)"
    browser.value(f"{section}.querySelector('input[type=search]').value = 'vitisai-npu'")
    browser.value(f"{section}.querySelector('input[type=search]').dispatchEvent(new Event('input'))")
    assert browser.value(f"{rows}.length") == 30
    browser.value(f"[...{section}.querySelectorAll('th button')].find(one => one.textContent === 'size').click()")
    sizes = browser.value(f"{rows}.map(row => row.cells[5].dataset.v).filter(Boolean).map(Number)")
    assert sizes == sorted(sizes, reverse=True)
    picked = browser.value(f"{rows}.slice(0, 2).map(row => {{ row.querySelector('.pick').click(); return row.id; }})")
    beside = browser.value(f"{section}.querySelector('.beside').innerText")
    assert "second of first" in beside
    assert f"{sizes[1] / sizes[0]:.4g}"[:5] in beside
    assert "not against each other" in beside
    browser.value(f"{rows}[2].querySelector('.pick').click()")
    assert browser.value(f"{section}.querySelectorAll('.pick:checked').length") == 2
    target = built.folder / "models" / f"{picked[0].partition('--')[0]}.html"
    browser.open(target)
    assert browser.value(f"document.getElementById({json.dumps(picked[0])}) !== null")
    links = browser.value("[...document.querySelectorAll('a[href]')].map(one => one.href)")
    for link in {one.partition("#")[0] for one in links if one.startswith("file:")}:
        assert Path(urllib.request.url2pathname(link.removeprefix("file://"))).is_file(), link


def test_every_link_leads_to_a_file_and_a_row(built):
    rows = {}
    for path in built.folder.rglob("*.html"):
        rows[path] = set(re.findall(r'<tr[^>]* id="([^"]+)"', path.read_text(encoding="utf-8")))
    for path in (built.index, built.folder / "history.html"):
        for link in re.findall(r'href="([^"]+)"', path.read_text(encoding="utf-8")):
            place, _, row = link.partition("#")
            there = (path.parent / place).resolve() if place else path
            assert there.is_file(), link
            assert not row or there not in rows or row in rows[there], link


def test_a_site_of_nothing_and_a_site_of_real_records(tmp_path, wright):
    assert "0 models" in wright("site", "build", "-o", "empty").out
    save(mlp(), tmp_path, "net.onnx")
    assert wright("build", "net.onnx", "-o", "out").code == 0
    assert wright("perf", "out", "--iterations", "3", "--warmup", "1").code == 0
    again = wright("site", "build", "-o", "empty", "--json")
    assert again.code == 0, again.err
    (model,) = json.loads((tmp_path / "empty" / "site.json").read_text())["models"]
    (cell,) = model["cells"]
    record = mw.read(cell["latency"]["record"])
    assert (model["title"], cell["target"], cell["state"]) == ("net", "cpu", "validated")
    assert cell["latency"]["value"] == record.payload.latency.p50_ms
    assert cell["size"]["value"] == (tmp_path / "out" / "model.onnx").stat().st_size
    page = (tmp_path / "empty" / "models" / "net.html").read_text()
    assert "policy_version" in page, "the recipe is there"
    assert "wright build net.onnx -o out" in page, "and the call"


def test_what_is_not_ours_stays(tmp_path):
    mine = tmp_path / "site" / "models" / "mine.html"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(UsageError, match="stays as it is"):
        mw.site(tmp_path / "site")
    assert [path.name for path in (tmp_path / "site").rglob("*.*")] == ["mine.html"]
    mine.unlink()
    mine.parent.rmdir()
    mw.site(tmp_path / "site")
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    mw.site(tmp_path / "site")
    assert mine.read_text() == "mine"
    (tmp_path / "site" / "index.html").write_text("changed by hand")
    with pytest.raises(UsageError, match="stays as it is"):
        mw.site(tmp_path / "site")


def test_serve_shows_it_to_this_machine_only(tmp_path):
    script = Path(sys.executable).with_name("wright")
    with subprocess.Popen([script, "site", "serve", "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
        try:
            address = next(line.strip() for line in server.stdout if line.startswith("http://127.0.0.1"))
            with urllib.request.urlopen(address) as answer:
                assert b"Models and targets" in answer.read()
            asked = urllib.request.Request(address, headers={"Host": "evil.example:80"})
            for wrong in (asked, f"{address}models/", f"{address}../store"):
                with pytest.raises(urllib.error.HTTPError):
                    urllib.request.urlopen(wrong)
        finally:
            server.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                server.wait(30)
