"""Every family of the table exports and agrees with PyTorch. The table itself is `python -m bench.families`."""

import onnx
import pytest
from bench.families import FAMILIES, export_family

from modelwright.data import generate

pytestmark = pytest.mark.filterwarnings("ignore")


# One of each kind; the others go the same ways through the exporter.
# T5 is an example in test_decode.
_EXAMPLES = frozenset({"resnet", "swin", "bert", "layoutlm", "owlvit", "wav2vec2", "mgp-str", "vitpose"})


@pytest.mark.parametrize(
    "family",
    [pytest.param(one, marks=[pytest.mark.proof] if one.name not in _EXAMPLES else []) for one in FAMILIES],
    ids=lambda family: family.name,
)
def test_family_exports_and_agrees_with_pytorch(family, tmp_path):
    outcome = export_family(family, tmp_path)
    assert tuple(part.name for part in outcome.components) == family.components
    for part in outcome.components:
        parity = part.parity
        assert parity.cosine >= 0.99999
        assert parity.max_abs <= parity.bound
        assert parity.samples >= 2
        # The answers depend on the inputs, so that agreeing on them means something.
        assert parity.spread > 20 * parity.max_abs
        _written_as_told(tmp_path / "out" / part.name, part)
    _links_fit(outcome)


def _written_as_told(folder, part):
    assert [path.name for path in folder.iterdir()] == ["model.onnx"]
    model = onnx.load(folder / "model.onnx")
    shapes = {
        value.name: tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim) for value in model.graph.input
    }
    assert shapes == {spec.name: spec.sizes for spec in part.inputs}
    assert {name: array.shape for name, array in generate(part.inputs).items()} == shapes
    assert tuple(value.name for value in model.graph.output) == part.outputs
    assert [(item.domain, item.version) for item in model.opset_import] == [("", 18)]
    assert len(model.graph.node) <= part.nodes
    _no_traces(model)


def _no_traces(model):
    assert not model.metadata_props
    assert not model.graph.doc_string
    for node in model.graph.node:
        assert not node.doc_string
        assert not node.metadata_props
    assert b".py" not in model.SerializeToString()


def _links_fit(outcome):
    """Everything that is state arrives through a link, from the output it is named after."""
    parts = {part.name: part for part in outcome.components}
    state = {
        (part.name, spec.name)
        for part in outcome.components
        for spec in part.inputs
        if spec.name.startswith(("past_", "cross_"))
    }
    assert {(link.to_component, link.to_input) for link in outcome.links} == state
    for link in outcome.links:
        assert link.output in parts[link.component].outputs
        assert link.output.replace("present_", "past_") == link.to_input
