"""The first word of `debug` says that it was compared, and nothing about how good it is."""

import io

import rich.console

from modelwright.report.debug import render_debug
from modelwright.report.html.debug import debug_page
from support import results


def test_a_comparison_that_was_made_is_not_called_ok():
    """Its worst output has 18 dB."""
    console = rich.console.Console(width=120, file=io.StringIO())
    render_debug(results.debug(5), console)
    assert console.file.getvalue().startswith("compared  w8a8.onnx against float.onnx")
    assert ("status", "compared") in debug_page(results.debug(5)).facts
