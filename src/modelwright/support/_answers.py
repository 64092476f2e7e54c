"""What an artifact answers on its target, what its reference answers, and how far apart they are. All in children.

Samples and answers are files of a scratch folder: `NAME-f0.npz` was fed, `NAME-g0.npz` is what the artifact gave,
`NAME-w0.npz` what the reference did.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import DataSource, bearable, generate, samples
from modelwright.errors import InputError, WrightError
from modelwright.graph import Graph, load, structure, summary
from modelwright.graph import fingerprint as content_of
from modelwright.metrics import leaves
from modelwright.models import NoGuessError, fitted, index_bound, specs_from_graph
from modelwright.stages.check import Computed
from modelwright.stages.decode import Parts, Writing, open_decoder
from modelwright.stages.validate import Asked, Gate, parity
from modelwright.support._levels import INPUTS, Hindrance, OutputSeen, RunsSeen
from modelwright.targets import (
    BoundSession,
    NotBound,
    SessionSpec,
    installed_plugins,
    open_as_written,
    open_session,
    parse_target,
)
from modelwright.vocabulary import Data, InputSpec
from modelwright.worker import progress, task

if TYPE_CHECKING:
    import numpy as np
    import onnx
    import onnx.reference as onnx_reference
    import onnxruntime as ort
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")
    onnx_reference = lazy("onnx.reference")
    ort = lazy("onnxruntime")

Arrays = dict[str, "NDArray[Any]"]
_MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class RunsAsked:
    """`inputs` is what the export recorded; `data` are real rows, drawn with each seed. `plain` is the same model in a
    form that the CPU reads, and `bears` one that says which made-up inputs make sense."""

    name: str
    artifact: str
    plain: str
    target: str
    inputs: InputSpec
    data: Data | None
    seeds: tuple[int, ...]
    count: int
    limit_s: float
    bears: str | None = None
    spec: SessionSpec = field(default_factory=SessionSpec)


@task
def run_on_target(workdir: str, asked: RunsAsked) -> RunsSeen:
    """Whatever the target refuses is an answer; only what is wrong with the data is raised."""
    folder, target = Path(workdir), parse_target(asked.target)
    wanted = RunsSeen(wanted=target.provider.name, seeds=asked.seeds, real=asked.data is not None)
    feeds = _feeds(asked)
    wanted = replace(wanted, asked=len(feeds), fed=_digest(feeds))
    progress(f"opening it on {target}")
    try:
        session = open_session(asked.artifact, target, asked.spec)
    except WrightError as error:
        said = f"{error.problem}: {error.cause}"
        absent = isinstance(error, NotBound) or not _installed(asked.target)
        return replace(wanted, hindrance=Hindrance("host", said)) if absent else replace(wanted, failure=said)
    with session:
        facts = session.facts
        seen = replace(
            wanted,
            bound=facts.ep,
            nodes_per_ep=dict(facts.nodes_per_ep),
            simulated=facts.simulated,
            engine=facts.engine,
        )
        computed = Computed(feeds, asked.limit_s, None)
        computed.use(session)
    if computed.problem is not None:
        return replace(seen, failure=f"{computed.problem.problem}: {computed.problem.cause}")
    answers = [dict(leaves(answer)) for answer in computed.answers]
    for number, (feed, answer) in enumerate(zip(feeds, answers, strict=False)):
        _write(folder / f"{asked.name}-f{number}.npz", feed)
        _write(folder / f"{asked.name}-g{number}.npz", answer)
    seen = replace(seen, inputs=len(answers), not_finite=_not_finite(answers), constant=_constant(answers))
    if seen.simulated and len(answers) < INPUTS:
        said = f"the simulator computed {len(answers)} of {len(feeds)} inputs in {asked.limit_s:g} s"
        return replace(seen, hindrance=Hindrance("timeout", computed.unfinished or said))
    return seen


def _installed(target: str) -> bool:
    wanted = parse_target(target).provider
    return wanted.name == "CPUExecutionProvider" or any(one.provider == wanted for one in installed_plugins())


def _feeds(asked: RunsAsked) -> list[Mapping[str, Any]]:
    graph = load(asked.plain)
    found: list[Mapping[str, Any]] = []
    for seed in asked.seeds:
        if asked.data is not None:
            real = replace(asked.data, seed=seed, samples=asked.count)
            found += list(samples(DataSource(real), graph, asked.count))
            continue
        specs = _specs(graph, asked, seed)
        found += [generate(specs, seed, index) for index in range(asked.count)]
    return found


def _specs(graph: Graph, asked: RunsAsked, seed: int) -> InputSpec:
    if asked.inputs:
        return fitted(asked.inputs, summary(graph).inputs)
    if asked.bears is None:
        return specs_from_graph(graph)
    try:
        specs = specs_from_graph(graph)
        with open_as_written(asked.bears) as session:
            session.run(generate(specs, seed, 0))
    except (NoGuessError, WrightError):
        return bearable(DataSource(Data(seed=seed)), asked.bears, graph, asked.count).specs
    return specs


@task
def run_reference(workdir: str, name: str, model: str, count: int) -> str:
    """The answers of the .onnx file that was given; what computed them."""
    folder = Path(workdir)
    with open_as_written(model) as session:
        for number in range(count):
            answer = dict(leaves(session.run(_read(folder / f"{name}-f{number}.npz"))))
            _write(folder / f"{name}-w{number}.npz", answer)
        return session.facts.engine


@task
def compare_answers(workdir: str, name: str, count: int, gate: Gate, random: bool) -> tuple[OutputSeen, ...]:
    """Every output by what it is, worst sample, as the gate of a build judges it."""
    folder = Path(workdir)
    wanted, got, feeds = [], [], []
    for number in range(count):
        reference = _read(folder / f"{name}-w{number}.npz")
        answer = _read(folder / f"{name}-g{number}.npz")
        wanted.append(reference)
        got.append({key: answer[key] for key in reference if key in answer})
        feeds.append(_read(folder / f"{name}-f{number}.npz"))
    found = parity(wanted, got, Asked(feeds, gate, random))
    return tuple(
        OutputSeen(one, _largest([answer[one.output] for answer in wanted if one.output in answer])) for one in found
    )


@task
def run_elsewhere(workdir: str, name: str, model: str, count: int) -> str:
    """The answers of another runtime than onnxruntime: ONNX's own, which computes every operator as it is defined."""
    other = onnx_reference.ReferenceEvaluator(model)
    _answer_all(Path(workdir), name, count, other.output_names, other)
    return f"onnx {onnx.__version__}, its reference"


