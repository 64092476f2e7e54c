"""Runs by path in a child interpreter, which need not have modelwright or any of its dependencies.

Makes exactly the `modelwright` package importable from the folder it was started for, and nothing beside it.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import sys


def _load_package(folder: str) -> None:
    start = os.path.join(folder, "__init__.py")  # noqa: PTH118 pathlib is not worth its import here
    spec = importlib.util.spec_from_file_location("modelwright", start, submodule_search_locations=[folder])
    if spec is None or spec.loader is None:
        raise ImportError(f"no modelwright package in {folder}")
    package = importlib.util.module_from_spec(spec)
    sys.modules["modelwright"] = package
    spec.loader.exec_module(package)


# Libraries and exporters make millions of objects that stay; Python's own thresholds look through them all the time.
_GC_THRESHOLDS = (200_000, 30, 100)


def main() -> None:
    gc.set_threshold(*_GC_THRESHOLDS)
    folder, plan = sys.argv[1], json.loads(sys.argv[2])
    sys.argv[1:] = []
    _load_package(folder)
    serving = importlib.import_module("modelwright.worker._serve")
    serving.serve(serving.ChildPlan(**plan))


if __name__ == "__main__":
    main()
