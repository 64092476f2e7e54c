"""Silence for libraries that log advice to the root logger."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """The quantizers advise steps that were done before, and one of them configures the root logger on import.

    Nothing they say is needed: what matters is measured on their result.
    """
    root = logging.getLogger()
    before, handlers = root.level, list(root.handlers)
    # logging adds a handler to a root logger that has none before it looks at the level.
    root.addHandler(logging.NullHandler())
    root.setLevel(logging.ERROR)
    try:
        yield
    finally:
        root.setLevel(before)
        root.handlers[:] = handlers
