"""A build folder is what was built, or it is said what is not."""

import json

import pytest

from modelwright._output import SEAL, sealed
from modelwright.errors import InputError, UsageError
from modelwright.models import BuildVerdict, check_build, onnx_of, read_build, recorded_inputs, recorded_verdict
from support import builds, models

TOKENS = {"name": "x", "dtype": "float32", "shape": ["batch", 4], "sizes": [2, 4], "fill": {"kind": "normal"}}


@pytest.fixture
def build(tmp_path):
    folder = tmp_path / "build"
    models.save(models.mlp(), folder)
    builds.write_manifest(folder, inputs=[TOKENS])
    return folder


@pytest.fixture
def parts(tmp_path):
    folder = tmp_path / "parts"
    for name in ("encoder", "decoder"):
        models.save(models.mlp(hidden=len(name)), folder / name)
    builds.write_manifest(folder, ("encoder", "decoder"))
    return folder


def edit(path, old=b"hidden", new=b"hIdden"):
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]) if old not in data else data.replace(old, new))


def edit_manifest(build):
    path = build / "wright.json"
    document = json.loads(path.read_text())
    document["recipe"] = {"precision": "w4a4"}
    path.write_text(json.dumps(document))


CHANGES = {
    "another model": (lambda build: edit(build / "model.onnx"), "changed", "model.onnx"),
    "an edited manifest": (edit_manifest, "changed", "wright.json"),
    "an emptied manifest": (lambda build: (build / "wright.json").write_text("{}"), "changed", "wright.json"),
    "no model": (lambda build: (build / "model.onnx").unlink(), "missing", "model.onnx"),
}


@pytest.mark.parametrize(("change", "word", "name"), CHANGES.values(), ids=CHANGES)
def test_what_was_changed_is_named_and_not_opened(build, change, word, name):
    assert onnx_of(build) == build / "model.onnx"
    assert check_build(build).whole
    change(build)
    assert getattr(check_build(build), word) == (name,)
    with pytest.raises(InputError, match="is not what was built") as caught:
        onnx_of(build)
    assert name in caught.value.cause
    assert ".onnx file itself" in caught.value.fix


def test_a_new_manifest_for_other_bytes_needs_a_new_seal(build):
    """As if somebody wrote the right digest of another model into the old manifest."""
    edit(build / "model.onnx")
    text = (build / "wright.json").read_text()
    old = json.loads(text)["components"][0]["files"][0]["sha256"]
    (build / "wright.json").write_text(text.replace(old, builds.file_facts(build / "model.onnx")["sha256"]))
    assert check_build(build).changed == ("wright.json",)


def test_an_added_file_is_listed_and_does_not_keep_the_build_from_use(build):
    (build / "notes.txt").write_text("mine")
    assert check_build(build).extra == ("notes.txt",)
    assert onnx_of(build)


def test_a_changed_model_is_still_a_plain_model_for_who_points_at_it(build):
    assert recorded_inputs(build / "model.onnx")
    edit(build / "model.onnx")
    assert onnx_of(build / "model.onnx") == build / "model.onnx"
    assert recorded_inputs(build / "model.onnx") == ()


def test_a_part_is_checked_with_its_build(parts):
    assert onnx_of(parts / "encoder") == parts / "encoder" / "model.onnx"
    with pytest.raises(UsageError, match="several models"):
        onnx_of(parts)
    edit(parts / "decoder" / "model.onnx")
    with pytest.raises(InputError, match="is not what was built"):
        onnx_of(parts / "encoder")


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 1},
        {"components": 3},
        {"components": [3]},
        {
            "components": [
                {"name": "m", "folder": "..", "files": [{"name": "x", "sha256": "", "size": 1}], "inputs": []}
            ]
        },
        {"links": 3},
        {"recipe": None},
    ],
    ids=str,
)
def test_a_sealed_manifest_of_another_shape_is_refused(build, change):
    document = {**json.loads((build / "wright.json").read_text()), **change, "seal": SEAL}
    (build / "wright.json").write_bytes(sealed(json.dumps(document)))
    for use in (read_build, check_build):
        with pytest.raises(InputError, match="cannot be read as a build"):
            use(build)


def test_a_folder_without_a_manifest_is_no_build(tmp_path):
    with pytest.raises(InputError, match="is not a build folder"):
        check_build(tmp_path)


def judged(build, **said):
    document = json.loads((build / "wright.json").read_text())
    document["components"][0] |= {"passed": said["passed"], "stages": said["stages"]}
    document |= {"accuracy": said.get("accuracy"), "agreement": said.get("agreement")}
    (build / "wright.json").write_bytes(sealed(json.dumps({**document, "seal": SEAL})))
    return recorded_verdict(build / "model.onnx")


def test_the_words_of_every_gate_that_failed_are_read_back(build):
    checks = [
        {"name": "close", "passed": False, "detail": "cosine 0.1"},
        {"name": "runs", "passed": True, "detail": ""},
    ]
    stages = [
        {"stage": "optimize", "outcome": None},
        {"stage": "validate", "outcome": {"passed": False, "checks": checks}},
        {"stage": "check", "outcome": {"passed": False, "reason": "other answers"}},
    ]
    lost = {"passed": False, "reasons": ["lost 3 %"]}
    together = {"outcome": {"passed": False, "detail": "other tokens"}}
    found = judged(build, passed=False, stages=stages, accuracy=lost, agreement=together)
    assert found == BuildVerdict(False, ("close: cosine 0.1", "other answers", "lost 3 %", "other tokens"))
    assert judged(build, passed=True, stages=stages[:1]) == BuildVerdict(True)
    assert judged(build, passed=True, stages=stages[:1], accuracy=lost).passed is False


def test_a_model_that_was_changed_since_has_no_verdict(build):
    assert recorded_verdict(build / "model.onnx") == BuildVerdict(None)
    edit(build / "model.onnx")
    assert recorded_verdict(build / "model.onnx") is None
