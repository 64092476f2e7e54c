"""A model in the Hugging Face layout: a folder with `config.json`, or the id of one on the Hub."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from modelwright._belongs import foreign
from modelwright._dataclass import dataclass
from modelwright._json import loads
from modelwright.errors import InputError
from modelwright.models._digest import folder_digest
from modelwright.models._task import Architecture, choose_task, read_architecture

CONFIG = "config.json"
# What belongs to the model besides its weights: it may shape an export (a tokenizer says how long texts are), and it
# travels with what is built, because nobody can use a model without it.
SMALL_FILES = (
    CONFIG,
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "video_preprocessor_config.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "normalizer.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
    "source.spm",
    "target.spm",
    "chat_template.jinja",
    "chat_template.json",
)
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
# A key of the configuration: the one file of weights to load, whatever else is there.
NAMED_WEIGHTS = "transformers_weights"
_ADAPTER = "adapter_config.json"
WEIGHT_INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")


@dataclass(frozen=True)
class HfSource:
    """`folder` holds the files; for a Hub id it is empty until `fetch` has run, and `commit` is resolved."""

    name: str
    task: str
    model_type: str
    architecture: str | None
    folder: str | None = None
    repo: str | None = None
    commit: str | None = None
    files: tuple[str, ...] = ()
    random_weights: bool = False
    trust_remote_code: bool = False
    unproven: bool = False

    def identity(self) -> str:
        """What the content is, for stage keys: the commit of a Hub model, the bytes of a local folder.

        The bytes also where a cached copy cannot be checked against the commit (`unproven`).
        """
        if self.repo is not None and not self.unproven:
            return f"hf:{self.repo}@{self.commit}"
        return f"sha256:{folder_digest(Path(str(self.folder)), self.files)}"

    def companions(self) -> tuple[str, ...]:
        """The files beside its weights that whoever uses it needs."""
        return tuple(name for name in self.files if name in SMALL_FILES)

    def weight_bytes(self) -> int | None:
        """The size of its files; None when weights are made up, or when they are not here yet."""
        if self.random_weights or self.folder is None:
            return None
        return sum(path.stat().st_size for name in self.files if (path := Path(self.folder, name)).is_file())


@dataclass(frozen=True)
class SourceChoices:
    """What the user said about the source."""

    task: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    random_weights: bool = False


def local_source(folder: Path, choices: SourceChoices) -> HfSource:
    if choices.revision is not None:
        raise InputError(
            f"{folder.name} has no revisions",
            cause="`revision` is for models on the Hub, and this is a folder",
            fix="Leave `revision` out, or give the id of the model.",
        )
    refuse_foreign(folder)
    config = read_config(folder / CONFIG)
    source = describe(folder.name, config, choices)
    weights = () if choices.random_weights else weight_files(folder)
    small = tuple(name for name in SMALL_FILES if (folder / name).is_file())
    code = tuple(sorted(path.name for path in folder.glob("*.py"))) if choices.trust_remote_code else ()
    return HfSource(
        source.name,
        source.task,
        source.model_type,
        source.architecture,
        folder=str(folder.absolute()),
        files=(*small, *weights, *code),
        random_weights=choices.random_weights,
        trust_remote_code=choices.trust_remote_code,
    )


def refuse_foreign(folder: Path, names: Iterable[str] | None = None) -> None:
    """Whatever transformers may open in a model's folder must be a file of that folder."""
    for name in _odd(folder) if names is None else names:
        why = foreign(folder, name)
        if why is not None:
            raise InputError(
                f"{folder.name}/{name} is refused",
                cause=f"it {why}",
                fix="Put the file itself there, and only if you trust its origin.",
            )


def _odd(folder: Path) -> list[str]:
    """Links and whatever is neither a file nor a folder."""
    try:
        with os.scandir(folder) as found:
            return sorted(
                entry.name for entry in found if not entry.is_dir() and (entry.is_symlink() or not entry.is_file())
            )
    except OSError as error:
        raise InputError(
            f"{folder.name} cannot be read", cause=error.strerror or type(error).__name__, fix="Check its permissions."
        ) from error


