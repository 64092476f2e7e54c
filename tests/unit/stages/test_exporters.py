"""What libraries of other versions answer is understood, and which versions the tests speak about is written down."""

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from modelwright.stages.export import _strategies

ROOT = Path(__file__).parents[3]
GRAPH = object()


@pytest.mark.parametrize(
    "answer",
    [SimpleNamespace(model=GRAPH), SimpleNamespace(program=GRAPH, model=None)],
    ids=["until 5.22", "since 5.23"],
)
def test_the_exporter_of_transformers_is_understood_in_both_forms(monkeypatch, answer):
    exporter = SimpleNamespace(
        OnnxConfig=lambda **_: None, OnnxExporter=lambda: SimpleNamespace(export=lambda *_: answer)
    )
    monkeypatch.setattr(_strategies, "exporter_onnx", exporter)
    monkeypatch.setattr(_strategies, "traceable", lambda *_, **__: None)
    monkeypatch.setattr(_strategies, "_dynamic_shapes", lambda _: None)
    request = SimpleNamespace(part=None, sample={}, outputs=(), opset=21)
    assert _strategies._transformers(request) is GRAPH


def test_every_library_of_an_export_is_pinned_to_a_version_that_is_allowed():
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = dict(
        line.lower().replace("_", "-").split("==")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if "==" in line
    )
    wanted = [*said["dependencies"], *said["optional-dependencies"]["hf"]]
    assert any(one.startswith("transformers") for one in wanted)
    for one in wanted:
        name, least = re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", one.lower().replace("_", "-")).groups()
        assert _numbers(pinned[name]) >= _numbers(least), one


def _numbers(version):
    return [int(part) for part in re.findall(r"\d+", version)[:3]]