@task
def run_in_another(workdir: str, name: str, model: str, count: int) -> str:
    """The answers of the onnxruntime of this interpreter, which is another one than ours."""
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    _answer_all(Path(workdir), name, count, [one.name for one in session.get_outputs()], session)
    return f"onnxruntime {ort.__version__}"


def _answer_all(folder: Path, name: str, count: int, outputs: Sequence[str], other: Any) -> None:
    for number in range(count):
        progress(f"sample {number + 1} of {count}")
        found = other.run(None, _read(folder / f"{name}-f{number}.npz"))
        _write(folder / f"{name}-w{number}.npz", dict(zip(outputs, found, strict=True)))


@task
def prepare_texts(workdir: str, inputs: InputSpec, seeds: tuple[int, ...], most: int | None) -> int:
    """What texts are written about: one made-up sample for each seed; a prompt has at most so many tokens."""
    for number, seed in enumerate(seeds):
        given = generate(inputs, seed, 0)
        cut = given if most is None else {name: array[:, :most] for name, array in given.items()}
        _write(Path(workdir) / f"text-f{number}.npz", cut)
    return len(seeds)


@task
def write_texts(
    workdir: str, parts: Parts, target: str, writing: Writing, texts: tuple[tuple[int, ...], ...]
) -> tuple[int, ...]:
    """The artifact at every place of PyTorch's texts, with the cache of its own that it has then; and whether what it
    writes by itself is the same."""
    folder, equal = Path(workdir), []
    with closing(open_decoder(parts, lambda path: _opened(path, target))) as model:
        for number, tokens in enumerate(texts):
            progress(f"text {number + 1} of {len(texts)}")
            given = _read(folder / f"text-f{number}.npz")
            scores = _scores(model, given, writing, tokens)
            _write(folder / f"text-g{number}.npz", {"logits": np.stack(scores)})
            own = [int(writing.allowed(one).argmax()) for one in scores]
            # Up to the first token that differs both have read the same.
            equal.append(int(tuple(own) == tokens))
    return tuple(equal)


