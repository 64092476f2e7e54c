"""Numbers as people read them."""

from __future__ import annotations


def human_bytes(count: int | None) -> str:
    """`1.5 GiB`; None is `unknown`, never 0."""
    if count is None:
        return "unknown"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def human_count(count: int) -> str:
    """`25.6 M`, `1,234`."""
    if count >= 1_000_000_000:
        return f"{count / 1e9:.2f} G"
    return f"{count / 1e6:.1f} M" if count >= 1_000_000 else f"{count:,}"
