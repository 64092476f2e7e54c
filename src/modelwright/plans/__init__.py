"""Running stages through the store."""

from modelwright.plans._stage import (
    MODEL,
    ModelInput,
    StageCall,
    StageResult,
    installed,
    model_paths,
    peek_stage,
    run_stage,
)

__all__ = [
    "MODEL",
    "ModelInput",
    "StageCall",
    "StageResult",
    "installed",
    "model_paths",
    "peek_stage",
    "run_stage",
]
