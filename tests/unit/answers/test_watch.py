"""What a suite may say, what is green, and how it is told: pure functions, and files."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest

from modelwright.answers.watch import (
    NewOldRatio,
    WatchCase,
    WatchedModel,
    WatchResult,
    WatchRow,
    WatchSuite,
    add_to_history,
    content_of,
    memory_answer,
    placement_row,
    read_history,
    read_suite,
    speed_answer,
)
from modelwright.answers.watch._watch import changed_versions
from modelwright.errors import InputError, UsageError
from modelwright.judge import Judge
from modelwright.measure import OperatorChange, OperatorChanges
from modelwright.report.html import page
from modelwright.report.watch import bug_reports, junit, markdown, result_words
from support.models import mlp, save

CPU = "CPUExecutionProvider"


@pytest.fixture
def suite_file(tmp_path):
    """Writes a suite about a model that is there, with these lines more."""
    model = save(mlp(), tmp_path)

    def write(head="", case=None):
        case = f'sha256 = "{content_of(model)}"' if case is None else case
        path = tmp_path / "suite.toml"
        path.write_text(f'[watch]\n{head}\n[[case]]\nmodel = "model.onnx"\n{case}\n')
        return path

    return write


def test_a_suite_is_read_beside_its_models(suite_file, tmp_path):
    found = read_suite(suite_file("max_slowdown = 0.1\nbudget_s = 5"))
    assert (found.name, found.old, found.new, found.max_slowdown, found.budget_s) == ("suite", "here", "here", 0.1, 5.0)
    assert found.cases[0].model == tmp_path / "model.onnx"
    assert found.each_alpha == 0.025


def test_what_is_not_pinned_is_not_watched_and_the_pin_is_told(suite_file, tmp_path):
    with pytest.raises(InputError) as error:
        read_suite(suite_file(case=""))
    assert f'sha256 = "{content_of(tmp_path / "model.onnx")}"' in error.value.fix


def test_another_model_under_the_same_name_is_refused(suite_file):
    with pytest.raises(InputError, match="another model"):
        read_suite(suite_file(case=f'sha256 = "{"0" * 64}"'))


@pytest.mark.parametrize(
    "head", ["maxslowdown = 0.1", "max_slowdown = 5", "max_slowdown = '5%'", "old = 3", "alpha = 0.0"]
)
def test_what_a_suite_cannot_say_is_an_error(suite_file, head):
    with pytest.raises(InputError):
        read_suite(suite_file(head))


def test_a_side_is_a_runtime_that_exists(suite_file):
    with pytest.raises(UsageError, match="no runtime 'nobody'"):
        read_suite(suite_file(), old="nobody")


def facts(**nodes):
    total = sum(nodes.values())
    share = nodes.get("QNN", 0) / total if total else None
    return SimpleNamespace(ep="QNN", nodes_per_ep=nodes, placed_share=share)


def test_placement_is_by_the_share_of_the_nodes():
    assert placement_row(facts(QNN=10), facts(QNN=4)).passed is True  # fused
    assert placement_row(facts(QNN=10), facts(QNN=9, CPU=1)).passed is False
    assert placement_row(facts(QNN=9, CPU=1), facts(QNN=10)).passed is True


def test_a_side_that_does_not_tell_is_undecided_but_where_there_is_only_the_cpu():
    assert placement_row(facts(), facts(QNN=1)).passed is None
    cpu = SimpleNamespace(ep=CPU, nodes_per_ep={}, placed_share=None)
    assert placement_row(cpu, cpu).passed is True


@pytest.mark.parametrize(
    ("grown", "units", "passed"), [(1.0, 24, True), (1.3, 12, False), (1.0, 3, None), (1.1, 12, None)]
)
def test_memory_is_judged_and_few_units_decide_nothing(grown, units, passed):
    draw, judge, peaks = np.random.default_rng(0), Judge(0.05, 0.025), ([], [])
    for _ in range(units):
        base, arm = 70e6 * (1 + 0.005 * draw.standard_normal(2)) * (1, grown)
        judge.add(base=[base], arm=[arm])
        peaks[0].append(int(base))
        peaks[1].append(int(arm))
    ratio, row = memory_answer(judge, 0.1, peaks, spent_s=units)
    assert (row.passed, ratio.units) == (passed, units)
    assert (row.fix is None) is (passed is not None)


def test_a_simulator_and_a_failure_are_no_times():
    arm = SimpleNamespace(
        facts=SimpleNamespace(simulated=True), failure=None, verdict=object(), sentence="", within=True
    )
    row = speed_answer(arm, SimpleNamespace(record_id=None))[1]
    assert (row.passed, row.fix) == (None, "watch it on a machine that has the device")
    broken = SimpleNamespace(facts=None, failure="it crashed", verdict=None, sentence="", within=None, target="cpu")
    assert speed_answer(broken, SimpleNamespace(record_id=None))[1].sentence == "not timed: it crashed"


def change(op_type, low):
    return OperatorChange(op_type, 1, 1, (op_type,), (op_type,), 1.0, 1.0 + low, 0, 0.0, low, low + 0.1, "")


def case(name="net", *passed):
    rows = [
        WatchRow(aspect, one, "why | <so>") for aspect, one in zip(("runs", "memory", "speed"), passed, strict=True)
    ]
    speed = NewOldRatio(-0.2, -0.3, -0.1, 9)
    operators = OperatorChanges(2, 20, (change("MatMul", 0.5), change("Tanh", -0.2)))
    return WatchCase(
        name, "net.onnx", "cpu", (), "onnxruntime 1.24.2", "onnxruntime 1.31.1", tuple(rows), speed, None, operators
    )


def result(*cases):
    suite = WatchSuite("nightly", "here", "here", (WatchedModel("net", Path("net.onnx"), "0"),))
    return WatchResult(suite, (), cases, "2026-11-17T10:00:00+00:00")


def test_only_what_is_all_proven_is_green():
    good, open_, bad = case("a", True, True, True), case("b", True, None, True), case("c", True, None, False)
    assert [result(one).passed for one in (good, open_, bad)] == [True, None, False]
    assert result(good, open_).passed is None
    assert result_words(result(good, open_)).startswith("undecided: b (memory)")
    assert result_words(result(good, bad)).startswith("REGRESSED: c (speed)")


def test_junit_has_undecided_as_an_error():
    found = ElementTree.fromstring(junit(result(case("a\x1b<b>", True, None, False))))
    assert (found.get("tests"), found.get("failures"), found.get("errors")) == ("3", "1", "1")
    assert "MatMul" in found.find("testcase/failure").text
    assert "Tanh" not in found.find("testcase/failure").text


def test_markdown_and_bug_reports_name_who_is_to_blame_and_names_draw_nothing():
    text = markdown(result(case("a|b", True, True, False)))
    assert "| a\\|b | ok | - | - | ok | REGRESSED |" in text
    assert "MatMul takes" in text
    (name,) = bug_reports(result(case("a/../b", True, True, False), case("fine", True, None, True)))
    assert name == "a-..-b.md"


def test_what_traces_do_not_prove_is_a_suspicion_and_only_with_most_of_the_lost_time():
    def traced(*changes):
        return replace(case("net", True, True, False), operators=OperatorChanges(2, 20, changes))

    open_ = replace(change("MatMul", 0.5), low_ms=-0.1)
    assert (traced(open_, replace(change("Tanh", 0.1), low_ms=-0.1)).suspected or ("",))[0] == "MatMul"
    assert traced(open_, replace(change("Tanh", 0.5), low_ms=-0.1)).suspected is None
    assert traced(change("MatMul", 0.5)).suspected is None  # proven
    assert "most likely MatMul" in markdown(result(traced(open_)))


def test_a_history_is_a_series_per_case_and_old_side_with_its_changes(tmp_path):
    path = tmp_path / "history.jsonl"
    draw = np.random.default_rng(0)
    for run in range(20):
        effect = -0.1 * (run >= 12) + 0.005 * draw.standard_normal()
        engine = "onnxruntime 1.30.0" if run < 12 else "onnxruntime 1.31.1"
        one = replace(case("net", True, True, True), new=engine, speed=NewOldRatio(effect, None, None, 9))
        add_to_history(path, replace(result(one), made_at=f"2026-11-{run + 1:02}T00:00:00+00:00"))
    with path.open("a") as file:
        file.write('{"kind": "wright-wa')
    found = read_history(path)
    (series,) = found.cases
    assert (len(series.points), [change.place for change in series.changes], found.unread) == (20, [12], 1)
    add_to_history(path, result(case("net", True, True, True)))  # behind a line that was cut off
    assert len(read_history(path).cases[0].points) == 21


def test_nothing_is_added_to_a_file_of_somebody_else(tmp_path):
    other = tmp_path / "notes.jsonl"
    other.write_text(json.dumps({"mine": True}) + "\n")
    with pytest.raises(InputError, match="cannot be written"):
        add_to_history(other, result(case("net", True, True, True)))
    assert other.read_text() == json.dumps({"mine": True}) + "\n"


def test_a_runtime_beside_itself_has_no_changed_version():
    assert list(changed_versions("here", "here")) == []


def test_the_page_says_what_the_terminal_says_in_the_words_of_the_command():
    open_ = case("b", True, None, True)
    rows = (open_.rows[0], replace(open_.rows[1], fix="give 90 s or more as `budget_s`"), open_.rows[2])
    text = page(result(replace(open_, rows=rows)), spoken=lambda words: words.replace("`budget_s`", "--budget"))
    assert "undecided: b (memory)" in text
    assert "next: b (memory): give 90 s or more as --budget" in text
    assert "why | &lt;so&gt;" in text
