"""One graph to be written: a PyTorch module with flat, named tensors in and out."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.stages.export._values import LeftOut
from modelwright.vocabulary import InputSpec

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray
else:
    torch = lazy("torch")

MODEL = "model"
Tensors = Mapping[str, "torch.Tensor"]
Run = Callable[[Tensors], Tensors]


@dataclass(frozen=True, eq=False)
class Part:
    """`run` is what gets traced, and names its outputs in order; `reference` is PyTorch's own answer, where
    tracing needs another path; `left_out` is what the model could take beside `inputs`."""

    name: str
    model: Any
    run: Run
    inputs: InputSpec
    reference: Run | None = None
    left_out: tuple[LeftOut, ...] = ()

    def answer(self, inputs: Tensors) -> Tensors:
        """What PyTorch says, as it stands."""
        with torch.no_grad():
            given = {name: tensor.clone() for name, tensor in inputs.items()}
            return (self.reference or self.run)(given)


def tensors_from(arrays: Mapping[str, NDArray[Any]]) -> Tensors:
    """On the device of the moment, which holds shapes only while an export is rehearsed."""
    return {name: torch.from_numpy(array).to(torch.get_default_device()) for name, array in arrays.items()}


def traceable(part: Part, outputs: tuple[str, ...], *, named: bool) -> Any:
    """The part as a module whose forward has exactly its inputs. `named` returns a dict, else a tuple."""
    names = tuple(spec.name for spec in part.inputs)

    def forward(*args: Any, **kwargs: Any) -> Any:
        found = part.run(dict(zip(names, args, strict=False)) | kwargs)
        if named:
            return {name: found[name] for name in outputs}
        return tuple(found[name] for name in outputs)

    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    module = torch.nn.Module()
    module.model = part.model
    module.forward = forward
    return module.eval()