def describe(name: str, config: dict[str, Any], choices: SourceChoices) -> HfSource:
    """The source without its files: what kind of model, and for which task."""
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or not model_type:
        raise InputError(
            f"{name} does not say what model it is",
            cause=f"its {CONFIG} has no model_type",
            fix="Point at a folder that transformers' save_pretrained wrote.",
        )
    _refuse_remote_code(name, config, choices)
    found = read_architecture(_architectures(config), model_type)
    task = choose_task(choices.task, found, name=name, random_weights=choices.random_weights)
    return HfSource(name, task, model_type, _class_name(found, config))


def read_config(path: Path) -> dict[str, Any]:
    try:
        config = loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path.parent.name}/{path.name} cannot be read", cause=str(error), fix="Copy the model folder again."
        ) from error
    if not isinstance(config, dict):
        raise InputError(
            f"{path.parent.name}/{path.name} is not a model configuration",
            cause="it holds no JSON object",
            fix="Copy the model folder again.",
        )
    return config


def weight_files(folder: Path) -> tuple[str, ...]:
    """The weights transformers would load: what the configuration names, else safetensors first; shards come from
    their index."""
    _refuse_adapter(folder)
    named = read_config(folder / CONFIG).get(NAMED_WEIGHTS)
    if named is not None:
        return _named(folder, str(named))
    for whole, index in zip(WEIGHTS, WEIGHT_INDEXES, strict=True):
        if (folder / whole).is_file():
            return (whole,)
        if (folder / index).is_file():
            return (index, *_shards(folder, index))
    pieces = sorted(path.name for path in folder.glob("*.onnx"))
    raise InputError(
        f"{folder.name} holds no weights",
        cause=f"neither {' nor '.join(WEIGHTS)} is there" + (f", only {', '.join(pieces[:3])}" if pieces else ""),
        fix=f"Point at {pieces[0]} itself." if pieces else "Copy the weights there, or ask for `random_weights`.",
    )


def _refuse_adapter(folder: Path) -> None:
    """transformers would load the model that an adapter names, from wherever that is."""
    if (folder / _ADAPTER).is_file():
        raise InputError(
            f"{folder.name} is an adapter",
            cause=f"its {_ADAPTER} says that the weights are those of another model",
            fix="Merge it into that model first (merge_and_unload), save the result and point there.",
        )


def _named(folder: Path, name: str) -> tuple[str, ...]:
    refuse_foreign(folder, [name])
    if not (folder / name).is_file():
        raise InputError(
            f"{folder.name} holds no weights", cause=f"{name}, which {CONFIG} names, is missing", fix="Copy it there."
        )
    return (name, *_shards(folder, name)) if name.endswith(".index.json") else (name,)


def _shards(folder: Path, index: str) -> tuple[str, ...]:
    table = read_config(folder / index).get("weight_map", {})
    names = list(table.values()) if isinstance(table, dict) else [table]
    if not all(isinstance(name, str) for name in names):
        raise InputError(
            f"{folder.name}/{index} is not an index of weights",
            cause="its weight_map does not say which file holds which tensor",
            fix="Copy the model folder again.",
        )
    shards = tuple(sorted(set(names)))
    refuse_foreign(folder, shards)
    missing = [name for name in shards if not (folder / name).is_file()]
    if missing or not shards:
        raise InputError(
            f"{folder.name} holds only part of its weights",
            cause=f"{index} lists {', '.join(missing[:3]) or 'no files'}{', missing here' if missing else ''}",
            fix="Copy the missing files there.",
        )
    return shards


def _architectures(config: dict[str, Any]) -> list[str]:
    names = config.get("architectures") or []
    return [str(name) for name in names] if isinstance(names, list) else [str(names)]


def _class_name(found: Architecture | None, config: dict[str, Any]) -> str | None:
    if found is not None:
        return found.name
    return next(iter(_architectures(config)), None)


def _refuse_remote_code(name: str, config: dict[str, Any], choices: SourceChoices) -> None:
    if config.get("auto_map") and not choices.trust_remote_code:
        raise InputError(
            f"{name} wants to run its own Python code",
            cause=f"its {CONFIG} has an auto_map, so the model is not one of transformers' own classes",
            fix="Read that code first; then allow it with `trust_remote_code`.",
        )
