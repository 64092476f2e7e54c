"""What a package is asked, and what excuses it: pure functions of what was found."""

import datetime
from dataclasses import replace

import pytest

from modelwright.answers.ship import GateRow, Waiver, read_waivers
from modelwright.answers.ship._gates import GateFacts, SpeedAnswer, gate_rows
from modelwright.answers.ship._selection import SELECTORS, selection, selector
from modelwright.answers.ship._types import ChainStep, ChosenVariant, LeastVersion, ShippedVariant, VariantTrial
from modelwright.answers.ship._waivers import idle, waive
from modelwright.errors import InputError
from modelwright.models import FileDigest
from modelwright.pipeline import BuildFailure
from modelwright.vocabulary import weakest

TODAY = datetime.date(2026, 11, 17)


def variant(target="cpu", ep="CPUExecutionProvider", device="cpu"):
    files = (FileDigest(f"variants/{target}/model.onnx", "0" * 64, 10),)
    least = (LeastVersion("onnxruntime", "1.24.2", "ran here with it"),)
    return ShippedVariant(
        target, ep, device, f"variants/{target}", "portable", "", "fp32", (), files, {}, {"device_type": "CPU"}, least
    )


def facts(**changed):
    npu = variant("qnn-npu", "QNNExecutionProvider", "npu")
    ran = VariantTrial("cpu", "here", True, None, "onnxruntime 1.31.1", "1.31.1", inputs=3, finite=True)
    other = replace(ran, target="qnn-npu", engine="QNN", compared=True)
    whole = GateFacts(
        builds={},
        failed=(),
        variants=(npu, variant()),
        trials=(ran, other),
        speeds={"qnn-npu": SpeedAnswer(True, "faster", "abc")},
        chain=(ChainStep((), "qnn-npu", "qnn-npu"), ChainStep(("QNN on npu",), "cpu", "cpu")),
        chosen=(ChosenVariant("here", "1.31.1", "cpu", (), True, None),),
        real=True,
        reference="cpu",
    )
    return replace(whole, **changed)


def answers(found, gate):
    return {row.target: row.passed for row in gate_rows(found) if row.gate == gate}


def test_all_is_well():
    assert weakest(row.passed for row in gate_rows(facts())) is True


def test_a_package_without_a_plain_cpu_is_not_complete():
    assert answers(facts(variants=(variant("openvino-cpu", "OpenVINOExecutionProvider"),)), "complete") == {None: False}


def test_a_target_that_was_not_built_is_missing():
    error = InputError("no", cause="why", fix="how")
    assert answers(facts(failed=(BuildFailure("dml-gpu", error),)), "complete") == {"dml-gpu": False, None: True}


def test_speed_that_nobody_measured_is_not_a_yes():
    found = facts(speeds={"qnn-npu": SpeedAnswer(None, "not run: only a simulator")})
    assert answers(found, "speed") == {"qnn-npu": None}


def test_nan_is_a_no_wherever_it_came_out():
    there = replace(facts().trials[1], place="other", finite=False)
    assert answers(facts(trials=(*facts().trials, there)), "inputs") == {"qnn-npu": False, "cpu": True}
    fed = replace(there, fed_finite=False)  # NaN went in
    assert answers(facts(trials=(*facts().trials, fed)), "inputs") == {"qnn-npu": None, "cpu": True}


def test_what_nobody_could_say_has_a_next_step():
    found = facts(real=False, speeds={"qnn-npu": SpeedAnswer(None, "not run: only a simulator")})
    assert all(row.fix for row in gate_rows(found) if row.passed is None)


def test_made_up_inputs_prove_nothing_and_nor_do_two():
    assert set(answers(facts(real=False), "inputs").values()) == {None}
    assert answers(facts(trials=tuple(replace(one, inputs=2) for one in facts().trials)), "inputs")["cpu"] is None


def test_one_place_where_a_variant_answers_otherwise_decides():
    there = replace(facts().trials[1], place="other", different="cosine 0.5")
    assert answers(facts(trials=(*facts().trials, there)), "agreement") == {"qnn-npu": False}


def test_variants_that_both_see_nothing_do_not_disagree():
    there = replace(facts().trials[1], different="y is next to nothing in both", nothing=True)
    found = facts(trials=(facts().trials[0], there))
    row = next(row for row in gate_rows(found) if row.gate == "agreement")
    assert (row.passed, row.reason.startswith("nobody can tell"), bool(row.fix)) == (None, True, True)
    otherwise = replace(there, place="other", different="cosine 0.5", nothing=False)
    assert answers(facts(trials=(*found.trials, otherwise)), "agreement") == {"qnn-npu": False}


