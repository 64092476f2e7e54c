"""The store that a verb was given, or the one of this home."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from modelwright.store import Store


@contextlib.contextmanager
def opened(store: Store | None) -> Iterator[Store]:
    """A store that is given stays open for whoever gave it."""
    if store is not None:
        yield store
        return
    with Store() as own:
        yield own