def _scores(model: Any, given: Arrays, writing: Writing, tokens: Sequence[int]) -> list[Any]:
    first = model.begin(given)
    for token in writing.start if first is None else ():
        first = model.step(token)
    if first is None:
        raise InputError("with which token a text starts is unknown", cause="no configuration says it", fix="say it")
    found = [np.asarray(first)]
    for token in tokens[:-1]:
        found.append(np.asarray(model.step(token)))
    return found


def _opened(path: str, target: str) -> BoundSession:
    return open_session(path, parse_target(target))


@dataclass(frozen=True)
class GraphSeen:
    """One file: its structure and its content, what its weights are, and what the checker says."""

    structure: str
    content: str
    precision: str | None
    checker: str | None
    opset: int | None
    outside: tuple[str, ...]
    vocabulary: int | None
    classes: int | None
    values: tuple[tuple[str, str, tuple[int | str | None, ...]], ...]


@task
def look_at(model: str, ids: str | None, scores: str | None) -> GraphSeen:
    """`ids` is the input that indexes the vocabulary, `scores` the output that has one number for each label."""
    graph = load(model)
    found = summary(graph)
    opset = next((one.version for one in found.opsets if one.domain in ("", "ai.onnx")), None)
    sized = {value.name: value.shape for value in found.outputs}
    last = (sized.get(scores) or (None,))[-1] if scores else None
    return GraphSeen(
        structure(graph),
        content_of(graph),
        found.precision.label,
        _complaint(model),
        opset,
        _outside(found, Path(model).parent),
        index_bound(graph, ids) if ids else None,
        last if isinstance(last, int) else None,
        tuple(
            (value.name, value.dtype or "unknown", tuple(value.shape or ()))
            for value in (*found.inputs, *found.outputs)
        ),
    )


def _complaint(model: str) -> str | None:
    try:
        onnx.checker.check_model(model)
    except (onnx.checker.ValidationError, ValueError, RuntimeError) as error:
        return " ".join(str(error).split())[:300]
    return None


def _outside(found: Any, folder: Path) -> tuple[str, ...]:
    named = (file.name for file in found.files)
    return tuple(
        name for name in named if Path(name).is_absolute() or ".." in Path(name).parts or not (folder / name).is_file()
    )


def _not_finite(answers: Sequence[Arrays]) -> tuple[str, ...]:
    wrong: dict[str, None] = {}
    for answer in answers:
        for name, array in answer.items():
            if (array.dtype.kind == "f" and np.isnan(array).any()) or (
                array.dtype.kind == "f" and not np.isfinite(array).any()
            ):
                wrong[name] = None
    return tuple(wrong)


def _constant(answers: Sequence[Arrays]) -> tuple[str, ...]:
    """Outputs that are the same for every input, where there are several of them with something in it."""
    if len(answers) < 2:
        return ()
    names = [name for name, array in answers[0].items() if array.size and array.dtype.kind == "f"]
    return tuple(name for name in names if all(_same(answers[0][name], answer.get(name)) for answer in answers[1:]))


def _same(one: NDArray[Any], other: NDArray[Any] | None) -> bool:
    return other is not None and one.shape == other.shape and bool(np.array_equal(one, other))


def _largest(arrays: Sequence[NDArray[Any]]) -> float:
    found = 0.0
    for array in arrays:
        numbers = (
            np.abs(array[np.isfinite(array)])
            if array.dtype.kind == "f"
            else np.abs(array.astype("f8"))
            if array.dtype.kind in "iu"
            else array[:0]
        )
        found = max(found, float(numbers.max(initial=0.0)))
    return found


def _digest(feeds: Sequence[Mapping[str, Any]]) -> str:
    found = hashlib.sha256()
    for feed in feeds:
        for name in sorted(feed):
            array = np.ascontiguousarray(feed[name])
            told = f"{name} {array.dtype} {array.shape}"
            found.update(
                told.encode() + (repr(array.tolist()).encode() if array.dtype.kind == "O" else array.tobytes())
            )
    return found.hexdigest()


def _write(path: Path, arrays: Mapping[str, Any]) -> None:
    np.savez(path, **{name: _storable(array) for name, array in arrays.items()})  # type: ignore[arg-type]


def _storable(array: NDArray[Any]) -> NDArray[Any]:
    """Texts are objects for onnxruntime, and characters in a file."""
    return array.astype(str) if array.dtype.kind == "O" else array


def _read(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as file:
        return {name: _fed(file[name]) for name in file.files}


def _fed(array: NDArray[Any]) -> NDArray[Any]:
    return array.astype(object) if array.dtype.kind == "U" else array
