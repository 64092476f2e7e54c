"""A target is a value: every spelling of the same thing parses to it, and nothing asks the host."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwright.errors import UsageError
from modelwright.targets import (
    Cpu,
    Target,
    _isa,
    catalogue,
    explained,
    known_targets,
    make_target,
    on_this_host,
    parse_target,
)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("qnn-npu", Target("qnn", "npu")),
        ("QNN_NPU", Target("qnn", "npu")),
        ("qnn", Target("qnn", "npu")),
        ("QNNExecutionProvider", Target("qnn", "npu")),
        ("QNNExecutionProvider-gpu", Target("qnn", "gpu")),
        ("cpu", Target("cpu", "cpu")),
        ("mlas_cpu", Target("cpu", "cpu")),
        ("ov-npu", Target("openvino", "npu")),
        ("openvino-CPU", Target("openvino", "cpu")),
        ("nv_tensorrt_rtx", Target("trtrtx", "gpu")),
        ("nv_tensorrt_rtx_gpu", Target("trtrtx", "gpu")),
        ("dml", Target("dml", "gpu")),
        ("qnn-npu:htp_arch=73", Target("qnn", "npu", (("htp_arch", "73"),))),
        ("qnn-npu:htp_arch=v73", Target("qnn", "npu", (("htp_arch", "73"),))),
        ("qnn-npu: soc=X-Elite", Target("qnn", "npu", (("htp_arch", "73"), ("soc", "x-elite")))),
        ("qnn-npu:soc=60", Target("qnn", "npu", (("htp_arch", "73"), ("soc", "x-elite")))),
        ("cpu:isa=VNNI", Target("cpu", "cpu", (("isa", "vnni"),))),
        ("openvino-cpu:isa=host", Target("openvino", "cpu", (("isa", "host"),))),
        ("qnn-npu:soc=999,htp_arch=81", Target("qnn", "npu", (("htp_arch", "81"), ("soc", "999")))),
    ],
)
def test_spellings_of_a_target_parse_to_one_value(text, target):
    assert parse_target(text) == target


def test_ep_and_device_make_the_same_value_as_a_target():
    assert make_target("QNN", "NPU") == parse_target("qnn-npu")
    assert make_target("qnn:htp_arch=73", "NPU") == parse_target("qnn-npu:htp_arch=73")
    assert make_target("CPUExecutionProvider") == parse_target("cpu")


@given(
    st.sampled_from(known_targets()),
    st.sampled_from([str.upper, str.lower, str.title]),
    st.sampled_from("-_"),
)
def test_printing_and_parsing_are_inverse_in_any_case(target, case, dash):
    assert parse_target(case(str(target)).replace("-", dash)) == target


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("qnm-npu", "did you mean qnn-npu"),
        ("openvno-cpu", "did you mean openvino-cpu"),
        ("tpu", "known targets are"),
        ("", "known targets are"),
        ("qnn-tpu", "npu, gpu"),
        ("cpu-npu", "it drives cpu"),
        ("dml-gpu:htp_arch=73", "its chip settings are: none"),
        ("cpu:htp_arch=73", "its chip settings are: isa"),
        ("cpu:isa=vnn", "did you mean vnni"),
        ("cpu:isa=", "key=value"),
        ("openvino-npu:isa=vnni", "use openvino-cpu:isa=vnni"),
        ("qnn-npu:htp_arc=73", "did you mean htp_arch"),
        ("qnn-npu:htp_arch", "key=value"),
        ("qnn-npu:htp_arch=12", "68, 69, 73"),
        ("qnn-npu:htp_arch=73,htp_arch=75", "twice"),
        ("qnn-npu:soc=x-elite,htp_arch=75", "contradict"),
        ("qnn-npu:soc=x-elit", "did you mean x-elite"),
    ],
)
def test_a_target_that_cannot_be_meant_is_a_usage_error_with_a_next_step(text, words):
    with pytest.raises(UsageError) as caught:
        parse_target(text)
    error = caught.value
    assert words in f"{error.problem} {error.cause} {error.fix}"
    assert error.exit_code == 2


def test_auto_precision_follows_the_policy_table():
    """The meaning of `auto` is part of what users build on: a change here must bump policy_version."""
    assert catalogue().policy_version == 2
    assert {str(t): t.auto_precision for t in known_targets()} == {
        "cpu": "fp32",
        "qnn-npu": "w8a16",
        "qnn-gpu": "fp32",
        "openvino-npu": "w8a16",
        "openvino-gpu": "fp32",
        "openvino-cpu": "fp32",
        "vitisai-npu": "fp32",
        "dml-gpu": "fp32",
        "cuda-gpu": "fp32",
        "tensorrt-gpu": "fp32",
        "trtrtx-gpu": "fp32",
        "migraphx-gpu": "fp32",
        "webgpu-gpu": "fp32",
        "coreml-npu": "fp32",
        "coreml-gpu": "fp32",
        "coreml-cpu": "fp32",
    }


def test_only_an_ep_that_quantizes_by_itself_refuses_qdq():
    assert [str(t) for t in known_targets() if not t.accepts_qdq] == ["vitisai-npu"]


def test_chip_settings_become_provider_options():
    options = parse_target("qnn-npu:soc=x-elite").provider_options
    assert options["soc_model"] == "60"
    assert options["htp_arch"] == "73"
    assert options["htp_performance_mode"] == "burst"


def test_an_instruction_set_is_not_handed_to_the_ep():
    assert parse_target("cpu:isa=vnni").provider_options == {}
    assert parse_target("openvino-cpu:isa=vnni").provider_options == {"device_type": "CPU"}


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("cpu", False),
        ("cpu:isa=avx2", False),
        ("cpu:isa=avx512", False),
        ("cpu:isa=vnni", True),
        ("cpu:isa=amx", True),
        ("cpu:isa=dotprod", True),
        ("openvino-cpu", False),
        ("openvino-cpu:isa=vnni", True),
        ("openvino-npu", None),
        ("qnn-npu:soc=x-elite", None),
        ("coreml-cpu", None),
    ],
)
def test_only_a_named_instruction_set_promises_products_that_do_not_saturate(text, exact):
    assert parse_target(text).exact_products is exact


@pytest.mark.parametrize(
    ("features", "isa"),
    [
        (("avx2",), "avx2"),
        (("avx2", "avx512"), "avx512"),
        (("avx2", "avx_vnni"), "vnni"),
        (("avx2", "avx512", "avx512_vnni", "amx_int8"), "amx"),
        (("neon", "dotprod"), "dotprod"),
        (("neon",), None),
        (None, None),
    ],
)
def test_this_host_is_named_by_the_best_it_has(monkeypatch, features, isa):
    monkeypatch.setattr(_isa, "read_cpu", lambda: Cpu("a CPU", 2, 2, 2.0, features))
    chip = () if isa is None else (("isa", isa),)
    assert on_this_host(parse_target("cpu:isa=host")) == Target("cpu", "cpu", chip)
    assert on_this_host(parse_target("cpu")) == parse_target("cpu")


def test_no_two_eps_share_a_spelling():
    spellings = [spelling for ep in catalogue().eps for spelling in set(ep.spellings)]
    assert len(spellings) == len(set(spellings))


@pytest.mark.parametrize(
    ("text", "soc_model", "words"),
    [
        ("qnn-npu", "60", "no chip is named, so it is taken to be Snapdragon X Elite"),
        ("qnn-npu:htp_arch=75", "57", "only its architecture is named, so it is taken to be Snapdragon 8 Gen 3"),
        ("qnn-npu:soc=sm8750", "69", None),
        ("qnn-npu:soc=999", "999", None),
        ("qnn-gpu", None, None),
        ("openvino-npu", None, None),
    ],
)
def test_a_chip_that_is_not_named_is_assumed_and_said(text, soc_model, words):
    target = parse_target(text)
    assert target.provider_options.get("soc_model") == soc_model
    assert (target.assumption is None) if words is None else target.assumption.startswith(words)


def test_an_assumed_chip_is_no_part_of_the_target_and_no_reason_to_compile():
    assert str(parse_target("qnn-npu")) == "qnn-npu"
    assert not parse_target("qnn-npu").names_chip
    assert parse_target("qnn-npu:htp_arch=75").names_chip


def test_float_operators_that_meet_a_chip_without_fp16_are_told_from_a_lack_of_memory():
    words = "Failed to finalize QNN graph. Error: QNN_COMMON_ERROR_MEM_ALLOC: Memory allocation related error"
    found = explained(parse_target("qnn-npu:soc=sm8350"), words)
    assert "Snapdragon 888 has none" in found.cause
    assert "w8a16" in found.fix
    assert "may have none" in explained(parse_target("qnn-npu:soc=999"), words).cause
    assert explained(parse_target("qnn-npu"), words).cause == words
    assert explained(parse_target("qnn-npu:soc=sm8350"), "something else").cause == "something else"
