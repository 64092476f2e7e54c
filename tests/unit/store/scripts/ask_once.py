"""Ask for one key; the producer is slow and leaves a mark for every time it runs."""

import json
import os
import sys
import time
from pathlib import Path

from modelwright.store import Produced, Store, stage_key

root, marks, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
key = stage_key(stage="export", version="1", libraries={}, inputs={}, params={"shared": True})
waits = []


def produce(folder: Path) -> Produced:
    (marks / f"{os.getpid()}").touch()
    time.sleep(seconds)
    (folder / "model.onnx").write_bytes(b"model" * 1000)
    return Produced({"model.onnx": "model"})


with Store(root) as store:
    outcome = store.once(key, produce, on_wait=waits.append)
    right = outcome.artifact.path("model").read_bytes() == b"model" * 1000
print(
    json.dumps(
        {
            "pid": os.getpid(),
            "produced": outcome.produced,
            "waited": outcome.waited_s,
            "right": right,
            "waited_for": [wait.pid for wait in waits],
        }
    )
)
