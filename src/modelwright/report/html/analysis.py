"""The page of `wright analyze`: for each target the graph by EP, what is left and why, what crosses, what helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath

from modelwright.pipeline import Analysis
from modelwright.report._units import human_bytes
from modelwright.report.analysis import headline
from modelwright.report.html._blocks import Block, Blocks, collapse
from modelwright.report.html._kit import (
    Box,
    Cell,
    Column,
    Html,
    LegendKey,
    Row,
    Shade,
    colour,
    graph,
    join,
    keys,
    number,
    paragraph,
    table,
)
from modelwright.report.html._page import NextStep, Note, Page, Section
from modelwright.report.html._words import command
from modelwright.targets import LeftNode, PlacedNode, Placement

_SILENT = "the EP does not say why"
_LONGEST, _OPS = 44, 3


def analysis_page(found: Sequence[Analysis]) -> Page:
    several = len(found) > 1
    words = [f"{analysis.target}: {headline(analysis)}" if several else headline(analysis) for analysis in found]
    answers = {analysis.supported for analysis in found}
    tone: Shade = "bad" if False in answers else "fair" if None in answers else "good"
    names = ", ".join(analysis.target for analysis in found)
    return Page(
        kind="which nodes each target takes",
        title=f"{PurePath(found[0].model).name} on {names}",
        verdict=("; ".join(words), tone),
        facts=tuple(fact for analysis in found for fact in _facts(analysis, f" {analysis.target}" if several else "")),
        notes=tuple(Note(words) for analysis in found for words in _notes(analysis)),
        sections=tuple(part for analysis in found for part in _sections(analysis, analysis.target if several else "")),
        next_steps=tuple(step for analysis in found for step in _steps(analysis)),
    )


def _facts(analysis: Analysis, of: str) -> list[tuple[str, str]]:
    placed = analysis.placement
    if placed.status != "placed":
        return []
    facts = placed.facts
    where = "the simulator" if facts and facts.simulated else "a virtual device" if placed.virtual else "this machine"
    shares = ", ".join(f"{_short(share.ep)} {share.nodes} in {share.partitions}" for share in placed.eps)
    return [(f"nodes and partitions{of}", shares), (f"asked{of}", f"the EP's own partitioner, on {where}")]


def _notes(analysis: Analysis) -> list[str]:
    placed = analysis.placement
    found = [] if analysis.part is None else [f"{analysis.target}: {analysis.part.words}"]
    if placed.copies:
        size = placed.copied_bytes
        shown = human_bytes(size) if size is not None else "an unknown number of bytes"
        found.append(f"{analysis.target}: {len(placed.copies)} tensors cross between EPs on every run, {shown}")
    return found


def _sections(analysis: Analysis, of: str) -> list[Section]:
    placed = analysis.placement
    if placed.status != "placed":
        return []
    suffix = f", {of}" if of else ""
    sections = [_left(placed, suffix)] if placed.left else []
    sections += [_tried(analysis, suffix)] if analysis.tried else []
    sections += [_graph(placed, suffix)] if placed.graph else []
    sections += [_copies(placed, suffix)] if placed.copies else []
    return sections


def _left(placed: Placement, suffix: str) -> Section:
    groups: Counter[tuple[str, str]] = Counter((node.op_type, _why(node)) for node in placed.left)
    names: dict[tuple[str, str], str] = {}
    for node in placed.left:
        names.setdefault((node.op_type, _why(node)), node.name)
    rows = [
        Row((number(count, 0), Cell(op_type), Cell(why), Cell(names[op_type, why])))
        for (op_type, why), count in groups.most_common()
    ]
    columns = [Column("nodes", True), Column("operator"), Column("why", long=True), Column("for example", long=True)]
    return Section(
        f"Left to another EP{suffix}", table(columns, rows, by=0), f"{len(placed.left)} of {placed.running} nodes"
    )


def _tried(analysis: Analysis, suffix: str) -> Section:
    if not analysis.suggestions:
        words = "; ".join(f"{item.title}: {item.result}" for item in analysis.tried)
        return Section(f"What helps{suffix}", paragraph(f"Tried, and none puts more nodes there: {words}."))
    columns = [Column("change", long=True), Column("how")]
    columns += [Column(title, True) for title in ("left before", "left after", "pieces before", "pieces after")]
    rows = [
        Row(
            (
                Cell(item.title),
                Cell(item.how),
                *(number(count, 0) for count in (item.left_before, item.left_after)),
                *(number(count, 0) for count in (item.partitions_before, item.partitions_after)),
            )
        )
        for item in analysis.suggestions
    ]
    hint = f"{len(analysis.tried)} changes were tried, and the placement measured"
    return Section(f"What helps{suffix}", table(columns, rows, by=3, down=False), hint)


def _graph(placed: Placement, suffix: str) -> Section:
    why = _reasons(placed)
    view = collapse(placed.graph, frozenset(place for place, node in enumerate(placed.graph) if _key(node) in why))
    tones = _tones(placed)
    boxes = [_box(block, placed.graph, tones, why) for block in view.blocks]
    legend = keys((*(LegendKey(_short(ep), tone) for ep, tone in tones.items()), *_other_keys(placed)))
    whole = all(len(block.nodes) == 1 for block in view.blocks)
    shown = "every node" if whole else f"{placed.nodes} nodes in {len(boxes)} boxes"
    hint = f"{shown}; dashed: not where it should run; click a box to see its nodes below"
    return Section(
        f"The graph by EP{suffix}", join((legend, graph(boxes, view.arrows), _nodes(placed, view, why))), hint
    )


def _tones(placed: Placement) -> dict[str, str]:
    """The first colour is for the EP that was asked, also where it takes nothing."""
    others = {node.ep for node in placed.left}
    asked = [share.ep for share in placed.eps if share.ep not in others]
    rest = [share.ep for share in placed.eps if share.ep in others]
    return {ep: colour(place) for place, ep in enumerate(asked)} | {
        ep: colour(place) for place, ep in enumerate(rest, max(1, len(asked)))
    }


def _other_keys(placed: Placement) -> list[LegendKey]:
    gone = any(node.ep is None and node.op_type != "Constant" for node in placed.graph)
    return [LegendKey("gone after loading", colour(99))] if gone else []


def _key(node: PlacedNode | LeftNode) -> tuple[str, str, str | None]:
    return node.name, node.op_type, node.ep


def _reasons(placed: Placement) -> dict[tuple[str, str, str | None], str]:
    return {_key(node): _why(node) for node in placed.left}


def _why(node: LeftNode) -> str:
    return node.why.reason if node.why is not None else _SILENT


def _box(
    block: Block, nodes: Sequence[PlacedNode], tones: dict[str, str], why: dict[tuple[str, str, str | None], str]
) -> Box:
    inside = [nodes[place] for place in block.nodes]
    eps = Counter(node.ep for node in inside)
    tone = tones.get(eps.most_common(1)[0][0] or "", colour(99))
    reasons = Counter(why[_key(node)] for node in inside if _key(node) in why)
    said = "; ".join(f"{reason}" for reason, _ in reasons.most_common(3))
    ops = Counter(node.op_type for node in inside)
    listed = ", ".join(f"{op} {count}" for op, count in ops.most_common(_OPS)) + (", …" if len(ops) > _OPS else "")
    where = ", ".join(f"{_short(ep) if ep else 'gone after loading'} {count}" for ep, count in eps.most_common())
    if len(inside) == 1:
        title, sub, hint = inside[0].op_type, inside[0].name, f"{inside[0].name} on {where.rpartition(' ')[0]}"
    else:
        title = _tail(block.scope, 30) if block.scope else ", ".join(op for op, _ in ops.most_common(2))
        sub, hint = (
            f"{len(inside)} nodes: {listed}",
            f"{block.scope or title}: {len(inside)} nodes on {where}; {listed}",
        )
    if said:
        sub, hint = said, f"{hint}. Left: {said}"
        title = f"{title} {_tail(inside[0].name, 24)}" if len(inside) == 1 else f"{title}, {len(inside)} nodes"
    return Box(_head(title), _tail(sub, _LONGEST) if sub == inside[0].name else _head(sub), hint, tone, left=bool(said))


def _tail(words: str, most: int) -> str:
    """Names differ at their end."""
    return words if len(words) <= most else f"…{words[1 - most :]}"


def _head(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"


def _nodes(placed: Placement, view: Blocks, why: dict[tuple[str, str, str | None], str]) -> Html:
    block_of = {place: number for number, block in enumerate(view.blocks) for place in block.nodes}
    places = sorted(block_of, key=lambda place: (_key(placed.graph[place]) not in why, place))
    rows = []
    for place in places:
        node = placed.graph[place]
        reason = why.get(_key(node), "")
        cells = Cell(node.name), Cell(node.op_type), Cell(_short(node.ep or "gone after loading")), Cell(reason)
        rows.append(Row(cells, block_of[place], lit=bool(reason)))
    columns = [Column("node", long=True), Column("operator"), Column("EP"), Column("why it is left", long=True)]
    return join((paragraph(""), table(columns, rows, find="filter by node, operator, EP or reason")))


def _copies(placed: Placement, suffix: str) -> Section:
    columns = [Column("tensor", long=True), Column("from"), Column("to"), Column("bytes", True)]
    ranked = sorted(placed.copies, key=lambda copy: -(copy.size_bytes or 0))
    rows = [
        Row((Cell(copy.tensor), Cell(_short(copy.source_ep)), Cell(_short(copy.reader_ep)), number(copy.size_bytes, 0)))
        for copy in ranked
    ]
    return Section(f"What crosses between EPs{suffix}", table(columns, rows, by=3), "on every run")


def _steps(analysis: Analysis) -> list[NextStep]:
    model, target = analysis.model, analysis.target
    if analysis.supported is None:
        return [NextStep(f"See what {target} needs on this machine.", "wright sys")]
    if analysis.suggestions:
        best = analysis.suggestions[0]
        words = f"{best.title}: {best.left_before} nodes left become {best.left_after}."
        return [NextStep(words, f"{command('build', model, '--target', target)} {best.how}".rstrip())]
    return [NextStep("Build it for this target.", command("build", model, "--target", target, "-o", "built"))]


def _short(ep: str) -> str:
    return ep.removesuffix("ExecutionProvider")
