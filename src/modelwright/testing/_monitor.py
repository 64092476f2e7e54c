"""What every monitor must keep."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from modelwright._lazy import lazy
from modelwright.errors import ExecutionError
from modelwright.measure import Monitor, Runs, run_monitored
from modelwright.targets import BoundSession, SessionSpec, parse_target
from modelwright.worker import run, task

if TYPE_CHECKING:
    import numpy as np
    import onnx
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

_RUNS = Runs(warmup=1, measured=3)
_SPEC = SessionSpec(threads=1, config={"session.disable_prepacking": "1"})


class MonitorSuite:
    """Override the fixture `monitor`: a fresh monitor for a session on the CPU. It must travel to a child."""

    @pytest.fixture
    def monitor(self, tmp_path: Path) -> Monitor:
        raise NotImplementedError("give the monitor that is to be tested")

    @pytest.fixture
    def model(self, tmp_path: Path) -> str:
        return _small_model(tmp_path / "monitored.onnx")

    def test_it_asks_for_more_and_changes_nothing_else(self, monitor: Monitor) -> None:
        asked = monitor.session_spec(_SPEC)
        for spec, more in ((_SPEC.config, asked.config), (_SPEC.provider_options, asked.provider_options)):
            assert {**(more or {}), **(spec or {})} == (more or {})
        same = ("threads", "graph_optimization", "allow_unused", "plugin")
        assert {name: getattr(asked, name) for name in same} == {name: getattr(_SPEC, name) for name in same}

    def test_what_it_saw_travels_home(self, monitor: Monitor, model: str) -> None:
        seen = run(watched.call(model, monitor), timeout=120).unwrap()
        assert pickle.loads(pickle.dumps(seen)) is not None

    def test_a_body_that_fails_is_what_is_reported(self, monitor: Monitor, model: str) -> None:
        with pytest.raises(ExecutionError, match="the body failed"):
            run(watched.call(model, monitor, fail=True), timeout=120).unwrap()

    def test_it_can_be_closed_without_having_seen_anything(self, monitor: Monitor) -> None:
        monitor.close()


@task
def watched(model: str, monitor: Any, fail: bool = False) -> object:
    """A few runs under the monitor, in this child."""

    def body(session: BoundSession) -> tuple[None, Runs]:
        for _ in range(_RUNS.warmup + _RUNS.measured):
            session.run({"x": np.ones((1, 4), np.float32)})
        if fail:
            raise ExecutionError("the body failed", cause="it was asked to", fix="nothing")
        return None, _RUNS

    return run_monitored(model, parse_target("cpu"), replace(_SPEC), monitor, body).seen


def _small_model(path: Path) -> str:
    info = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "x"], ["y"], "add")],
        "monitored",
        [info("x", onnx.TensorProto.FLOAT, [1, 4])],
        [info("y", onnx.TensorProto.FLOAT, [1, 4])],
    )
    onnx.save(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8), path)
    return str(path)
