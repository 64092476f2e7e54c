"""A verb for another machine reads the files that came along, and no others of this one."""

import contextlib

import pytest

from modelwright.api._on import _Parcel
from modelwright.api.lent import answer_verb
from modelwright.errors import ExecutionError, InputError
from modelwright.farm.cluster import Loan
from modelwright.vocabulary import silent
from support.builds import write_manifest


@pytest.mark.parametrize(
    ("verb", "given"),
    [
        ("build", {"model": "received:/model/net.onnx"}),
        ("perf", {"model": "/etc/passwd"}),
        ("perf", {"model": "received:/elsewhere/net.onnx"}),
        ("perf", {"model": "received:/model/../../secret.onnx"}),
        ("perf", {"model": "received:/model/net.onnx", "trace_chrome": "/tmp/written"}),
        ("perf", {"model": "received:/model/net.onnx", "store": "/tmp/store"}),
        ("perf", {"model": "received:/model/net.onnx", "data": "/etc"}),
        ("perf", {"model": "received:/model/net.onnx", "data": {"source": "/etc/passwd"}}),
        ("perf", {"model": "received:/model/net.onnx", "data": {"source": "/tmp/code.py:rows"}}),
        ("perf", {"model": "received:/model/net.onnx", "data": {"source": "received:/model/a.py:b", "labels": "/etc"}}),
        ("compare", {"arms": [{"model": "/etc/passwd"}]}),
        ("evaluate", {"model": "received:/model/net.onnx", "metric": "/tmp/code.py:run"}),
        ("tune", {"model": "received:/model/net.onnx", "recipe": {"data": {"source": "/etc"}}}),
        ("tune", {"model": "received:/model/net.onnx", "output": "/tmp/out"}),
    ],
)
def test_what_did_not_come_along_is_refused(tmp_path, verb, given):
    with pytest.raises(ExecutionError, match="cannot be true"):
        answer_verb(Loan(verb, given, {"model": tmp_path}, None, None, silent))


@pytest.fixture
def parcel():
    with contextlib.ExitStack() as stack:
        yield _Parcel(stack, None)


def sent(parcel):
    return sorted(entry.name for entry in parcel.folders["model"])


def test_of_a_build_goes_what_was_built_and_nothing_that_somebody_put_beside_it(tmp_path, parcel):
    folder = tmp_path / "built"
    for part in ("encoder", "decoder"):
        (folder / part).mkdir(parents=True)
        (folder / part / "model.onnx").write_bytes(part.encode())
    write_manifest(folder, parts=("encoder", "decoder"))
    (folder / "notes.txt").write_text("mine")
    assert parcel.pack("model", str(folder)) == "received:/model/built"
    assert sent(parcel) == ["built/decoder/model.onnx", "built/encoder/model.onnx", "built/wright.json"]
    assert parcel.pack("model", str(folder / "decoder")) == "received:/model/built/decoder"


def test_of_a_hugging_face_folder_goes_the_model_and_no_file_of_the_user(tmp_path, parcel):
    folder = tmp_path / "bert"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "bert", "architectures": ["BertForMaskedLM"]}')
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / ".env").write_text("secret")
    (folder / "train.py").write_text("")
    parcel.pack("model", str(folder))
    assert sent(parcel) == ["bert/config.json", "bert/model.safetensors"]


def test_a_metric_of_a_package_goes_by_its_name_and_a_missing_file_is_said_here(tmp_path, parcel):
    assert parcel.pack("metric", "closeness") == "closeness"
    with pytest.raises(InputError, match=r"mine\.py does not exist"):
        parcel.pack("metric", str(tmp_path / "mine.py:score"))
