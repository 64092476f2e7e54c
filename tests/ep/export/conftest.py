"""Model folders for export tests. torch is imported by the tests that run, not while they are collected."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

collect_ignore_glob = [] if importlib.util.find_spec("torch") and importlib.util.find_spec("transformers") else ["*"]


@pytest.fixture
def trained(tmp_path):
    """A folder with saved weights of a tiny family, as a user would have it, and the model itself."""
    from bench.families import FAMILIES, source_of

    from modelwright.stages.export import ExportParams
    from modelwright.stages.export._load import load_model

    def make(name, **config):
        family = next(family for family in FAMILIES if family.name == name)
        source = source_of(family, tmp_path / "config")
        if config:
            path = tmp_path / "config" / "config.json"
            path.write_text(json.dumps({**json.loads(path.read_text()), **config}))
        model = load_model(source, ExportParams(task=source.task, random_weights=True, seed=11)).model
        folder = tmp_path / name
        model.save_pretrained(folder)
        return folder, model

    return make
