"""PyTorch's own answers, from the class as transformers has it: in a child that never looks at a family.

What an export is compared with must not come from the code that made the export. So nothing here asks for a family: the
class is taken by its name, and which modules of families were loaded all the same is told.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import generate
from modelwright.errors import InputError
from modelwright.models import HfSource, read_processor, text_length
from modelwright.stages.export._extras import extra
from modelwright.stages.export._family import FILE_MODULE
from modelwright.stages.export._load import (
    Loaded,
    first_line,
    own_code,
    quiet_random,
    random_model,
    read_configuration,
    trained_model,
)
from modelwright.stages.export._owed import UNKNOWN_REASON, differs, other_value, unfed
from modelwright.stages.export._part import Tensors, tensors_from
from modelwright.stages.export._values import ExportParams
from modelwright.vocabulary import InputSpec
from modelwright.worker import progress, task

if TYPE_CHECKING:
    import numpy as np
    import torch
    import transformers
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    torch = lazy("torch")
    transformers = lazy("transformers")

Arrangement = Literal["one", "towers", "encoder-decoder", "language-model"]
_FAMILIES = "modelwright.stages.export.families."
_DECODER_IDS = "decoder_input_ids"
Arrays = dict[str, "NDArray[Any]"]


@dataclass(frozen=True)
class StockPart:
    """A graph that is to be compared: its inputs, its outputs by name, and `count` samples in files `NAME-f0.npz` …"""

    name: str
    inputs: InputSpec
    outputs: tuple[str, ...]
    count: int


@dataclass(frozen=True)
class StockAsked:
    """`model_class` is the name of a class of transformers. `start` and `end` are the tokens that a text begins and
    ends with, `never` those that are not written; of so many `texts`, so many `tokens` each."""

    model_class: str
    params: ExportParams
    arrangement: Arrangement
    parts: tuple[StockPart, ...]
    start: tuple[int, ...] = ()
    end: tuple[int, ...] = ()
    never: tuple[int, ...] = ()
    texts: int = 0
    tokens: int = 0


@dataclass(frozen=True)
class StockOwed:
    """An argument of forward that no graph takes: whether another value changes the answer; None with the reason."""

    argument: str
    changes: bool | None
    reason: str | None = None


@dataclass(frozen=True)
class StockSeen:
    """`foreign` are modules of families that this process has loaded. `vocabulary` and `labels` are what the
    configuration says. `answered` are the parts whose answers were written; `texts` the tokens of each."""

    engine: str
    model_class: str
    foreign: tuple[str, ...]
    owed: tuple[StockOwed, ...]
    vocabulary: int | None
    labels: int | None
    answered: tuple[str, ...]
    uncompared: tuple[str, ...]
    texts: tuple[tuple[int, ...], ...]


@task
def run_stock(source: HfSource, workdir: str, asked: StockAsked) -> StockSeen:
    """Writes `NAME-w0.npz` … with the answers of each part, and of texts `text-w0.npz` with the scores at each step."""
    folder = Path(workdir)
    progress(f"loading {asked.model_class}")
    loaded = _stock(source, asked)
    answered, uncompared = [], []
    with torch.inference_mode():
        for part in asked.parts:
            progress(f"asking PyTorch for {part.name}")
            run = _runner(loaded.model, part, asked.arrangement)
            if run is None:
                uncompared.append(part.name)
                continue
            uncompared += [f"{part.name}.{name}" for name in _answer(run, part, folder)]
            answered.append(part.name)
        texts = tuple(_texts(loaded.model, asked, folder))
    text = loaded.config.get_text_config()
    return StockSeen(
        engine=f"torch {torch.__version__}, transformers {transformers.__version__}",
        model_class=type(loaded.model).__name__,
        foreign=tuple(name for name in sys.modules if name.startswith(_FAMILIES) or name == FILE_MODULE),
        owed=tuple(_owed(loaded, asked)),
        vocabulary=getattr(text, "vocab_size", None),
        labels=getattr(loaded.config, "num_labels", None),
        answered=tuple(answered),
        uncompared=tuple(uncompared),
        texts=texts,
    )


def _stock(source: HfSource, asked: StockAsked) -> Loaded:
    folder, params = Path(str(source.folder)), asked.params
    kind = getattr(transformers, asked.model_class, None)
    if kind is None:
        raise InputError(
            f"transformers {transformers.__version__} has no {asked.model_class}",
            cause="its code comes with the model, or with a family",
            fix="There is no reference that the export does not bring itself.",
        )
    with own_code(params), quiet_random(params.seed):
        config = read_configuration(folder, params)
        model = random_model(kind, config) if params.random_weights else trained_model(kind, config, folder, params)
    model = model.eval().requires_grad_(False)
    return Loaded(model, model.config, read_processor(folder), params.task, None, text_length(folder))


def _runner(model: Any, part: StockPart, arrangement: Arrangement) -> Callable[[Tensors], Any] | None:
    """How PyTorch computes what a graph does; None where it has no such step by itself."""
    encodes = set(part.outputs) >= {"last_hidden_state"} and hasattr(model, "get_encoder")
    if arrangement == "towers":
        return _tower(model, part)
    if arrangement == "one":
        halves = getattr(model.config, "is_encoder_decoder", False)
        if halves and encodes and "logits" not in part.outputs:
            return lambda tensors: model.get_encoder()(**tensors, return_dict=True)
        more = {"use_cache": False} if halves else {}
        return lambda tensors: model(**tensors, **more, return_dict=True)
    if arrangement == "encoder-decoder" and encodes:
        return lambda tensors: model.get_encoder()(**tensors, return_dict=True)
    return None


def _tower(model: Any, part: StockPart) -> Callable[[Tensors], Any]:
    getter, name = (
        (model.get_text_features, "text_embeds")
        if "text_embeds" in part.outputs
        else (model.get_image_features, "image_embeds")
    )

    def run(tensors: Tensors) -> dict[str, Any]:
        found = getter(**tensors)
        return {name: found if isinstance(found, torch.Tensor) else found.pooler_output}

    return run


def _answer(run: Callable[[Tensors], Any], part: StockPart, folder: Path) -> tuple[str, ...]:
    """Writes the answers to all samples; gives the outputs that PyTorch has no answer for."""
    missing: dict[str, None] = {}
    for number in range(part.count):
        feeds, shapes = _read(folder / f"{part.name}-f{number}.npz"), _read(folder / f"{part.name}-g{number}.npz")
        with quiet_random(0):
            found = _named(run(_wide(feeds)), {name: shapes[name].shape for name in part.outputs if name in shapes})
        missing |= {name: None for name in part.outputs if name not in found}
        np.savez(folder / f"{part.name}-w{number}.npz", **found)  # type: ignore[arg-type]
    return tuple(missing)


def _named(answer: Mapping[str, Any], wanted: Mapping[str, tuple[int, ...]]) -> Arrays:
    """By name; what a graph calls otherwise is the next tensor of that shape that nobody has named."""
    leaves = dict(_leaves(answer))
    found = {name: leaves.pop(name) for name in wanted if name in leaves}
    for name, shape in wanted.items():
        same = [leaf for leaf, tensor in leaves.items() if tuple(tensor.shape) == shape]
        if name not in found and same:
            found[name] = leaves.pop(same[0])
    return {
        name: tensor.float().numpy() if tensor.is_floating_point() else tensor.numpy() for name, tensor in found.items()
    }


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, tuple | list):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{name}.{number}")


def _texts(model: Any, asked: StockAsked, folder: Path) -> Iterator[tuple[int, ...]]:
    """Greedy, step by step, without a cache: what was read so far is read again."""
    for number in range(asked.texts):
        given = _wide(_read(folder / f"text-f{number}.npz"))
        follow = _follower(model, asked.arrangement, given)
        written: list[int] = list(asked.start) if asked.arrangement == "encoder-decoder" else []
        tokens, scores = [], []
        for _ in range(asked.tokens):
            found = follow(written).float().numpy()
            scores.append(found)
            allowed = np.array(found)
            allowed[[token for token in asked.never if token < len(allowed)]] = -np.inf
            tokens.append(int(allowed.argmax()))
            written.append(tokens[-1])
            if tokens[-1] in asked.end:
                break
        np.savez(folder / f"text-w{number}.npz", logits=np.stack(scores))
        yield tuple(tokens)


def _follower(model: Any, arrangement: Arrangement, given: Tensors) -> Callable[[list[int]], torch.Tensor]:
    """From the tokens so far to the scores of the next one."""
    if arrangement == "language-model":
        prompt = given["input_ids"]

        def more(written: list[int]) -> torch.Tensor:
            ids = torch.cat([prompt, torch.tensor([written], dtype=prompt.dtype).reshape(1, -1)], dim=1)
            return model(input_ids=ids, use_cache=False, return_dict=True).logits[0, -1]

        return more
    encoded = model.get_encoder()(**given, return_dict=True)
    mask = {name: tensor for name, tensor in given.items() if name == "attention_mask"}

    def after(written: list[int]) -> torch.Tensor:
        ids = torch.tensor([written], dtype=torch.int64)
        more = {"encoder_outputs": encoded, _DECODER_IDS: ids, "use_cache": False, "return_dict": True}
        return model(**more, **mask).logits[0, -1]

    return after


def _owed(loaded: Loaded, asked: StockAsked) -> Iterator[StockOwed]:
    """Every tensor that forward could take and no graph does: tried where a value can be made up."""
    model = loaded.model
    inputs = tuple({spec.name: spec for part in asked.parts for spec in part.inputs}.values())
    whole, forward, run = _whole(model, asked, inputs)
    if run is None:
        return
    try:
        answer = _plain(run, whole)
    except Exception as error:  # noqa: BLE001 - models raise anything
        yield StockOwed("forward", None, first_line(error))
        return
    given = {spec.name for spec in whole}
    for name in unfed(forward, given | {_DECODER_IDS, "decoder_attention_mask"}):
        more = extra(name, whole, loaded, asked.params)
        if more is None or more.only_if_needed:
            yield StockOwed(name, None, UNKNOWN_REASON)
            continue
        try:
            yield StockOwed(name, differs(answer, _plain(run, (*whole, other_value(more)))))
        except Exception as error:  # noqa: BLE001 - as above
            yield StockOwed(name, None, f"it cannot be given with made-up inputs: {first_line(error)}")


def _whole(
    model: Any, asked: StockAsked, inputs: InputSpec
) -> tuple[InputSpec, Callable[..., Any], Callable[[Tensors], Any] | None]:
    """What the model as a whole is fed by its graphs, and what computes."""
    if asked.arrangement == "one":
        run = _runner(model, asked.parts[0], "one") if len(asked.parts) == 1 else None
        encodes = getattr(model.config, "is_encoder_decoder", False) and "logits" not in asked.parts[0].outputs
        forward = model.get_encoder().forward if encodes and hasattr(model, "get_encoder") else model.forward
        return inputs, forward, run
    if asked.arrangement == "language-model":
        ids = tuple(spec for spec in asked.parts[0].inputs if spec.name == "input_ids")
        return ids, model.forward, lambda tensors: model(**tensors, use_cache=False, return_dict=True)
    if asked.arrangement == "encoder-decoder":
        encoder = model.get_encoder()
        return asked.parts[0].inputs, encoder.forward, lambda tensors: encoder(**tensors, return_dict=True)
    return inputs, model.forward, None


def _plain(run: Callable[[Tensors], Any], inputs: InputSpec) -> Tensors:
    with torch.inference_mode(), quiet_random(0):
        return dict(_leaves(run(tensors_from(generate(inputs)))))


def _read(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _wide(feeds: Arrays) -> Tensors:
    """PyTorch looks ids up by int64 only, whatever width the graph takes."""
    wider = {"int32": "int64", "float16": "float32"}
    arrays = {name: array.astype(wider.get(str(array.dtype), array.dtype)) for name, array in feeds.items()}
    return tensors_from({name: np.ascontiguousarray(array) for name, array in arrays.items()})
