"""A report follows from records, and from nothing else."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

import modelwright as mw
from modelwright._json import plain
from modelwright.errors import InputError
from modelwright.report.html import page
from modelwright.report.support_report import markdown, rendered
from modelwright.support import (
    REPORT,
    Claim,
    ClaimedCase,
    ClaimedData,
    ClaimedFile,
    ClaimedSource,
    StatementAsked,
    _planted,
    this_tool,
    write_claim,
)
from modelwright.support._gate import BASE, WITH, GateRun
from modelwright.support._levels import judge_level, rule
from modelwright.vocabulary import Data
from support.forge import Said, add_statement

ROOT = Path(mw.__file__).parent


def claimed(folder, **changes):
    recipe = folder / "recipe.toml"
    recipe.write_text('precision = "fp32"\n')
    given = {
        "effort": "recipe",
        "ceiling": "L2",
        "outcome": "delta",
        "source": ClaimedSource(name="net.onnx", digest="sha256:" + "ab" * 32),
        "cases": (ClaimedCase("cpu", "fp32"),),
        "recipe": ClaimedFile("recipe.toml", "cd" * 32),
        "gate_seeds": 1,
        **changes,
    }
    claim = Claim(**given)
    write_claim(claim, folder)
    return claim


def gated(folder, claim):
    for arm in (BASE, WITH):
        run = GateRun(arm, claim.seed("inputs"), True, graphs={"model": arm}, contents={"model": arm})
        asked = StatementAsked("gate", "cpu", "fp32", arm=arm, seed=claim.seed("inputs"))
        add_statement(folder, claim, asked, plain(run), Said("built", "build-1"))


def climbed(folder, claim, level, *, attempt=0, change=None, **changes):
    measured = plain(replace(_planted._SOUND[level], **changes.pop("seen", {})))
    judged = judge_level(level, measured)
    asked = StatementAsked("ladder", "cpu", "fp32", None, level, "contribution", None, attempt, change)
    verdict = Said(judged.word, rule(level), judged.reasons)
    return add_statement(folder, claim, asked, measured, verdict, **changes)


@pytest.fixture
def folder(tmp_path):
    found = tmp_path / "acme_net"
    found.mkdir()
    return found


def whole(folder, **changes):
    claim = claimed(folder, **changes)
    gated(folder, claim)
    for level in ("L0", "L1", "L2"):
        climbed(folder, claim, level)
    return claim


def test_the_nine_items_the_baseline_and_the_commands_are_in_it(folder):
    whole(folder)
    text = markdown(mw.support.report(folder))
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    assert [head[3:4] for head in heads[:9]] == list("123456789")
    assert heads[9:] == ["## Baseline and difference", "## Commands"]
    for word in ("recipe.toml", "acme_net", "L2 parity", "`delta`", "wright support run"):
        assert word in text
    assert "wright support review acme_net" in text


def test_the_same_records_give_the_same_bytes_and_the_file_is_one_of_them(folder):
    whole(folder)
    found = mw.support.report(folder)
    assert (folder / REPORT).read_bytes() == rendered(found) == rendered(mw.support.report(folder))


def test_a_claimed_row_without_a_record_keeps_the_report_back(folder):
    claim = claimed(folder)
    gated(folder, claim)
    climbed(folder, claim, "L0")
    with pytest.raises(InputError, match="L1 cpu fp32 has no record"):
        mw.support.report(folder)
    assert not (folder / REPORT).exists()
    climbed(folder, claim, "L1", seen={"not_finite": ("y",)})
    found = mw.support.report(folder)
    assert [(row.level, row.word) for row in found.rows] == [("L0", "pass"), ("L1", "fail"), ("L2", "not-reached")]


def test_a_line_that_was_touched_keeps_it_back_too(folder):
    whole(folder)
    path = folder / "evidence.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"seconds":1.0', b'"seconds":2.0', 1))
    with pytest.raises(InputError, match="not what was written"):
        mw.support.report(folder)


def test_friction_is_detected_and_not_declared(folder):
    claim = claimed(
        folder,
        data=ClaimedData(Data("mine.py:rows"), None),
        metric="mine.py:score",
    )
    gated(folder, claim)
    for level in ("L0", "L1", "L2"):
        climbed(folder, claim, level, argv=("python", "mine.py"))
    climbed(folder, claim, "L1", attempt=1, change="one thread", exit=4)
    climbed(folder, claim, "L2", attempt=1, change="one thread", tool=replace(this_tool(), dirty=True, digest="9" * 64))
    said = "\n".join(mw.support.report(folder).friction)
    for word in (
        "2 retries: one thread",
        "1 attempts ended with an error",
        "recipe.toml was written or edited by hand",
        "the data needs a script: mine.py:rows",
        "the metric needs a script: mine.py:score",
        "it was run by a script: python",
        "the tool was changed while it was used",
        "2 different tools",
    ):
        assert word in said


def test_where_there_was_none_it_says_so(folder):
    claim = claimed(folder, effort="none", outcome="supported", recipe=None)
    gated(folder, claim)
    for level in ("L0", "L1", "L2"):
        climbed(folder, claim, level)
    assert "None was detected." in markdown(mw.support.report(folder))


def test_the_effort_says_which_files_may_be_touched(folder):
    whole(folder)
    allowed = mw.support.report(folder).allowed
    assert "recipes/acme_net/recipe.toml" in allowed
    assert not any("families" in name or name == "*" for name in allowed)


def test_nothing_a_file_is_called_breaks_out_of_the_text(folder):
    whole(folder, source=ClaimedSource(name="net|`<script>\n## 10. approved", digest="sha256:" + "ab" * 32))
    text = markdown(mw.support.report(folder))
    assert "\n## 10." not in text
    assert "<script>" not in text.replace("\\<script\\>", "").replace("`net/'<script>", "")


def test_a_page_of_it_says_the_same(folder):
    whole(folder)
    found = page(mw.support.report(folder))
    assert "acme_net" in found
    assert "L2 parity" in found


def test_nothing_here_pushes_or_opens_a_request():
    """No command of git or of a forge that sends anything is anywhere in the package."""
    words = {"push", "gh", "hub", "send-pack", "request-pull", "send-email"}
    for path in (ROOT / "support").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                said = {one.value for one in node.args if isinstance(one, ast.Constant)}
                assert not said & words, f"{path.name}: {said & words}"
