"""How much memory a build will hold at most, said before it starts."""

from __future__ import annotations

import importlib.util
import json
import math
from collections.abc import Sequence
from pathlib import Path

from modelwright._dataclass import dataclass
from modelwright.errors import WrightError
from modelwright.graph import model_bytes, shared, stored_weights, summary
from modelwright.models import HfSource, OnnxSource, weight_files
from modelwright.pipeline._plan import PlannedStage
from modelwright.pipeline._recipe import Recipe
from modelwright.stages import export as exporting
from modelwright.stages.quantize import steps_of
from modelwright.stages.validate import LARGE_BYTES
from modelwright.worker import run

UNCERTAINTY = 0.2
_LIMIT_S = 600.0
_FLOAT_BYTES = 4
# Measured on decoders of 0.2 B and 3 B parameters: torch and transformers themselves, and beside the weights the
# answers of PyTorch and of the graph, compared in double precision.
_TORCH_BYTES, _EXPORT_SHARE = 600_000_000, 1.1
# Measured on models of 0.5 to 2.5 GB: the tool and its worker; and of 4-bit weights, what a session makes of them.
_TOOL_BYTES, _SESSION_SHARE, _INT4_SHARE = 92_000_000, 0.9, 0.15625
# Measured on models of 1.1 and 1.4 GB in weights of 17 to 268 MB: onnxruntime's quantizer, and what it notes about each
# channel; before opset 13 all weights are converted in memory.
_QUANTIZER_BYTES, _CHANNEL_BYTES, _LOWEST_OPSET = 58_000_000, 110, 13
_ONLY_EARLIER = "nothing is known about these stages but what earlier runs of theirs took"
_LENGTH_BYTES, _LONGEST_HEADER = 8, 100_000_000


@dataclass(frozen=True)
class MemoryNeed:
    """What all processes of a build together hold at their peak and the system cannot take back: pages of mapped files
    are not among it. Right within `uncertainty`; `held_bytes` is None where nobody knows, for the reason in `basis`."""

    held_bytes: int | None
    basis: str
    uncertainty: float = UNCERTAINTY


def peak_of(source: OnnxSource | HfSource, recipe: Recipe, steps: Sequence[PlannedStage]) -> MemoryNeed:
    """Of a build that takes these steps."""
    left = {step.stage for step in steps if step.state in ("run", "later")} - {"import"}
    if not left:
        return MemoryNeed(0, "nothing would run")
    if "export" in left and isinstance(source, HfSource):
        return _of_export(source, recipe)
    return _of_stream(source, recipe) if isinstance(source, OnnxSource) else MemoryNeed(None, _ONLY_EARLIER)


def _of_stream(source: OnnxSource, recipe: Recipe) -> MemoryNeed:
    """A large model whose weights are read where they lie; smaller ones are simply loaded."""
    kinds = {step.kind for step in steps_of(recipe.quantize.precision)} if recipe.quantize is not None else {"none"}
    streams = kinds <= {"none", "fp16", "int4"} or ("static" in kinds and _in_turn(source, recipe))
    if not streams or recipe.compile is not None or recipe.check is not None:
        return MemoryNeed(None, _ONLY_EARLIER)
    size, weights = model_bytes(source.path), stored_weights(shared(source.path))
    if size < LARGE_BYTES or not weights:
        return MemoryNeed(None, _ONLY_EARLIER)
    if "int4" in kinds:
        held = _TOOL_BYTES + round(_SESSION_SHARE * _INT4_SHARE * size)
        return MemoryNeed(held, "onnxruntime holds the 4-bit weights, packed anew, while it is compared with the model")
    largest = (weights[0].size_bytes or 0) if kinds & {"fp16", "static"} else 0
    if "static" in kinds:
        channels = sum(item.shape[-1] if len(item.shape) == 2 else item.shape[0] for item in weights if item.shape)
        held = _TOOL_BYTES + _QUANTIZER_BYTES + largest + _CHANNEL_BYTES * channels
        return MemoryNeed(held, "one weight after the other is quantized, and made floats of when the gate runs it")
    return MemoryNeed(_TOOL_BYTES + largest, "weights stay in their files, and one after the other is read")


def _in_turn(source: OnnxSource, recipe: Recipe) -> bool:
    """Does static quantization take one weight after the other? Where it quantizes several times, it holds them."""
    asked, opsets = recipe.quantize, summary(shared(source.path)).opsets
    if asked is None or asked.effort == "best" or asked.wide_where_noisy or asked.method != "minmax":
        return False
    return all(item.version >= _LOWEST_OPSET for item in opsets if not item.domain)


def _of_export(source: HfSource, recipe: Recipe) -> MemoryNeed:
    """PyTorch holds all weights in float32; what comes after reads them one at a time."""
    count, reason = _parameters(source, recipe)
    if count is None:
        return MemoryNeed(None, reason)
    held = _TORCH_BYTES + round(_EXPORT_SHARE * count * _FLOAT_BYTES)
    return MemoryNeed(held, f"PyTorch holds {count / 1e9:.2f} B parameters in float32 while they are exported")


def _parameters(source: HfSource, recipe: Recipe) -> tuple[int | None, str]:
    if not source.random_weights:
        try:
            files = weight_files(Path(str(source.folder))) if source.folder is not None else ()
            return _stored(Path(str(source.folder)), files), "its weights were not fetched, or are no safetensors"
        except (WrightError, OSError, ValueError):
            return None, "its weights cannot be read"
    if recipe.export is None or not importlib.util.find_spec("transformers"):
        return None, "its weights are counted by transformers, which is not installed"
    try:
        counted = run(exporting.count_parameters.call(source, recipe.export), timeout=_LIMIT_S).unwrap()
    except WrightError as error:
        return None, f"its weights could not be counted: {error.problem}"
    return counted, ""


def _stored(folder: Path, files: Sequence[str]) -> int | None:
    """From the headers of safetensors; other formats do not say it without being loaded."""
    weights = [folder / name for name in files if not name.endswith(".index.json")]
    if not weights or any(path.suffix != ".safetensors" for path in weights):
        return None
    return sum(map(_in_header, weights))


def _in_header(path: Path) -> int:
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        if length > _LONGEST_HEADER:
            raise ValueError(f"{path.name} is no safetensors file")
        header = json.loads(file.read(length))
    return sum(math.prod(item["shape"]) for name, item in header.items() if name != "__metadata__")
