"""The peak that a plan states."""

import json

import pytest

from modelwright.pipeline._memory import _stored


def checkpoint(path, **shapes):
    table = {name: {"dtype": "BF16", "shape": shape, "data_offsets": [0, 0]} for name, shape in shapes.items()}
    header = json.dumps({"__metadata__": {"format": "pt"}, **table}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)


def test_parameters_are_counted_from_the_headers_of_all_shards(tmp_path):
    checkpoint(tmp_path / "1.safetensors", a=[3, 4], b=[])
    checkpoint(tmp_path / "2.safetensors", c=[5])
    assert _stored(tmp_path, ("model.safetensors.index.json", "1.safetensors", "2.safetensors")) == 12 + 1 + 5


def test_formats_that_have_no_header_are_unknown(tmp_path):
    assert _stored(tmp_path, ("pytorch_model.bin",)) is None


def test_a_header_that_is_none_is_refused(tmp_path):
    (tmp_path / "w.safetensors").write_bytes(b"\xff" * 64)
    with pytest.raises(ValueError, match="no safetensors"):
        _stored(tmp_path, ("w.safetensors",))
