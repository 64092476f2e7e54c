"""Which transformers onnxruntime says changed the graph, heard in its log: no session is needed to find out."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from modelwright.stages.optimize._table import Pass, find_pass

# graph_transformer.cc: "GraphTransformer ConstantFolding modified: 0 with status: OK"
_LINE = re.compile(r"GraphTransformer (\S+) modified: ([01]) with status")
# Rules have no line of their own, only the transformer that applies them all.
_RULES = re.compile(r"Level\d_RuleBasedTransformer")


def with_idle(log: str, name: str) -> str:
    """As onnxruntime would have said it, had a pass not been left out that had nothing to do. A log that is not
    understood stays so."""
    if not _LINE.search(log):
        return log
    return log + "".join(f"GraphTransformer {word} modified: 0 with status: OK\n" for word in find_pass(name).ort)


def may_have_fired(names: Sequence[str], log: str) -> tuple[str, ...]:
    """The passes that changed the graph, or of which the log does not tell; all of them when it is not understood."""
    lines = _LINE.findall(log)
    if not lines:
        return tuple(names)
    changed = {name for name, modified in lines if modified == "1"}
    mentioned = {name for name, _ in lines}
    rules = any(_RULES.fullmatch(name) for name in changed)
    return tuple(name for name in names if _may(find_pass(name), changed, mentioned, rules=rules))


def only_passes_changed(names: Sequence[str], log: str) -> bool:
    """Whether the log says of everything else that onnxruntime runs that it changed nothing."""
    lines = _LINE.findall(log)
    ours = {name for item in names for name in find_pass(item).ort}
    changed = {name for name, modified in lines if modified == "1" and not _RULES.fullmatch(name)}
    return bool(lines) and changed <= ours


def _may(row: Pass, changed: Collection[str], mentioned: Collection[str], *, rules: bool) -> bool:
    return any(name in changed or (rules and name not in mentioned) for name in row.ort)
