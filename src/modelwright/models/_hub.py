"""Models on the Hugging Face Hub: the configuration first, the weights only when they are needed."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from modelwright._belongs import hub_blob
from modelwright._lazy import lazy
from modelwright.errors import InputError, StoreError, WrightError
from modelwright.models._digest import file_digest
from modelwright.models._hf import (
    CONFIG,
    NAMED_WEIGHTS,
    SMALL_FILES,
    WEIGHT_INDEXES,
    WEIGHTS,
    HfSource,
    SourceChoices,
    describe,
    read_config,
    refuse_foreign,
    weight_files,
)

if TYPE_CHECKING:
    import huggingface_hub
    from huggingface_hub import errors as hub_errors
else:
    huggingface_hub = lazy("huggingface_hub")
    hub_errors = lazy("huggingface_hub.errors")

_SECONDS = 5
_SHA256_LENGTH = 64
T = TypeVar("T")


def hub_source(repo: str, choices: SourceChoices) -> HfSource:
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
        for patterns in _weight_patterns(folder):
            _ask(repo, lambda patterns=patterns: _snapshot(repo, source.commit, patterns))  # type: ignore[misc]
            if any((folder / name).is_file() for name in patterns):
                break
    refuse_foreign(folder)
    weights = () if source.random_weights else weight_files(folder)
    small = tuple(name for name in SMALL_FILES if (folder / name).is_file())
    code = tuple(sorted(path.name for path in folder.glob("*.py"))) if source.trust_remote_code else ()
    files = (*small, *weights, *code)
    proven = [_proven(folder / name) for name in files]
    return dataclasses.replace(source, folder=str(folder), files=files, unproven=not all(proven))


def _weight_patterns(folder: Path) -> list[list[str]]:
    named = read_config(folder / CONFIG).get(NAMED_WEIGHTS)
    pairs = [(str(named), str(named))] if named else zip(WEIGHTS, WEIGHT_INDEXES, strict=True)
    return [[whole, index, f"{whole.split('.')[0]}-*-of-*"] for whole, index in pairs]


def _proven(path: Path) -> bool:
    """Whether a cached file was checked against the hash it is filed under. Where links cannot be made, the cache
    holds plain files, and nothing says what they should be."""
    blob = hub_blob(path)
    if blob is None:
        return False
    found = file_digest(blob) if len(blob.name) == _SHA256_LENGTH else _git_hash(blob)
    if found != blob.name:
        raise InputError(
            f"{path.name} in the Hub's cache is not what was downloaded",
            cause=f"its content is {found[:12]}…, and it is filed as {blob.name[:12]}…",
            fix=f"Delete it and try again, so that it is downloaded again: {blob}",
        )
    return True


def _git_hash(path: Path) -> str:
    """Small files are filed under the hash that git gives them."""
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


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
        return InputError(f"{repo} has no such revision", cause=_line(error), fix="Check `revision`.")
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
