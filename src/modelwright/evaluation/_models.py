"""The two sides of an evaluation: an ONNX model on a target, or the PyTorch model it came from. Runs in a child."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.evaluation._types import EvalSide
from modelwright.models import HfSource
from modelwright.stages.decode import DECODER_IDS, Parts, open_parts, same_arrays
from modelwright.stages.export import ExportParams
from modelwright.targets import CALM, SessionFacts, SessionTensor, open_session, parse_target

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from modelwright.stages import export as loading
else:
    np = lazy("numpy")
    torch = lazy("torch")
    loading = lazy("modelwright.stages.export")

Feeds = Mapping[str, "NDArray[Any]"]


class Model(Protocol):
    """Something that answers. `longest` is the most tokens of a text it takes, where its inputs do not say it."""

    longest: int | None

    @property
    def inputs(self) -> Sequence[SessionTensor]: ...
    @property
    def bound(self) -> EvalSide: ...
    def run(self, feeds: Feeds) -> dict[str, NDArray[Any]]: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Side:
    """One model of the pair, as the parent names it."""

    name: str
    model: str | Parts | HfSource
    target: str


class OnnxModel:
    def __init__(self, side: Side) -> None:
        assert isinstance(side.model, str)
        self._session = open_session(side.model, parse_target(side.target), CALM)
        self.longest: int | None = None
        self.inputs: Sequence[SessionTensor] = self._session.inputs
        self.bound = _bound(side.name, self._session.facts)

    def run(self, feeds: Feeds) -> dict[str, NDArray[Any]]:
        return self._session.run(feeds)

    def close(self) -> None:
        self._session.close()


class SeveralGraphs:
    """A build of several graphs, run as the one model they were made from."""

    def __init__(self, side: Side) -> None:
        assert isinstance(side.model, Parts)
        self._model = open_parts(side.model, lambda path: open_session(path, parse_target(side.target), CALM))
        self.longest = self._model.longest
        self.inputs = self._model.inputs
        self.bound = _bound(side.name, self._model.first.facts, self._model.second.facts)

    def run(self, feeds: Feeds) -> dict[str, NDArray[Any]]:
        return self._model.run(feeds)

    def close(self) -> None:
        self._model.close()


class TorchModel:
    """The checkpoint in fp32 on the CPU. It takes the arrays that the candidate takes, in any size."""

    def __init__(self, side: Side, inputs: Sequence[SessionTensor]) -> None:
        assert isinstance(side.model, HfSource)
        source = side.model
        params = ExportParams(
            task=source.task, random_weights=source.random_weights, trust_remote_code=source.trust_remote_code
        )
        self._model = loading.load_model(source, params).model
        self._given: Feeds = {}
        self._encoded: Any = None
        self.longest: int | None = None
        # PyTorch looks ids up by int64 only, whatever width the candidate's graph takes.
        self.inputs = [SessionTensor(spec.name, _wide(spec.dtype), spec.shape) for spec in inputs]
        self.bound = EvalSide(side.name, f"torch {torch.__version__}", None, "cpu", (), (), simulated=False)

    def run(self, feeds: Feeds) -> dict[str, NDArray[Any]]:
        with torch.inference_mode():
            answer = self._written(feeds) if DECODER_IDS in feeds else self._model(**_tensors(feeds), return_dict=True)
        return {name: value.numpy() for name, value in answer.items() if isinstance(value, torch.Tensor)}

    def _written(self, feeds: Feeds) -> Any:
        """One more token of the same answer needs the encoder's work only once."""
        given = {name: array for name, array in feeds.items() if name != DECODER_IDS}
        if self._encoded is None or not same_arrays(given, self._given):
            self._encoded = self._model.get_encoder()(**_tensors(given), return_dict=True)
            self._given = given
        more = {name: array for name, array in feeds.items() if name in (DECODER_IDS, "attention_mask")}
        return self._model(encoder_outputs=self._encoded, **_tensors(more), use_cache=False, return_dict=True)

    def close(self) -> None:
        return None


def _tensors(feeds: Feeds) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in feeds.items()}


def _wide(dtype: str) -> str:
    return {"int32": "int64", "float16": "float32"}.get(dtype, dtype)


def open_model(side: Side, like: Sequence[SessionTensor] = ()) -> Model:
    if isinstance(side.model, Parts):
        return SeveralGraphs(side)
    return OnnxModel(side) if isinstance(side.model, str) else TorchModel(side, like)


def _bound(name: str, *facts: SessionFacts) -> EvalSide:
    nodes: dict[str, int] = {}
    for one in facts:
        for ep_name, count in one.nodes_per_ep.items():
            nodes[ep_name] = nodes.get(ep_name, 0) + count
    return EvalSide(
        model=name,
        engine=facts[0].engine,
        ep_version=facts[0].ep_version,
        target=facts[0].target,
        providers=facts[0].providers,
        nodes_per_ep=tuple(sorted(nodes.items())) if len(facts) > 1 else tuple(nodes.items()),
        simulated=any(one.simulated for one in facts),
    )
