"""What the user typed, for the record of what came of it. Standard library only, and little of it."""

from __future__ import annotations

from contextvars import ContextVar

spoken: ContextVar[tuple[str, ...]] = ContextVar("spoken", default=())
"""The words of the command line that runs; empty in a program that uses the library."""
