"""`wright sys` on real plugins, and on plugins that misbehave."""

import platform
import sys

import pytest

from support.hostile_library import aborting, hanging

pytestmark = pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the hostile libraries are x86-64 ELF files",
)


@pytest.fixture
def plugin_package(tmp_path):
    """Makes an installed distribution that follows the plugin convention."""
    site = tmp_path / "site"
    site.mkdir()

    def make(name, library):
        module = name.replace("-", "_")
        info = site / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (site / f"{module}.py").write_text(
            f"get_ep_name = lambda: 'TestExecutionProvider'\nget_library_path = lambda: {str(library)!r}\n"
        )
        return site

    return make


def _rows(answer):
    return {row["ep"]: row for row in answer.json["eps"]}


def test_misbehaving_plugins_cost_only_their_own_rows(wright, tmp_path, plugin_package):
    plugin_package("onnxruntime-ep-aborts", aborting(tmp_path / "libaborts.so"))
    plugin_package("onnxruntime-ep-hangs", hanging(tmp_path / "libhangs.so"))
    site = plugin_package("onnxruntime-ep-missing", tmp_path / "libmissing.so")
    answer = wright("sys", "--json", env={"PYTHONPATH": str(site)})
    assert answer.code == 0
    rows = _rows(answer)
    assert rows["onnxruntime-ep-aborts"]["status"] == "crashes"
    assert "SIGABRT" in rows["onnxruntime-ep-aborts"]["reason"]
    assert rows["onnxruntime-ep-hangs"]["status"] == "hangs"
    assert rows["onnxruntime-ep-missing"]["status"] == "fails"
    assert "library not found" in rows["onnxruntime-ep-missing"]["reason"]
    assert rows["cpu"]["status"] == "usable"


def test_the_real_plugins_answer_with_what_this_machine_has(wright):
    pytest.importorskip("onnxruntime_qnn")
    pytest.importorskip("onnxruntime_ep_openvino")
    answer = wright("sys", "--json")
    assert answer.code == 0
    assert answer.err == ""
    rows = _rows(answer)
    assert (rows["cpu"]["status"], rows["cpu"]["targets"]) == ("usable", ["cpu"])
    assert (rows["qnn"]["status"], rows["qnn"]["targets"]) == ("simulator", ["qnn-npu"])
    if answer.json["host"]["cpu"]["model"].startswith("Intel"):
        # OpenVINO drives Intel CPUs, and only those.
        assert (rows["openvino"]["status"], rows["openvino"]["targets"]) == ("usable", ["openvino-cpu"])
    else:
        assert (rows["openvino"]["status"], rows["openvino"]["targets"]) == ("registered, no device", [])


def test_what_is_absent_comes_with_the_way_to_get_it(wright):
    rows = _rows(wright("sys", "--json"))
    assert rows["webgpu"]["next_step"] == "pip install onnxruntime-ep-webgpu"
    assert rows["cuda"]["next_step"] == "wright runtime create cuda onnxruntime-gpu"
    assert rows["dml"]["status"] == "other platform"
    assert "Windows" in rows["dml"]["reason"]


def test_a_library_named_in_the_environment_gets_a_row(wright, tmp_path):
    library = aborting(tmp_path / "libacme.so")
    answer = wright("sys", "--json", env={"MODELWRIGHT_EP_LIBRARIES": f"AcmeExecutionProvider={library}"})
    assert _rows(answer)["AcmeExecutionProvider"]["status"] == "crashes"


def test_the_table_for_people_ends_in_one_sentence(wright):
    answer = wright("sys", "--no-color", env={"COLUMNS": "120"})
    assert answer.code == 0
    assert answer.out.splitlines()[-1].startswith("This machine runs cpu")
