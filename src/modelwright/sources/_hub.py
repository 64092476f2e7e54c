"""Models on the Hugging Face Hub: the configuration first, the weights only when they are needed."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from modelwright._lazy import lazy
from modelwright.errors import InputError, StoreError, WrightError
from modelwright.sources._hf import (
    CONFIG,
    SMALL_FILES,
    WEIGHT_INDEXES,
    WEIGHTS,
    Choices,
    HfSource,
    describe,
    read_config,
    weight_files,
)

if TYPE_CHECKING:
    import huggingface_hub
    from huggingface_hub import errors as hub_errors
else:
    huggingface_hub = lazy("huggingface_hub")
    hub_errors = lazy("huggingface_hub.errors")

_SECONDS = 5
T = TypeVar("T")


def hub_source(repo: str, choices: Choices) -> HfSource:
    """Resolve an id: one small download (or the local cache), which also names the commit."""
    _require_library(repo)
    config_path = Path(_ask(repo, lambda: _config(repo, choices.revision)))
    source = describe(repo, read_config(config_path), choices)
    return dataclasses.replace(
        source,
        repo=repo,
        commit=config_path.parent.name,
        random_weights=choices.random_weights,
        trust_remote_code=choices.trust_remote_code,
    )


def fetch(source: HfSource) -> HfSource:
    """The same source with its files in a local folder. Local sources are returned as they are."""
    repo = source.repo
    if repo is None:
        return source
    _require_library(repo)
    wanted = [*SMALL_FILES, *(["*.py"] if source.trust_remote_code else [])]
    folder = _ask(repo, lambda: _snapshot(repo, source.commit, wanted))
    if not source.random_weights:
        # safetensors when there are any, so that no weights are downloaded twice
        for whole, index in zip(WEIGHTS, WEIGHT_INDEXES, strict=True):
            patterns = [whole, index, f"{Path(whole).stem}-*-of-*{Path(whole).suffix}"]
            _ask(repo, lambda patterns=patterns: _snapshot(repo, source.commit, patterns))  # type: ignore[misc]
            if (folder / whole).is_file() or (folder / index).is_file():
                break
    weights = () if source.random_weights else weight_files(folder)
    small = tuple(name for name in SMALL_FILES if (folder / name).is_file())
    return dataclasses.replace(source, folder=str(folder), files=(*small, *weights))


def _config(repo: str, revision: str | None) -> str:
    """The path of the configuration. The Hub is asked once, without the retries its client would make."""
    url = huggingface_hub.hf_hub_url(repo, CONFIG, revision=revision)
    try:
        commit = huggingface_hub.get_hf_file_metadata(url, timeout=_SECONDS).commit_hash
    except Exception as error:
        if not _unreachable(error):
            raise
        cached = huggingface_hub.try_to_load_from_cache(repo, CONFIG, revision=revision)
        if not isinstance(cached, str):
            raise
        return cached
    return str(huggingface_hub.hf_hub_download(repo, CONFIG, revision=commit, etag_timeout=_SECONDS))


def _snapshot(repo: str, commit: str | None, patterns: list[str]) -> Path:
    found = huggingface_hub.snapshot_download(repo, revision=commit, allow_patterns=patterns, etag_timeout=_SECONDS)
    return Path(str(found))


def _require_library(repo: str) -> None:
    if importlib.util.find_spec("huggingface_hub") is None:
        raise InputError(
            f"{repo} is neither a file nor a folder here",
            cause="taken as the id of a model on the Hub, it needs the huggingface_hub package, which is not installed",
            fix="Check the path, or: pip install 'modelwright[hf]'",
        )


def _ask(repo: str, call: Callable[[], T]) -> T:
    try:
        return call()
    except Exception as error:
        raise _explain(repo, error) from error


def _explain(repo: str, error: Exception) -> WrightError | Exception:
    if isinstance(error, hub_errors.GatedRepoError):
        return InputError(
            f"{repo} is gated",
            cause="its owner gives access on request",
            fix="Ask for access on its page, then log in: hf auth login",
        )
    if isinstance(error, hub_errors.RevisionNotFoundError):
        return InputError(f"{repo} has no such revision", cause=_line(error), fix="Check --revision.")
    if isinstance(error, hub_errors.RepositoryNotFoundError | hub_errors.HFValidationError):
        return InputError(
            f"{repo} was not found",
            cause="it is no file or folder here, and the Hub has no such public model",
            fix="Check the spelling; for a private model log in: hf auth login",
        )
    if _unreachable(error):
        return _offline(repo, error)
    if isinstance(error, hub_errors.EntryNotFoundError):
        return InputError(
            f"{repo} has no {CONFIG}",
            cause="it is not a model in the transformers layout",
            fix="Download the .onnx file you need and point at it.",
        )
    return error


def _unreachable(error: Exception) -> bool:
    """No answer, or none that says anything about the model."""
    known = (
        hub_errors.RepositoryNotFoundError,
        hub_errors.RevisionNotFoundError,
        hub_errors.RemoteEntryNotFoundError,
    )
    if isinstance(error, known):
        return False
    offline = (hub_errors.LocalEntryNotFoundError, hub_errors.OfflineModeIsEnabled, hub_errors.HfHubHTTPError)
    return isinstance(error, (*offline, OSError)) or type(error).__module__.startswith("httpx")


def _offline(repo: str, error: Exception) -> StoreError:
    offline = huggingface_hub.constants.HF_HUB_OFFLINE
    why = "offline mode is on (HF_HUB_OFFLINE)" if offline else f"the Hub did not answer ({_line(error)})"
    return StoreError(
        f"{repo} cannot be fetched",
        cause=f"it is no file or folder here, {why}, and it is not in the local cache",
        fix="Connect and try again, or point at a local folder with config.json and the weights.",
    )


def _line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
