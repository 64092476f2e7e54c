"""A PyTorch model, ready to be exported: loaded whole, in fp32, and free of made-up or broken weights."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.errors import ExecutionError, InputError
from modelwright.models import HfSource, read_architecture, read_processor, text_length
from modelwright.stages.export._classes import find_class
from modelwright.stages.export._values import ExportParams
from modelwright.vocabulary import Origin, Sized
from modelwright.worker import user_code

if TYPE_CHECKING:
    import torch
    import transformers
    from huggingface_hub import errors as hub_errors
else:
    hub_errors = lazy("huggingface_hub.errors")
    torch = lazy("torch")
    transformers = lazy("transformers")
safetensors = lazy("safetensors")

_SHOWN = 5
_POOLER = "pooler."
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, eq=False)
class Loaded:
    """The model, what it came from, and what its processor and tokenizer say.

    `sizes` are those that were chosen for its inputs so far, each with who says so.
    """

    model: Any
    config: Any
    processor: dict[str, Any]
    task: str
    renamed_from: str | None
    text_length: int | None = None
    sizes: dict[str, Sized] = field(default_factory=dict)

    def size(self, name: str, size: int, origin: Origin) -> int:
        """The size, noted down."""
        self.sizes[name] = Sized(name, size, origin)
        return size


@dataclass(frozen=True)
class WeightFit:
    """How a checkpoint fits its class, by names and shapes: what the class has to make up (`missing`), and what it does
    not use."""

    missing: tuple[str, ...]
    unused: tuple[str, ...]


def load_model(source: HfSource, params: ExportParams) -> Loaded:
    """Load the checkpoint, or make one with seeded random weights when asked."""
    loaded = _loaded(source, params, bare=params.random_weights)
    _refuse_broken_weights(loaded.model)
    return loaded


def bare_model(source: HfSource, params: ExportParams) -> Loaded:
    """The model without its checkpoint: to look at its shapes."""
    return _loaded(source, params, bare=True)


def weight_fit(source: HfSource, params: ExportParams) -> WeightFit:
    """As transformers itself fits them, from the headers of the files: no weight is loaded."""
    folder = Path(str(source.folder))
    with own_code(params):
        config, kind, _ = _class(source, params)
        with _packages(kind):
            return _fitted(kind, config, folder, params, {**_attention(params), "device_map": "meta"})[1]


def _loaded(source: HfSource, params: ExportParams, *, bare: bool) -> Loaded:
    with own_code(params):
        return _load(source, params, bare=bare)


def own_code(params: ExportParams) -> AbstractContextManager[None]:
    """Code that comes with the model, and runs when it is loaded, can end in any way."""
    if not params.trust_remote_code:
        return nullcontext()
    return user_code("the Python code that comes with the model", "Repair it, or use a model that needs none.")


def _load(source: HfSource, params: ExportParams, *, bare: bool) -> Loaded:
    folder = Path(str(source.folder))
    config, kind, renamed = _class(source, params)
    with quiet_random(params.seed), _packages(kind):
        how = _attention(params)
        made = random_model(kind, config, **how) if bare else trained_model(kind, config, folder, params, **how)
    model = made.eval().requires_grad_(False)
    return Loaded(model, model.config, read_processor(folder), params.task, renamed, text_length(folder))


def _class(source: HfSource, params: ExportParams) -> tuple[Any, type[Any], str | None]:
    """The configuration, the class to load, and the name it was asked for by when that is another one."""
    config = read_configuration(Path(str(source.folder)), params)
    head = read_architecture([source.architecture] if source.architecture else [], config.model_type)
    fits = head is not None and head.task == params.task
    return config, *find_class(source.architecture if fits else None, config.model_type, params.task)


@contextmanager
def _packages(kind: type[Any]) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise ExecutionError(
            f"{kind.__name__} needs a package that is not installed",
            cause=first_line(error),
            fix="Install it with pip and try again.",
        ) from error


@contextmanager
def quiet_random(seed: int) -> Iterator[None]:
    """Seeded inside, untouched outside."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def read_configuration(folder: Path, params: ExportParams) -> Any:
    try:
        return transformers.AutoConfig.from_pretrained(
            folder, local_files_only=True, trust_remote_code=params.trust_remote_code
        )
    except (ValueError, KeyError, OSError, TypeError, hub_errors.StrictDataclassError) as error:
        raise InputError(
            f"transformers {transformers.__version__} cannot read the configuration of {folder.name}",
            cause=first_line(error),
            fix="Install a transformers version that knows this model type.",
        ) from error


