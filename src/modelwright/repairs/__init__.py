"""The smallest change that makes a quantized model good enough."""

from modelwright.repairs._search import (
    fix,
    keeps_to_7_bits,
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
    "fix",
    "keeps_to_7_bits",
]
