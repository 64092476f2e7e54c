"""A model as it was written, opened to ask it for a few answers."""

from __future__ import annotations

from pathlib import Path

from modelwright.graph import load, with_weights_in_place
from modelwright.targets._binding import SessionSpec
from modelwright.targets._session import BoundSession, ModelBytes, open_session
from modelwright.targets._target import parse_target


def open_as_written(path: str | Path) -> BoundSession:
    """On the CPU, without graph optimization. For a run or two it is cheaper not to copy or repack the weights."""
    graph = load(path)
    config = {
        "session.model_external_initializers_file_folder_path": str(graph.folder),
        "session.disable_prepacking": "1",
        "session.intra_op.allow_spinning": "0",
    }
    model = ModelBytes(with_weights_in_place(graph).SerializeToString())
    return open_session(model, parse_target("cpu"), SessionSpec(graph_optimization="disabled", config=config))
