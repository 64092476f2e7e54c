"""Data sets by name, through the package `datasets`. Only in a child."""

from __future__ import annotations

from typing import Any

from modelwright._lazy import lazy
from modelwright.data._rows import LABEL, Row, Rows, by_number
from modelwright.errors import InputError, WrightError
from modelwright.vocabulary import Data

datasets = lazy("datasets")
huggingface_hub = lazy("huggingface_hub")

_HUB_S = 10.0
_SPLIT = "validation"


def hub_rows(data: Data) -> Rows:
    """`name`, `name:config`, `name@split` or `name:config@split`; the split is `validation` unless it is said."""
    text = data.source
    name, _, split = text.partition("@")
    name, _, config = name.partition(":")
    try:
        # Looked up before the Hub is asked: without the package there is nothing to ask with.
        load_dataset = datasets.load_dataset
        answered = _hub_answers(name)
        if not answered:
            # Its client would try again for half a minute; what was loaded before is found offline too.
            datasets.config.HF_HUB_OFFLINE = True
        table = load_dataset(name, config or None, split=data.split or split or _SPLIT)
    except ModuleNotFoundError as error:
        if error.name != "datasets":
            raise
        raise InputError(
            f"{text} does not exist",
            cause="it is no path here, and without the package datasets it cannot be looked up by name",
            fix="Check the path, or pip install 'modelwright[datasets]' for data sets by name.",
        ) from error
    except WrightError:
        raise
    # The library raises its own and its network's errors, in many families.
    except Exception as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise InputError(
            f"{text} cannot be loaded",
            cause=why if answered else f"it is no path here, and the Hub did not answer ({why})",
            fix="Check the path or the name of the dataset, its config and its split (name:config@split).",
        ) from error
    names = getattr(table.features.get(LABEL), "names", None) or ()
    return by_number("datasets", len(table), lambda index: _row(table[index]), names)


def _row(found: dict[str, Any]) -> Row:
    """A sound comes as an array beside its rate."""
    row = dict(found)
    audio = row.get("audio")
    if isinstance(audio, dict) and "array" in audio:
        row |= {"audio": audio["array"], "sampling_rate": audio.get("sampling_rate")}
    return row


def _hub_answers(name: str) -> bool:
    """Asked once. That there is no such dataset is an answer too."""
    try:
        huggingface_hub.HfApi().dataset_info(name, timeout=_HUB_S)
    except (OSError, huggingface_hub.errors.OfflineModeIsEnabled) as error:
        return isinstance(error, huggingface_hub.errors.HfHubHTTPError)
    except Exception as error:  # noqa: BLE001 - its transport raises its own family of errors
        return not type(error).__module__.startswith("httpx")
    return True
