"""What the Hub has for a task, where it can be reached: names and licences. It shows nothing of how they run."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.parse
import urllib.request

from modelwright._dataclass import dataclass

_SECONDS, _MOST, _LARGEST = 5, 20, 4 << 20
_ENDPOINT = "https://huggingface.co"


@dataclass(frozen=True)
class HubModels:
    """`said` is why there are none, where the Hub could not be asked."""

    models: tuple[tuple[str, str | None], ...]
    said: str | None


def hub_models(task: str) -> HubModels:
    """Ids with their licences, those that are used most first."""
    if os.environ.get("HF_HUB_OFFLINE") in ("1", "true", "ON"):
        return HubModels((), "the Hub was not asked: HF_HUB_OFFLINE is set")
    asked = urllib.parse.urlencode({"pipeline_tag": task, "sort": "downloads", "direction": -1, "limit": _MOST})
    url = f"{os.environ.get('HF_ENDPOINT', _ENDPOINT).rstrip('/')}/api/models?{asked}"
    if not url.startswith(("http://", "https://")):
        return HubModels((), "the Hub was not asked: HF_ENDPOINT is no address")
    try:
        with urllib.request.urlopen(url, timeout=_SECONDS) as answer:
            rows = json.loads(answer.read(_LARGEST))
        return HubModels(tuple((str(row["id"]), _licence(row.get("tags", []))) for row in rows), None)
    except (OSError, ValueError, TypeError, KeyError, urllib.error.URLError) as error:
        why = getattr(error, "reason", None) or error
        return HubModels((), f"the Hub could not be asked: {why}")


def _licence(tags: list[str]) -> str | None:
    return next((tag.partition(":")[2] for tag in tags if str(tag).startswith("license:")), None)
