"""Models that write, as several graphs: what the float model writes, and whether an artifact writes the same."""

from modelwright.stages.decode._parts import (
    DECODER_IDS,
    Arrangement,
    Parts,
    PartsModel,
    arranged,
    open_decoder,
    open_parts,
    same_arrays,
)
from modelwright.stages.decode._types import (
    AGREE,
    DECODE,
    AgreeOutcome,
    AgreeParams,
    DecodeOutcome,
    DecodeParams,
    WrittenText,
)
from modelwright.stages.decode._writing import Writing, read_generation, writing_of

__all__ = [
    "AGREE",
    "DECODE",
    "DECODER_IDS",
    "AgreeOutcome",
    "AgreeParams",
    "Arrangement",
    "DecodeOutcome",
    "DecodeParams",
    "Parts",
    "PartsModel",
    "Writing",
    "WrittenText",
    "arranged",
    "open_decoder",
    "open_parts",
    "read_generation",
    "same_arrays",
    "writing_of",
]
