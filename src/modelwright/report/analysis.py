"""The answer of `wright analyze`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.pipeline import Analyses, Analysis, Suggestion
from modelwright.report._tables import Col, fitted
from modelwright.report._units import human_bytes
from modelwright.targets import EpShare, LeftNode, Placement

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")

_NAMES_SHOWN = 4


def render_analyses(found: Analyses, console: rich.console.Console) -> None:
    for analysis in found:
        placed = analysis.placement
        console.print(rich.text.Text.assemble((analysis.target, "bold"), ": ", *_headline(analysis)), soft_wrap=True)
        if placed.facts is not None and placed.facts.assumed is not None:
            console.print(rich.text.Text(f"  chip: {placed.facts.assumed}"), soft_wrap=True)
        if placed.status == "placed":
            _render_placed(placed, console)
        if analysis.part is not None:
            console.print(rich.text.Text(f"  {analysis.part.words}"), soft_wrap=True)
        for suggestion in analysis.suggestions:
            console.print(_offer(suggestion), soft_wrap=True)
        _render_tried(analysis, console)
        console.print()


def headline(analysis: Analysis) -> str:
    """The answer in one sentence."""
    return "".join(part if isinstance(part, str) else part[0] for part in _headline(analysis))


def _headline(analysis: Analysis) -> list[str | tuple[str, str]]:
    placed = analysis.placement
    if placed.status == "unknown":
        return [("unknown", "yellow"), f": {placed.reason}; {placed.fix}"]
    if placed.status == "failed":
        return [("the EP failed on this model", "red"), f": {placed.reason or ''}; {placed.fix}"]
    simulated = " (asked on the simulator)" if placed.facts and placed.facts.simulated else ""
    if analysis.supported:
        border = len(placed.left)
        rest = f", {border} at the border stay on the CPU by its design" if border else ""
        count = f": {placed.running - border} of {placed.running}{rest}{simulated}"
        return [("takes every node it should", "green"), count]
    return [(f"leaves {len(placed.unsupported)} of {placed.running} nodes to another EP", "red"), simulated]


def _render_placed(placed: Placement, console: rich.console.Console) -> None:
    columns = [Col("EP"), Col("nodes", "number"), Col("partitions", "number"), Col("operators", "text")]
    console.print(fitted(columns, [_share(share) for share in placed.eps], console.width))
    if placed.copies:
        size = placed.copied_bytes
        shown = human_bytes(size) if size is not None else "an unknown number of bytes"
        console.print(f"  {len(placed.copies)} tensors cross between EPs on every run, {shown}")
    for op_type, nodes in placed.left_by_type.items():
        console.print(f"  left: {_left(op_type, nodes)}", soft_wrap=True)


def _render_tried(analysis: Analysis, console: rich.console.Console) -> None:
    """What did not help is said too, so that nobody tries it again."""
    offered = {(item.title, item.how) for item in analysis.suggestions}
    rest = [item for item in analysis.tried if (item.title, item.how) not in offered]
    if rest and not offered:
        console.print(f"  {len(rest)} changes were tried; none puts more nodes there:")
    for item in rest:
        words = f"  tried {titled(item.title, item.how)}: {item.result}"
        console.print(rich.text.Text(words, style="dim"), soft_wrap=True)


def titled(title: str, how: str) -> str:
    """What a build does by itself has nothing to type."""
    return f"{title} ({how})" if how else title


def _share(share: EpShare) -> tuple[str, ...]:
    ops = ", ".join(f"{op.op_type} {op.count}" for op in share.op_types[:6])
    more = ", …" if len(share.op_types) > 6 else ""
    return share.ep.removesuffix("ExecutionProvider"), str(share.nodes), str(share.partitions), ops + more


def _left(op_type: str, nodes: Sequence[LeftNode]) -> str:
    names = ", ".join(node.name or "(unnamed)" for node in nodes[:_NAMES_SHOWN])
    more = f" and {len(nodes) - _NAMES_SHOWN} more" if len(nodes) > _NAMES_SHOWN else ""
    why = next((node.why.reason for node in nodes if node.why is not None), None) or "the EP does not say why"
    return f"{len(nodes)} × {op_type} ({names}{more}): {why}"


def _offer(suggestion: Suggestion) -> rich.text.Text:
    return rich.text.Text.assemble(
        ("  try", "cyan"),
        f" {titled(suggestion.title, suggestion.how)}: nodes left {suggestion.left_before} → {suggestion.left_after} "
        f"of {suggestion.nodes_after}, partitions {suggestion.partitions_before} → {suggestion.partitions_after}",
    )
