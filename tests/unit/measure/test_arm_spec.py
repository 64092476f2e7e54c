"""The grammar of an arm: NAME=MODEL@key=value,key=value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwright.errors import UsageError
from modelwright.measure import Arm, parse_arms


def parse(text):
    return parse_arms([text, "other=other.onnx"])[0]


def test_a_bare_model_is_named_after_its_file():
    assert parse("models/fp32.onnx") == Arm("models/fp32.onnx", "fp32")


def test_a_name_and_settings():
    arm = parse("int8=m.onnx@target=openvino-cpu,threads=1,runtime=ov,level=basic,opt.a=b=c,config.x.y=1")
    assert arm == Arm("m.onnx", "int8", "openvino-cpu", "ov", 1, "basic", options={"a": "b=c"}, config={"x.y": "1"})


def test_files_of_one_name_become_letters():
    assert [arm.name for arm in parse_arms(["a/model.onnx", "b/model.onnx", "c/model.onnx"])] == ["A", "B", "C"]


def test_a_path_with_an_at_sign_is_a_path():
    assert parse("user@host/model.onnx").model == "user@host/model.onnx"


def test_a_path_with_an_equals_sign_is_a_path_when_it_exists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lr=3.onnx").write_bytes(b"")
    assert parse("lr=3.onnx").model == "lr=3.onnx"


@pytest.mark.parametrize(
    "text",
    [
        "m.onnx@thread=1",
        "m.onnx@threads=0",
        "m.onnx@threads=two",
        "m.onnx@opt.=1",
        "m.onnx@level=fast",
        "m.onnx@threads=1,threads=2",
        "m.onnx@threads=",
        "name=",
        "",
    ],
)
def test_what_is_not_understood_is_refused(text):
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.fix


def test_one_arm_is_no_comparison_and_names_are_unique():
    with pytest.raises(UsageError, match="two arms"):
        parse_arms(["m.onnx"])
    with pytest.raises(UsageError, match="called a"):
        parse_arms(["a=m.onnx", "a=n.onnx"])


@given(st.text(max_size=40))
def test_any_text_is_an_arm_or_a_usage_error(text):
    try:
        arms = parse_arms([text, "other=other.onnx"])
    except UsageError:
        return
    except (ValueError, OSError):
        pytest.fail(f"{text!r} broke the parser")
    assert arms[0].model