def random_model(kind: type[Any], config: Any, **options: Any) -> Any:
    return kind._from_config(config, dtype=torch.float32, **options)


def trained_model(kind: type[Any], config: Any, folder: Path, params: ExportParams, **options: Any) -> Any:
    model, fit = _fitted(kind, config, folder, params, options)
    if fit.missing:
        raise _untrained(folder, kind, fit.missing)
    return model


def _fitted(
    kind: type[Any], config: Any, folder: Path, params: ExportParams, options: dict[str, Any]
) -> tuple[Any, WeightFit]:
    model, fit = _from_folder(kind, config, folder, params, options)
    if fit.missing and all(name.startswith(_POOLER) for name in fit.missing) and _has_optional_pooler(kind):
        # A checkpoint with a language-model head has no pooler; its features do not need one.
        return _from_folder(kind, config, folder, params, {**options, "add_pooling_layer": False})
    return model, fit


def _from_folder(
    kind: type[Any], config: Any, folder: Path, params: ExportParams, options: dict[str, Any]
) -> tuple[Any, WeightFit]:
    try:
        model, report = kind.from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=params.trust_remote_code,
            output_loading_info=True,
            **options,
        )
    except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError, safetensors.SafetensorError) as error:
        raise InputError(
            f"the weights of {folder.name} cannot be loaded",
            cause=first_line(error),
            fix="Copy the model folder again, and check that the weights belong to its config.json.",
        ) from error
    missing = {*report.get("missing_keys", ()), *(_name(key) for key in report.get("mismatched_keys", ()))}
    return model, WeightFit(tuple(sorted(missing)), tuple(sorted(report.get("unexpected_keys", ()))))


def _has_optional_pooler(kind: type[Any]) -> bool:
    return "add_pooling_layer" in inspect.signature(kind.__init__).parameters


def _attention(params: ExportParams) -> dict[str, Any]:
    return {"attn_implementation": params.attention} if params.attention else {}


def _untrained(folder: Path, kind: type[Any], fresh: Sequence[str]) -> InputError:
    """transformers fills missing weights with noise and only logs it; here that stops the build."""
    more = f" and {len(fresh) - _SHOWN} more" if len(fresh) > _SHOWN else ""
    return InputError(
        f"{folder.name} lacks weights that {kind.__name__} needs",
        cause=f"newly initialised: {', '.join(fresh[:_SHOWN])}{more}",
        fix="Choose the task the checkpoint was trained for, or ask for `random_weights`.",
    )


def _name(key: Any) -> str:
    return key if isinstance(key, str) else str(key[0])


def _refuse_broken_weights(model: Any) -> None:
    """NaN anywhere and infinite weights; a buffer may hold -inf, as masks do."""
    for name, tensor in model.named_parameters():
        # One NaN or infinity makes the sum one, and a sum costs a tenth of looking at every value.
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor.sum())):
            wrong = int((~torch.isfinite(tensor)).sum())
            if wrong:
                raise _broken(name, wrong, tensor.numel())
    for name, tensor in model.named_buffers():
        if tensor.is_floating_point() and bool(torch.isnan(tensor).any()):
            raise _broken(name, int(torch.isnan(tensor).sum()), tensor.numel())


def _broken(name: str, count: int, total: int) -> InputError:
    return InputError(
        f"the weights hold NaN or infinity in {name}",
        cause=f"{count} of {total} values are not finite, so no output could be trusted",
        fix="Use a checkpoint that was saved intact.",
    )


def first_line(error: BaseException) -> str:
    """The first line of what went wrong at the bottom, without colours, short enough for a table."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip() for line in _COLOUR.sub("", str(error)).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
