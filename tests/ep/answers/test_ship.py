"""A package is built, its selectors choose and open, and nobody gets a file that was changed."""

import hashlib
import html
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import onnxruntime_qnn
import pytest
import referencing
from cyclonedx import schema as public
from jsonschema import Draft7Validator

import modelwright as mw
from modelwright.report.html import page
from modelwright.report.ship import reason_words, verdict_words
from support import models

QNN, OPENVINO, CPU = "QNNExecutionProvider", "OpenVINOExecutionProvider", "CPUExecutionProvider"
NPU = "qnn-npu:htp_arch=73,soc=x-elite"
WAIVERS = """
[[waiver]]
gate = "speed"
reason = "no device in this room"
until = 2099-01-01
"""
# onnxruntime, what is there (EP, device, version), and what has to be taken.
MACHINES = {
    "a plain CPU": ("1.31.1", [(CPU, "cpu", "1.31.1")], "cpu"),
    "a Snapdragon": ("1.31.1", [(QNN, "npu", "0.1.0"), (CPU, "cpu", None)], NPU),
    "a Snapdragon, all of it": ("1.40.0", [(QNN, "cpu", None), (QNN, "npu", "9.9"), (OPENVINO, "cpu", None)], NPU),
    "the simulator": ("1.31.1", [(QNN, "cpu", "0.1.0"), (CPU, "cpu", None)], "cpu"),
    "an older QNN": ("1.31.1", [(QNN, "npu", "0.0.9"), (CPU, "cpu", None)], "cpu"),
    "Intel, as a flavour": ("1.31.1", [(OPENVINO, None, None), (CPU, "cpu", None)], "openvino-cpu"),
    "Intel, a plugin with a GPU only": ("1.31.1", [(OPENVINO, "gpu", None), (CPU, "cpu", None)], "cpu"),
    "Intel beside a Snapdragon's GPU": ("1.31.1", [(QNN, "gpu", None), (OPENVINO, "cpu", "99")], "openvino-cpu"),
    "an older onnxruntime": ("1.9.0", [(QNN, "npu", "0.1.0"), (CPU, "cpu", None)], None),
    "another vendor's GPU": ("1.32.0+cu12", [("CUDAExecutionProvider", "gpu", None), (CPU, "cpu", None)], "cpu"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One package for all, made once."""
    folder = tmp_path_factory.mktemp("ship")
    path = models.save(models.conv_net(), folder / "source")
    np.savez(folder / "rows.npz", x=np.random.default_rng(0).standard_normal((16, 3, 8, 8)).astype(np.float32))
    (folder / "waivers.toml").write_text(WAIVERS)
    store = mw.Store(folder / "store")
    targets = ["cpu", "qnn-npu:soc=x-elite", "openvino-cpu"]
    data, waivers = str(folder / "rows.npz"), folder / "waivers.toml"
    found = mw.ship(
        path, targets, output=folder / "package", data=data, licence="MIT", waivers=waivers, budget_s=5, store=store
    )
    return found, store, path, folder


@pytest.fixture
def package(made, tmp_path):
    """A copy to spoil."""
    return Path(shutil.copytree(made[0].folder, tmp_path / "package"))


@pytest.fixture(scope="module")
def selector(made):
    """The very file that lies in the package."""
    spec = importlib.util.spec_from_file_location("wright_select", made[0].folder / "wright_select.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_what_was_shipped_and_where_it_can_go(made):
    found = made[0]
    assert [one.target for one in found.variants] == [NPU, "openvino-cpu", "cpu"]
    assert [one.carried for one in found.variants] == ["device-locked", "portable", "portable"]
    assert found.variants[1].folder == found.variants[2].folder  # the same bytes, once
    assert found.variants[2].needs[0].version == onnxruntime.__version__


def test_what_was_found_here_is_said_and_what_was_not_run_is_not_a_yes(made):
    words = {(row.gate, row.target): row.word for row in made[0].gates}
    assert words["complete", None] == words["accuracy", NPU] == words["inputs", "cpu"] == "passed"
    assert words["agreement", NPU] == words["chain", NPU] == words["chain", "cpu"] == "passed"
    assert words["speed", NPU] == "waived"
    if words["agreement", "openvino-cpu"] == "not run":  # where there is no Intel CPU
        assert words["chain", "openvino-cpu"] == "undecided"
        assert made[0].passed is None


def test_the_page_has_every_gate_and_what_was_taken(made):
    text = page(made[0])
    assert verdict_words(made[0]) in text
    assert all(html.escape(reason_words(row)) in text.replace("<wbr>", "") for row in made[0].gates)
    assert "the selector takes" in text


def test_the_package_says_it_again(made):
    found = made[0]
    document = json.loads((found.folder / "wright-package.json").read_text())
    assert document["selection_seal"] == hashlib.sha256((found.folder / "selection.txt").read_bytes()).hexdigest()
    for name, digest in document["files"].items():
        assert hashlib.sha256((found.folder / name).read_bytes()).hexdigest() == digest
    assert str(made[3]) not in json.dumps(document)
    assert mw.verify(found.folder / found.variants[0].folder).whole
    assert mw.read(found.record_id, store=made[1]).payload.gates == found.gates


def test_the_bill_of_materials_keeps_to_the_public_schema(made):
    document = json.loads((made[0].folder / "sbom.cdx.json").read_text())
    files = Path(public.__file__).with_name("_res").glob("*.schema.json")
    every = {path.name.partition(".SNAPSHOT")[0]: json.loads(path.read_text()) for path in files}
    ids = [(one["$id"], referencing.Resource.from_contents(one)) for one in every.values()]
    schema = Draft7Validator(every["bom-1.6"], registry=referencing.Registry().with_resources(ids))
    assert not [error.message for error in schema.iter_errors(document)]
    assert list(schema.iter_errors({**document, "bomFormat": "other"}))
    variants = [one for one in document["components"] if one["type"] == "machine-learning-model"]
    hashes = {part["name"]: part["hashes"][0]["content"] for one in variants for part in one["components"]}
    assert hashes == {file.name: file.sha256 for one in made[0].variants for file in one.files}


def test_the_same_package_again_is_the_same(made):
    found, store, path, folder = made
    data, waivers = str(folder / "rows.npz"), folder / "waivers.toml"
    again = mw.ship(
        path, ["cpu"], output=folder / "again", data=data, licence="MIT", waivers=waivers, budget_s=5, store=store
    )
    assert again.variants[0].files[0].sha256 == found.variants[2].files[0].sha256
    assert again.passed is True
    assert [waiver.gate for waiver in again.idle_waivers] == ["speed"]


@pytest.mark.parametrize("name", MACHINES)
def test_the_selector_takes_what_fits(made, selector, name):
    version, devices, expected = MACHINES[name]
    machine = selector.UserMachine(version, devices)
    fitting = [one.name for one in selector.read_selection(made[0].folder) if not selector.unfit(one, machine)]
    assert next(iter(fitting), None) == expected


def test_the_selector_opens_here_and_says_why_nothing_before(made, selector):
    opened = selector.open_session(made[0].folder, seal=made[0].selection_seal)
    assert opened.variant.name in ("cpu", "openvino-cpu")
    assert opened.why().startswith(f"not {NPU}: ")
    assert opened.session.run(None, {"x": np.zeros((1, 3, 8, 8), np.float32)})[0].size


def test_the_compiled_variant_opens_where_its_ep_is(made):
    assert _opened_beside_qnn(made[0].folder).endswith(f"took {NPU}")


def test_a_variant_that_does_not_open_is_passed_over(package, selector):
    """What it is for is here, and its bytes are right: onnxruntime refuses it all the same."""
    model = package / "variants/broken.onnx"
    model.write_bytes(b"nonsense")
    digest = hashlib.sha256(b"nonsense").hexdigest()
    lines = (package / "selection.txt").read_text().split("\n")
    first = [
        f"variant\tbroken\t{CPU}\tcpu",
        "model\tmodel\tvariants/broken.onnx",
        f"file\tvariants/broken.onnx\t{digest}",
    ]
    (package / "selection.txt").write_text("\n".join([lines[0], *first, *lines[1:]]))
    opened = selector.open_session(package)
    assert opened.tried[0][0] == "broken"
    assert opened.tried[0][1].startswith("it does not open: ")


def test_an_ep_that_opens_the_model_and_takes_no_node_of_it_is_passed_over(package):
    """Its session would open, and the CPU would compute all of it under the EP's name."""
    model = models.save(models.left_alone(), package / "variants", "det.onnx")
    first = [
        f"variant\tleft-alone\t{QNN}\tnpu",
        "model\tmodel\tvariants/det.onnx",
        f"file\tvariants/det.onnx\t{hashlib.sha256(model.read_bytes()).hexdigest()}",
        f"option\tbackend_path\t{onnxruntime_qnn.get_qnn_htp_path()}",
    ]
    lines = (package / "selection.txt").read_text().split("\n")
    (package / "selection.txt").write_text("\n".join([lines[0], *first, *lines[1:]]))
    said = _opened_beside_qnn(package)
    assert f"not left-alone: it does not open: {QNN} takes no node of it" in said


def _opened_beside_qnn(package):
    """In a process of its own: an EP stays registered."""
    program = (
        "import sys, wright_select as w, numpy as np;"
        f"o = w.open_session({str(package)!r}, libraries={{{QNN!r}: {onnxruntime_qnn.get_library_path()!r}}},"
        " any_device=True); o.session.run(None, {'x': np.zeros((1, 3, 8, 8), np.float32)}); print(o.why())"
    )
    where = {**os.environ, "PYTHONPATH": str(package)}
    done = subprocess.run([sys.executable, "-c", program], env=where, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "variants/openvino-cpu/model.onnx").write_bytes(b"other"), "model.onnx is not what"),
        (lambda folder: (folder / "variants/openvino-cpu/model.onnx").unlink(), "model.onnx cannot be read"),
        (lambda folder: _edit(folder, "variants/openvino", "../openvino"), "leads out of the package"),
        (lambda folder: _edit(folder, "variants/openvino", "/openvino"), "leads out of the package"),
        (lambda folder: _edit(folder, "wright-selection\t1", "wright-selection\t2"), "of another kind"),
    ],
)
def test_what_is_not_what_was_shipped_is_refused(package, selector, spoil, said):
    spoil(package)
    with pytest.raises(selector.PackageRefused, match=said):
        selector.open_session(package)


