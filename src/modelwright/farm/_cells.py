"""Every (model, target) as a cell with an identity: what it is made of, and nothing about where it will be written."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright._json import digest
from modelwright.data import DataSource
from modelwright.errors import UsageError, WrightError
from modelwright.farm._list import MatrixRow
from modelwright.models import BuildSource, HfSource, OnnxSource, onnx_of, resolve
from modelwright.pipeline import Recipe, RecipeChoices, resolve_recipe
from modelwright.stages.check import CHECK
from modelwright.stages.compile import COMPILE
from modelwright.stages.decode import AGREE, DECODE
from modelwright.stages.export import EXPORT
from modelwright.stages.optimize import OPTIMIZE
from modelwright.stages.quantize import QUANTIZE, canonical, steps_of
from modelwright.stages.validate import VALIDATE
from modelwright.store import file_digest
from modelwright.targets import Target, catalogue, parse_target
from modelwright.vocabulary import Data

EIGHT = ("qnn-npu", "qnn-gpu", "openvino-cpu", "openvino-npu", "openvino-gpu", "cpu", "dml-gpu", "vitisai-npu")
"""The default targets: what a model that is shipped to PCs has to run on."""

_STAGES = (EXPORT, OPTIMIZE, QUANTIZE, VALIDATE, COMPILE, CHECK, DECODE, AGREE)
_READABLE, _UNIQUE = 48, 10


@dataclass(frozen=True)
class CellChoices:
    """What holds for the whole matrix: samples for rows that name none, and whether to compile."""

    data: Data | None = None
    samples: int | None = None
    seed: int | None = None
    compile: bool | None = None
    trust_remote_code: bool = False


@dataclass(frozen=True)
class MatrixCell:
    """One model for one target. `id` follows from the content of the model and its data, from what is asked and from
    the versions of whatever makes it. `precision` is what is asked for; None leaves it to the policy of the target.
    `asked` is the precision of its row, and `note` says where the target cannot have that."""

    id: str
    model: str
    target: str
    precision: str | None = None
    task: str | None = None
    group: str | None = None
    priority: int = 5
    note: str | None = None
    asked: str | None = None

    @property
    def slug(self) -> str:
        """A name for files: readable, and another one for every cell, also where case does not count."""
        precision = "" if self.asked is None else f".{_slug(self.asked)}"
        return f"{_slug(self.model)}{precision}/{_slug(self.target)}"


@dataclass(frozen=True, eq=False)
class CellGroup:
    """The cells of one source, which are built together; `error` is why there is no source."""

    source: OnnxSource | HfSource | None
    cells: tuple[MatrixCell, ...]
    choices: tuple[RecipeChoices, ...]
    error: WrightError | None = None

    def recipe(self, number: int, *, planning: bool = False) -> Recipe:
        assert self.source is not None
        target = parse_target(self.cells[number].target)
        return resolve_recipe(self.source, target, self.choices[number], planning=planning)


def group_cells(rows: Sequence[MatrixRow], targets: Sequence[Target], choices: CellChoices) -> tuple[CellGroup, ...]:
    """The cells in the order of the rows; rows of one source are together, where the first of them is."""
    found: dict[Any, list[CellGroup]] = {}
    for row in rows:
        one = _group(row, targets, choices)
        found.setdefault(one.source or row, []).append(one)
    return tuple(_together(parts) for parts in found.values())


def _together(parts: Sequence[CellGroup]) -> CellGroup:
    cells = tuple(cell for part in parts for cell in part.cells)
    return CellGroup(parts[0].source, cells, tuple(one for part in parts for one in part.choices), parts[0].error)


def _group(row: MatrixRow, targets: Sequence[Target], choices: CellChoices) -> CellGroup:
    data = row.data or choices.data
    source, error = _source(row, choices)
    try:
        content = [_identity(source, row), _data_identity(data)]
        base = digest(["cell-2", versions(), row.title, *content, row.task, choices.samples, choices.seed])
    except WrightError as wrong:
        source, error, base = None, wrong, digest(["cell-2", row.title, row.model, row.task])
    cells, said = [], []
    common = RecipeChoices(data=data, samples=choices.samples, seed=choices.seed)
    for target in targets:
        precision, note = precision_for(row, target)
        compiled = choices.compile if target.provider.ep_context else None
        mark = digest([base, str(target), row.precision, compiled])
        about = (row.task, row.group, row.priority, note, row.precision)
        cells.append(MatrixCell(mark, row.title, str(target), precision, *about))
        plain = precision is None and compiled is None
        said.append(common if plain else replace(common, precision=precision, compile=compiled))
    return CellGroup(source, tuple(cells), tuple(said), error)


def _source(row: MatrixRow, choices: CellChoices) -> tuple[OnnxSource | HfSource | None, WrightError | None]:
    try:
        found = resolve(
            row.model,
            task=row.task,
            revision=row.revision,
            random_weights=row.random_weights,
            trust_remote_code=choices.trust_remote_code and not row.model.endswith(".onnx"),
        )
        return (OnnxSource(str(onnx_of(found))) if isinstance(found, BuildSource) else found), None
    except WrightError as error:
        return None, error


def _identity(source: OnnxSource | HfSource | None, row: MatrixRow) -> list[Any]:
    if source is None:
        return [row.model]
    flags = [source.random_weights, source.trust_remote_code] if isinstance(source, HfSource) else []
    return [source.identity(), source.task, *flags]


def _data_identity(data: Data | None) -> Any:
    """The content of files; of the user's own function, the file it is in."""
    if data is None or data.random:
        return data
    if DataSource(data).unread:
        code = Path(data.source.rpartition(":")[0]).expanduser()
        return [data, file_digest(code) if data.function and code.is_file() else None]
    return [DataSource(data).identity(0), data.labels and file_digest(Path(data.labels).expanduser())]


def precision_for(row: MatrixRow, target: Target) -> tuple[str | None, str | None]:
    """What the row asks for, and a note where the target cannot have it: its compiler quantizes by itself."""
    if row.precision is None:
        return None, None
    word = canonical(row.precision)
    if target.accepts_qdq or not any(step.kind == "static" for step in steps_of(word)):
        return word, None
    return None, f"{word} is asked for, and {target.provider.name} quantizes by itself: it gets {target.auto_precision}"


@functools.cache
def versions() -> str:
    """What makes a build here: a cell that other versions made is another cell."""
    stages = {stage.name: [stage.version, stage.libraries()] for stage in _STAGES}
    return digest([catalogue().policy_version, stages])


def _slug(said: str) -> str:
    readable = re.sub("[^0-9a-z]+", "-", said.lower()).strip("-")[:_READABLE].strip("-") or "model"
    return readable if readable == said else f"{readable}-{digest(said)[:_UNIQUE]}"


def find_cell(cells: Sequence[MatrixCell], model: str, target: str) -> tuple[MatrixCell, ...]:
    """Those of a model (by its name) and a target, in whatever precision."""
    wanted = str(parse_target(target))
    found = tuple(cell for cell in cells if cell.model == model and cell.target == wanted)
    if found:
        return found
    known = sorted({cell.model for cell in cells})
    near = [name for name in known if model.casefold() in name.casefold()]
    if not any(cell.model == model for cell in cells):
        raise UsageError(
            f"the matrix has no model {model}",
            cause=f"it has {', '.join((near or known)[:5])}{', …' if len(near or known) > 5 else ''}",
            fix="name one of them",
        )
    targets = dict.fromkeys(cell.target for cell in cells)
    raise UsageError(f"the matrix has no {wanted}", cause=f"its targets are {', '.join(targets)}", fix="name one")
