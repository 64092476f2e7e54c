"""What runs inside a runtime needs nothing but numpy and onnxruntime there."""

import json
import subprocess
import sys

OURS = ("onnx", "onnx_ir", "psutil", "pydantic", "rich", "filelock", "click", "platformdirs")


def test_the_child_s_half_imports_without_our_dependencies():
    code = "import json, sys, modelwright.measure.timing._session_tasks; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(OURS) & set(json.loads(done.stdout))
