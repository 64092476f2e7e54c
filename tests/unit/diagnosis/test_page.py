"""The page carries the data safely, whatever a model's author called its tensors."""

import json

from modelwright.diagnosis import DataFacts, DebugReport, DebugSummary, DecibelSpread, OutputScore
from modelwright.report.debug_html import debug_html

NASTY = "</script><script>alert('x')</script> @@DATA@@ & <b>"
NONE = DecibelSpread(0, None, None, None, None)


def report():
    output = OutputScore(NASTY, NASTY, "name", None, None, None, "identical", None, "identical", 1.0, 0.0, None, 1, 0)
    return DebugReport(
        status="ok",
        reason=None,
        mode="static",
        float_model=NASTY,
        quant_model="quant.onnx",
        target="cpu",
        samples=1,
        data=DataFacts("random", True, 1),
        runtimes=None,
        model_outputs=(output,),
        activations=(),
        weights=(),
        biases=(),
        summary=DebugSummary(NONE, NONE, NONE),
        by_op_type=(),
        by_module=(),
        unmatched_float=(),
        unmatched_quant=(),
        notes=(NASTY,),
        chunks=1,
        memory_budget_bytes=1,
    )


def test_names_cannot_break_out_of_the_page():
    page = debug_html(report())
    assert "<script>alert" not in page
    start = page.index('id="data">') + len('id="data">')
    data = json.loads(page[start : page.index("</script>", start)])
    assert data["outputs"][0]["output_name"] == NASTY


def test_made_up_samples_are_said_on_the_page():
    assert "The samples are made up" in debug_html(report())