def test_a_variant_that_ran_nowhere_is_unknown_and_says_why():
    found = facts(trials=(facts().trials[0], VariantTrial("qnn-npu", "here", False, "there is no such device")))
    row = next(row for row in gate_rows(found) if row.gate == "agreement")
    assert (row.passed, row.reason) == (None, "not run: there is no such device")
    assert answers(found, "chain") == {"qnn-npu": None, "cpu": True}


def test_a_selector_that_takes_something_else_breaks_the_chain():
    assert answers(facts(chain=(ChainStep((), "qnn-npu", "cpu"),)), "chain") == {"qnn-npu": False}


def test_a_selector_that_gets_nothing_to_run_breaks_the_chain():
    here = ChosenVariant("here", "1.31.1", None, (), False, "variants/cpu/model.onnx is not what was shipped")
    assert answers(facts(chain=(), chosen=(here,)), "chain") == {None: False}


ROW = GateRow("speed", "qnn-npu", None, "not run")


@pytest.mark.parametrize(
    ("waiver", "holds", "word"),
    [
        (Waiver("speed", None, "why", "2026-12-31"), True, "waived"),
        (Waiver("speed", "qnn-npu", "why", "2026-11-17"), True, "waived"),
        (Waiver("speed", None, "why", "2026-11-16"), False, "waiver expired"),
        (Waiver("speed", "cpu", "why", "2026-12-31"), None, "not run"),
        (Waiver("inputs", None, "why", "2026-12-31"), None, "not run"),
    ],
)
def test_a_waiver_holds_for_its_gate_and_variant_until_its_last_day(waiver, holds, word):
    (row,) = waive([ROW], [waiver], TODAY)
    assert (row.holds, row.word) == (holds, word)


def test_a_waiver_that_is_over_fails_also_what_could_not_be_asked_and_the_later_one_counts():
    over, good = Waiver("speed", None, "why", "2026-01-01"), Waiver("speed", None, "again", "2027-01-01")
    assert waive([ROW], [over], TODAY)[0].holds is False
    assert waive([ROW], [good, over], TODAY)[0].holds is True


def test_a_waiver_that_nothing_needs_is_idle():
    waiver = Waiver("speed", None, "why", "2027-01-01")
    assert idle(waive([replace(ROW, passed=True)], [waiver], TODAY), [waiver]) == (waiver,)


@pytest.mark.parametrize(
    "text",
    [
        'gate = "speed"',
        '[[waiver]]\ngate = "sped"\nreason = "x"\nuntil = 2027-01-01',
        '[[waiver]]\ngate = "speed"\nuntil = 2027-01-01',
        '[[waiver]]\ngate = "speed"\nreason = " "\nuntil = 2027-01-01',
        '[[waiver]]\ngate = "speed"\nreason = "x"',
        '[[waiver]]\ngate = "speed"\nreason = "x"\nuntil = "some day"',
        '[[waiver]]\ngate = "speed"\nreason = "x"\nuntil = 2027-01-01\nforever = true',
        "[[waiver]",
    ],
)
def test_a_waiver_without_a_gate_a_reason_or_an_end_is_refused(tmp_path, text):
    (tmp_path / "waivers.toml").write_text(text)
    with pytest.raises(InputError):
        read_waivers(tmp_path / "waivers.toml")


def test_waivers_are_read(tmp_path):
    rows = '[[waiver]]\ngate = "speed"\ntarget = "QNN_NPU"\nreason = "none here"\nuntil = 2027-01-01\n'
    (tmp_path / "waivers.toml").write_text(rows)
    assert read_waivers(tmp_path / "waivers.toml") == (Waiver("speed", "qnn-npu", "none here", "2027-01-01"),)


def test_the_selection_is_lines_with_tabs():
    assert selection([variant()]).splitlines() == [
        "wright-selection\t1",
        "variant\tcpu\tCPUExecutionProvider\tcpu",
        "needs\tonnxruntime\t1.24.2",
        "where\tdevice_type\tCPU",
        f"file\tvariants/cpu/model.onnx\t{'0' * 64}",
    ]


def test_every_selector_reads_every_word_of_the_selection():
    for name in SELECTORS:
        source = selector(name).decode()
        assert not [word for word in ("variant", "needs", "option", "where", "model", "file") if word not in source]
