"""Why a model does not run: the file, the graph, the EP; what it is fed is in `_rules_fed`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.answers import _rules_fed
from modelwright.answers._gather import Gathered
from modelwright.answers._log import read_lines
from modelwright.answers._rule import CauseRule, Lab, Shown
from modelwright.answers._types import TriedCure
from modelwright.targets import installed_plugins, parse_target

if TYPE_CHECKING:
    import onnx
else:
    onnx = lazy("onnx")

_OPSETS = {"": (23, 21, 17), "ai.onnx.ml": (5, 3)}
_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")
_TWICE = ("duplicate-node-names",)


def _unreadable(found: Gathered, about: str | None = None) -> Shown | None:
    refused = found.unreadable
    if refused is None or refused.about != about:
        return None
    return Shown((refused.words,), named={"why": refused.words, "fix": refused.fix})


def _spoken(found: Gathered, *ids: str) -> Shown | None:
    """What onnxruntime or the EP said, by the catalogue of error texts."""
    if found.said is None or found.said.id not in ids or found.refused is None:
        return None
    return Shown((found.refused.words,), named={"why": found.said.cause, "fix": found.said.next})


def _flawed(found: Gathered) -> Shown | None:
    shown = _unreadable(found)
    if shown is None:
        return _spoken(found, "graph-invalid", *_TWICE)
    return replace(shown, named={**shown.named, "why": f"the graph contradicts itself: {shown.named['why']}"})


def _own_names(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    if found.said is None or found.said.id not in _TWICE:
        return
    model, taken = onnx.load(found.complaint.model), set[str]()
    for place, node in enumerate(model.graph.node):
        node.name = f"{node.name}/{place}" if node.name in taken else node.name
        taken.add(node.name)
    path = lab.file("own-names.onnx")
    onnx.save(model, path)
    tried = replace(found.complaint, model=path)
    yield lab.runs("Give every node a name of its own", "the names of nodes in the file", "it does not open", tried)


def _custom(found: Gathered) -> Shown | None:
    shown = _spoken(found, "operator-unknown")
    if shown is None or found.model is None:
        return None
    strange = [op for op in found.model.ops if op.domain not in _DOMAINS]
    names = tuple(f"{op.domain}:{op.op_type}" for op in strange)
    return replace(shown, where=names, named={**shown.named, "ops": ", ".join(names)}) if names else None


def _restamped(found: Gathered, lab: Lab, *, ir: int | None = None, **opsets: int) -> Path:
    """With another IR version, or another version of a domain ("" is ONNX's own)."""
    model = onnx.load(found.complaint.model)
    for item in model.opset_import:
        item.version = opsets.get(_domain(item.domain), item.version)
    model.ir_version = ir or model.ir_version
    path = lab.file(f"stamped-{ir or '-'.join(map(str, opsets.values()))}.onnx")
    onnx.save(model, path)
    return path


def _domain(written: str) -> str:
    return "" if written == "ai.onnx" else written


def _older_opset(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    """Says an opset that is known. No operator is converted: one that changed since would compute otherwise."""
    assert found.model is not None
    newer = [(known, item.version) for item in found.model.opsets if (known := _domain(item.domain)) in _OPSETS]
    domain = max(newer, key=lambda item: item[1] - _OPSETS[item[0]][0])[0] if newer else ""
    for opset in _OPSETS[domain]:
        tried = replace(found.complaint, model=_restamped(found, lab, **{domain: opset}))
        said = f"{domain or 'opset'} {opset}"
        cure = lab.runs(f"Say {said}", f"opset_import: {said} in the file", "it does not open", tried)
        yield cure
        if cure.held:
            return


def _older_ir(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    most = int(found.said.cause.rsplit(" ", 1)[-1]) if found.said is not None else 10
    tried = replace(found.complaint, model=_restamped(found, lab, ir=most))
    yield lab.runs(f"Say IR version {most}", f"ir_version {most} in the file", "it does not open", tried)


def _in_graph(found: Gathered) -> Shown | None:
    shown = _spoken(found, "reshape", "shapes-do-not-fit")
    return shown if shown is not None and (found.complaint.inputs.dims or found.complaint.inputs.batch) else None


def _sizes_of_export(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    inputs = replace(found.complaint.inputs, dims=dict.fromkeys(found.complaint.inputs.dims, 1), batch=None)
    tried = replace(found.complaint, inputs=inputs)
    said = "`dims` " + ", ".join(f"{name}=1" for name in found.complaint.inputs.dims)
    yield lab.runs("Feed a size of 1", said, "it fails while it runs", tried)


def _ep_absent(found: Gathered, *, installed: bool) -> Shown | None:
    placed = None if found.analysis is None else found.analysis.placement
    if placed is None or placed.status != "unknown":
        return None
    target = found.complaint.target
    there = any(plugin.provider is not None and plugin.provider.key == target.ep for plugin in installed_plugins())
    if there is not installed:
        return None
    return Shown((str(placed.reason),), (), {"target": str(target), "why": str(placed.reason), "fix": str(placed.fix)})


def _on_the_cpu(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    session = replace(found.complaint.session, provider_options={})
    tried = replace(found.complaint, target=parse_target("cpu"), session=session)
    yield lab.runs("Another EP: the CPU", "`target` cpu", f"{found.complaint.target} cannot be used here", tried)


def _broken(found: Gathered) -> Shown | None:
    """It could not even be loaded, whatever the model: by the catalogue of error texts."""
    placed = None if found.analysis is None else found.analysis.placement
    words = "" if placed is None or placed.status == "placed" else str(placed.reason)
    if found.complaint.target.ep == "cpu" or not any(
        "ep-broken" in cause.rules for cause in read_lines([words]).causes
    ):
        return None
    return Shown((words,), (), {"target": str(found.complaint.target), "why": words})


def _context_elsewhere(found: Gathered) -> Shown | None:
    contexts = () if found.model is None else found.model.ep_context
    sources = {node.source for node in contexts if node.source}
    provider = found.complaint.target.provider
    if not sources or any(source in (provider.name, provider.key.upper()) for source in sources):
        return None
    named = {"source": ", ".join(sorted(sources)), "target": str(found.complaint.target)}
    return Shown((f"its EPContext nodes say {named['source']}",), tuple(node.name for node in contexts), named)


def _another_chip(found: Gathered) -> Shown | None:
    chip, soc = found.chip, found.complaint.target.soc
    if chip is None or soc is None or found.complaint.target.assumption is not None:
        return None
    differing = [key for key in ("htp_arch", "soc_model") if key in soc.words and soc.words[key] != chip[key]]
    if not differing:
        return None
    made = ", ".join(f"{key} {chip[key]}" for key in ("htp_arch", "soc_model"))
    wanted = ", ".join(f"{key} {soc.words[key]}" for key in ("htp_arch", "soc_model") if key in soc.words)
    known = next(
        (
            item.title
            for item in found.complaint.target.provider.socs.values()
            if item.words.items() <= {**chip}.items()
        ),
        made,
    )
    return Shown((f"the context says {made}; {soc.title} is {wanted}",), (), {"chip": known, "target": soc.title})


def _crashed(found: Gathered) -> Shown | None:
    refused = found.refused
    if refused is None or not refused.problem.startswith("the process ended"):
        return None
    return Shown((refused.words,), (), {"why": refused.words})


RULES = (
    CauseRule(
        "external-data",
        "fails",
        "{why}",
        lambda found: _unreadable(found, "external-data"),
        remedy="{fix}",
    ),
    CauseRule(
        "file-damaged",
        "fails",
        "{why}",
        lambda found: _unreadable(found, "file-damaged"),
        remedy="{fix}",
    ),
    CauseRule(
        "graph-flaw",
        "fails",
        "{why}",
        _flawed,
        _own_names,
        remedy="{fix}",
    ),
    CauseRule(
        "context-of-another-ep",
        "fails",
        "it was compiled for {source} and is asked to run on {target}",
        _context_elsewhere,
        remedy="use the EP that it was compiled for, or the model from before the compile stage",
    ),
    CauseRule(
        "context-of-another-chip",
        "fails",
        "it was compiled for {chip}, and {target} is another chip",
        _another_chip,
        remedy="compile it for this chip: the model from before the compile stage has to be there",
    ),
    CauseRule(
        "opset-too-new", "fails", "{why}", lambda found: _spoken(found, "opset-too-new"), _older_opset, remedy="{fix}"
    ),
    CauseRule("ir-version", "fails", "{why}", lambda found: _spoken(found, "ir-version"), _older_ir, remedy="{fix}"),
    CauseRule(
        "custom-operator",
        "fails",
        "{ops} are operators of somebody's own library, and it is not loaded",
        _custom,
        remedy="give onnxruntime the library with the operators, or export without them",
    ),
    CauseRule("kernel-missing", "fails", "{why}", lambda found: _spoken(found, "kernel-missing"), remedy="{fix}"),
    CauseRule("types-do-not-fit", "fails", "{why}", lambda found: _spoken(found, "types-do-not-fit"), remedy="{fix}"),
    CauseRule(
        "ep-broken",
        "fails",
        "{target} itself does not work here, whatever the model: {why}",
        _broken,
        _on_the_cpu,
        remedy="install the EP again in the version that this onnxruntime takes; `wright sys` asks it alone",
    ),
    CauseRule(
        "ep-missing",
        "fails",
        "{target} cannot be used on this machine: {why}",
        lambda found: _ep_absent(found, installed=False),
        _on_the_cpu,
        remedy="{fix}",
    ),
    CauseRule(
        "ep-no-device",
        "fails",
        "{target} is installed and finds no device here: {why}",
        lambda found: _ep_absent(found, installed=True),
        _on_the_cpu,
        remedy="{fix}",
    ),
    *_rules_fed.RULES,
    CauseRule(
        "size-written-into-graph",
        "fails",
        "{why}",
        _in_graph,
        _sizes_of_export,
        cites=("https://github.com/microsoft/onnxruntime/issues/10463",),
        remedy="{fix}",
    ),
    CauseRule(
        "crash",
        "fails",
        "the process that ran it died: {why}",
        _crashed,
        remedy="cut the model to the smallest part that does, with `reduce`, and report that",
    ),
)
