"""What is known about changes of models on targets: findings with their evidence, and rules that use them."""

from modelwright.knowledge._base import KbEvent, KnowledgeBase, read_finding, shipped_findings
from modelwright.knowledge._facts import graph_facts, operators_of
from modelwright.knowledge._family import FAMILIES, family_of
from modelwright.knowledge._learn import learn
from modelwright.knowledge._lint import LintProblem, LintReport, lint, rejudged
from modelwright.knowledge._observe import Evidence
from modelwright.knowledge._patterns import PATTERNS, Pattern, pattern_counts, patterns_for
from modelwright.knowledge._promote import CheckItem, FindingPromotion, Promoted, promote
from modelwright.knowledge._rules import (
    AUDIT,
    Advice,
    Did,
    GraphFacts,
    Insight,
    KbExplanation,
    Rule,
    advise,
    harmful,
    read_rules,
    rules,
    shipped_rules,
)
from modelwright.knowledge._specimens import SPECIMENS, make_specimen
from modelwright.knowledge._standing import reaches, rung_of
from modelwright.knowledge._types import (
    RUNGS,
    ExperimentResult,
    ExperimentSide,
    ExperimentUnit,
    KbFinding,
    Mechanism,
    Observation,
    Published,
    Scope,
    Standing,
    Verified,
)
from modelwright.knowledge._words import (
    AXES,
    ENTRY,
    OPTION,
    OPTION_AXIS,
    Change,
    is_own,
    read_change,
    require_changes,
)

__all__ = [
    "AUDIT",
    "AXES",
    "ENTRY",
    "FAMILIES",
    "OPTION",
    "OPTION_AXIS",
    "PATTERNS",
    "RUNGS",
    "SPECIMENS",
    "Advice",
    "Change",
    "CheckItem",
    "Did",
    "Evidence",
    "ExperimentResult",
    "ExperimentSide",
    "ExperimentUnit",
    "FindingPromotion",
    "GraphFacts",
    "Insight",
    "KbEvent",
    "KbExplanation",
    "KbFinding",
    "KnowledgeBase",
    "LintProblem",
    "LintReport",
    "Mechanism",
    "Observation",
    "Pattern",
    "Promoted",
    "Published",
    "Rule",
    "Scope",
    "Standing",
    "Verified",
    "advise",
    "family_of",
    "graph_facts",
    "harmful",
    "is_own",
    "learn",
    "lint",
    "make_specimen",
    "operators_of",
    "pattern_counts",
    "patterns_for",
    "promote",
    "reaches",
    "read_change",
    "read_finding",
    "read_rules",
    "rejudged",
    "require_changes",
    "rules",
    "rung_of",
    "shipped_findings",
    "shipped_rules",
]