def test_with_the_seal_nobody_exchanges_the_selection(made, package, selector):
    """Model and digest exchanged together."""
    (package / "variants/openvino-cpu/model.onnx").write_bytes(b"other")
    _edit(package, made[0].variants[2].files[0].sha256, hashlib.sha256(b"other").hexdigest())
    with pytest.raises(selector.PackageRefused, match=r"selection\.txt is not what was shipped"):
        selector.open_session(package, seal=made[0].selection_seal)


def test_a_machine_with_nothing_is_told_why(package, selector):
    _edit(package, "needs\tonnxruntime\t", "needs\tonnxruntime\t9")
    with pytest.raises(selector.PackageRefused, match=r"no variant runs here: .*it needs onnxruntime 9"):
        selector.open_session(package)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The C++ selector, against Debian's headers and the library of the wheel that runs these tests."""
    found = [Path(os.environ.get("ORT_HEADERS", "")), Path(sys.prefix, "ort-headers/usr/include/onnxruntime")]
    headers = next((place for place in found if (place / "onnxruntime_cxx_api.h").is_file()), None)
    if shutil.which("g++") is None or headers is None:
        pytest.skip("there is no g++, or no onnxruntime_cxx_api.h (`make headers`)")
    folder = tmp_path_factory.mktemp("cpp")
    library = next(Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*"))
    (folder / "libonnxruntime.so.1").symlink_to(library)
    ours = Path(mw.__file__).parent / "answers/ship/selectors"
    words = ["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-isystem{headers}", f"-I{ours}"]
    link = [str(folder / "libonnxruntime.so.1"), f"-Wl,-rpath,{folder}", "-o", str(folder / "select")]
    subprocess.run([*words, str(Path(__file__).with_name("select_main.cpp")), *link], check=True)
    return folder / "select"


def _select(compiled, *words, given=""):
    return subprocess.run([compiled, *map(str, words)], input=given, capture_output=True, text=True, check=False)


def _described():
    """The machines, one on a line."""
    rows = [
        "\t".join([version, *("/".join(word or "" for word in one) for one in devices)])
        for version, devices, _ in MACHINES.values()
    ]
    return "\n".join(rows) + "\n"


def test_the_selector_in_cpp_takes_what_the_one_in_python_takes(made, compiled):
    done = _select(compiled, "choose", made[0].folder, given=_described())
    assert done.stdout.split("\n")[:-1] == [expected or "-" for *_, expected in MACHINES.values()]


def test_the_selector_in_csharp_takes_and_refuses_what_the_others_do(made, package, tmp_path):
    """Compiled and run by Mono, against a stub of the edge of Microsoft.ML.OnnxRuntime: no session is opened."""
    if shutil.which("mcs") is None or shutil.which("mono") is None:
        pytest.skip("there is no Mono (mono-mcs)")
    parts = [Path(__file__).with_name(name) for name in ("select_stub.cs", "select_main.cs")]
    program = tmp_path / "select.exe"
    subprocess.run(
        ["mcs", "-langversion:latest", f"-out:{program}", *map(str, parts), str(package / "WrightSelect.cs")],
        check=True,
    )

    def select(*words, given=""):
        words = ["mono", str(program), *map(str, words)]
        return subprocess.run(words, input=given, capture_output=True, text=True, check=False)

    done = select("choose", package, given=_described())
    assert done.stdout.split("\n")[:-1] == [expected or "-" for *_, expected in MACHINES.values()]
    assert select("open", package, made[0].selection_seal).stdout.endswith("took cpu\n")
    assert select("open", package, "00").returncode == 1
    (package / "variants/openvino-cpu/model.onnx").write_bytes(b"other")
    spoilt = select("open", package, made[0].selection_seal)
    assert (spoilt.returncode, spoilt.stderr.strip()) == (1, "variants/openvino-cpu/model.onnx is not what was shipped")


def test_the_selector_in_cpp_opens_and_runs(made, compiled, selector):
    done = _select(compiled, "open", made[0].folder, "fitting", made[0].selection_seal)
    assert done.returncode == 0, done.stderr
    fed = {"x": np.full((1, 3, 8, 8), 0.5, np.float32)}
    answers = selector.open_session(made[0].folder).session.run(None, fed)[0].reshape(-1)[:4]
    assert "took cpu" in done.stdout or "took openvino-cpu" in done.stdout
    assert np.allclose([float(word) for word in done.stdout.split("\n")[-2].split()], answers, rtol=1e-4)
    library = f"{QNN}={onnxruntime_qnn.get_library_path()}"
    there = _select(compiled, "open", made[0].folder, "any", made[0].selection_seal, library)
    assert f"took {NPU}" in there.stdout, there.stderr


def test_the_selector_in_cpp_refuses_what_was_changed(made, package, compiled):
    (package / "variants/openvino-cpu/model.onnx").write_bytes(b"other")
    done = _select(compiled, "open", package, "fitting", made[0].selection_seal)
    assert (done.returncode, done.stderr.strip()) == (1, "variants/openvino-cpu/model.onnx is not what was shipped")
    assert _select(compiled, "open", made[0].folder, "fitting", "00").returncode == 1


def _edit(folder, before, after):
    path = folder / "selection.txt"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
