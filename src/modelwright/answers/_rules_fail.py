"""Why a model does not run: the file, the graph, what it is fed, the EP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.answers._gather import Complaint, Gathered
from modelwright.answers._log import read_lines
from modelwright.answers._rule import CauseRule, Lab, Shown
from modelwright.answers._types import TriedCure
from modelwright.graph import ValueSpec
from modelwright.targets import installed_plugins, parse_target

if TYPE_CHECKING:
    import numpy as np
    import onnx
else:
    np = lazy("numpy")
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


def _wants(found: Gathered) -> dict[str, ValueSpec]:
    return {} if found.model is None else {value.name: value for value in found.model.inputs}


def _fed(found: Gathered) -> bool:
    return found.refused is not None and found.arrays is not None and found.said is None


def _missing(found: Gathered) -> Shown | None:
    if not _fed(found) or found.arrays is None:
        return None
    absent = [name for name in _wants(found) if name not in found.arrays]
    if not absent:
        return None
    has = ", ".join(found.arrays) or "nothing"
    return Shown((f"the data holds {has}",), tuple(absent), {"input": ", ".join(absent), "has": has})


def _renamed(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    """Where one array is over and one input is missing, they may be meant for each other."""
    absent = [name for name in _wants(found) if name not in (found.arrays or {})]
    spare = [name for name in found.arrays or {} if name not in _wants(found)]
    if len(absent) == len(spare) == 1:
        yield from _with_arrays(found, lab, f"Call {spare[0]} {absent[0]}", {spare[0]: (absent[0], None, None)})


def _misshapen(found: Gathered) -> list[tuple[str, tuple[int, ...], tuple[int | str | None, ...]]]:
    """Inputs whose rows have other sizes than the model declares behind the batch."""
    wrong = []
    for name, value in _wants(found).items():
        row, shape = (found.arrays or {}).get(name), tuple(value.shape or ())
        if row is not None and not any(_fits(row, shape[cut:]) for cut in (0, 1)):
            wrong.append((name, row, shape))
    return wrong


def _fits(row: tuple[int, ...], shape: tuple[int | str | None, ...]) -> bool:
    return len(row) == len(shape) and all(
        not isinstance(size, int) or size == has for has, size in zip(row, shape, strict=True)
    )


def _order(row: tuple[int, ...], shape: tuple[int | str | None, ...]) -> tuple[int, ...] | None:
    """The order of the axes in which it would fit."""
    wanted = shape[1:] if len(shape) == len(row) + 1 else shape
    orders = permutations(range(len(row)))
    return next((order for order in orders if _fits(tuple(row[axis] for axis in order), wanted)), None)


def _layout(found: Gathered) -> Shown | None:
    wrong = _misshapen(found) if _fed(found) else []
    if not wrong or any(_order(row, shape) is None for _, row, shape in wrong):
        return None
    name, row, shape = wrong[0]
    facts = (f"{name} is {list(row)} in the data, and the model takes {list(shape)}",)
    return Shown(facts, (name,), {"input": name, "has": str(list(row)), "wants": str(list(shape))})


def _turned(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    turns = {name: (name, _order(row, shape), None) for name, row, shape in _misshapen(found)}
    order = next(iter(turns.values()))[1]
    yield from _with_arrays(found, lab, f"Put the axes in the order {order}", turns)


def _size(found: Gathered) -> Shown | None:
    wrong = _misshapen(found) if _fed(found) else []
    if not wrong:
        return None
    name, row, shape = wrong[0]
    facts = (f"{name} is {list(row)} in the data, and the model takes {list(shape)}",)
    return Shown(facts, (name,), {"input": name, "has": str(list(row)), "wants": str(list(shape))})


def _type(found: Gathered) -> Shown | None:
    if not _fed(found) or found.refused is None or "takes" not in found.refused.words or _misshapen(found):
        return None
    name = next((name for name in _wants(found) if found.refused.problem.startswith(f"{name} is ")), None)
    return None if name is None else Shown((found.refused.problem,), (name,), {"why": found.refused.problem})


def _cast(found: Gathered, lab: Lab) -> Iterator[TriedCure]:
    casts = {name: (name, None, value.dtype) for name, value in _wants(found).items()}
    yield from _with_arrays(found, lab, "Write the numbers in the type that the model takes", casts)


Edit = tuple[str, "tuple[int, ...] | None", "str | None"]


def _with_arrays(found: Gathered, lab: Lab, title: str, edits: Mapping[str, Edit]) -> Iterator[TriedCure]:
    """The data with arrays renamed, turned or cast, where it is one file of arrays."""
    source, data = Path(found.complaint.inputs.data.source), found.complaint.inputs.data
    if source.suffix != ".npz":
        return
    with np.load(source, allow_pickle=False) as arrays:
        kept = {name: arrays[name] for name in arrays.files}
    for name, (new, order, dtype) in edits.items():
        array = kept.pop(name)
        array = array if order is None else array.transpose(0, *(axis + 1 for axis in order))
        kept[new] = array if dtype is None else array.astype(dtype)
    path = lab.file("changed.npz")
    np.savez(path, **kept)
    inputs = replace(found.complaint.inputs, data=replace(data, source=str(path)))
    tried: Complaint = replace(found.complaint, inputs=inputs)
    refused = found.refused
    yield lab.runs(title, "in the data", "refused" if refused is None else refused.cause, tried)


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
    CauseRule(
        "missing-input",
        "fails",
        "the data has nothing for {input}: it holds {has}",
        _missing,
        _renamed,
        remedy="give every input under its own name",
    ),
    CauseRule(
        "wrong-layout",
        "fails",
        "{input} is {has} in the data and {wants} in the model: the axes are in another order",
        _layout,
        _turned,
    ),
    CauseRule(
        "wrong-size",
        "fails",
        "{input} is {has} in the data, and the model takes {wants}",
        _size,
        remedy="resize the data, or export the model with this size",
    ),
    CauseRule("wrong-type", "fails", "{why}", _type, _cast),
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
