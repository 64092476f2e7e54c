"""The smallest change that makes a quantized model good enough."""

from modelwright.repairs._search import (
    cannot_saturate,
    fix,
)
from modelwright.repairs._types import (
    FixInterrupted,
    FixOptions,
    FixResult,
    FixRow,
    FixScore,
    Promotion,
    Repaired,
)

__all__ = [
    "FixInterrupted",
    "FixOptions",
    "FixResult",
    "FixRow",
    "FixScore",
    "Promotion",
    "Repaired",
    "cannot_saturate",
    "fix",
]
