"""What rules may ask about a model, read off the model."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from modelwright.graph import facts, fingerprint, shared
from modelwright.knowledge._family import family_of
from modelwright.knowledge._patterns import pattern_counts
from modelwright.knowledge._rules import GraphFacts
from modelwright.stages.optimize import PassEffect
from modelwright.targets import read_cpu


def graph_facts(model: Path, effects: Iterable[PassEffect] = ()) -> GraphFacts:
    """`effects` are what trying each pass on this model showed."""
    operators = operators_of(model)
    return GraphFacts(
        operators=operators,
        family=family_of(operators),
        adds={one.name: tuple(name for name, count in one.delta if count > 0) for one in effects if one.fired},
        mark=fingerprint(shared(model)),
        cpu=read_cpu().features,
        patterns=pattern_counts(shared(model)),
    )


def operators_of(model: Path) -> dict[str, int]:
    """By name, those outside standard ONNX with their domain."""
    ops = facts(model).ops
    return {op.op_type if op.domain in ("", "ai.onnx") else f"{op.domain}.{op.op_type}": op.count for op in ops}
