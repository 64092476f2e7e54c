"""Lists of detections: rows that a graph picks and orders itself, so that the same things may stand in other places.

A detector with its non-maximum suppression inside, or one that takes its best queries by TopK, answers rows in the
order of their scores. Two that are nearly as good change places when anything is rounded, and one at the threshold
comes or goes: rows are compared as sets, by what they show.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.graph import Graph, subgraphs_of
from modelwright.stages.validate._decisions import SEEN, ChangedDecisions
from modelwright.stages.validate._detections import NEARLY, Seen, changed_between, matches
from modelwright.stages.validate._kinds import BOX, within_one

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

Outputs = Mapping[str, Any]
_PICKING = frozenset({"NonMaxSuppression", "TopK"})
# Columns of a table of detections: where the box begins, the score, and the class if there is one. Widths of 5 to 7,
# with the number of the image first where there is one.
_TABLES: Mapping[int, tuple[tuple[int, int, int | None], ...]] = {
    5: ((0, 4, None),),
    6: ((0, 4, 5), (0, 5, 4), (2, 1, 0)),
    7: ((1, 6, 5), (1, 5, 6), (3, 2, 1)),
}
_MOST = 300
_ALWAYS = 0.999


@dataclass(frozen=True, eq=False)
class PickedRows:
    """Of one sample: boxes (left, top, right, bottom), how sure each is, and what it is."""

    boxes: NDArray[Any]
    scores: NDArray[Any]
    classes: NDArray[Any]

    def seen(self, at: float) -> Seen:
        """The best first."""
        places = self.places(at)
        return Seen(self.boxes[places], self.classes[places])

    def places(self, at: float) -> NDArray[Any]:
        order = np.argsort(-self.scores, kind="stable")
        found: NDArray[Any] = order[self.scores[order] >= at][:_MOST]
        return found


class Lists(Protocol):
    """How outputs of a model make up a list. `names` are those that it stands for."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def rows(self, answer: Outputs) -> PickedRows: ...


@dataclass(frozen=True)
class TableLists:
    """All in one output: (rows, columns), maybe with a batch of one before."""

    name: str
    box: int
    score: int
    kind: int | None

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def rows(self, answer: Outputs) -> PickedRows:
        table = _table(answer[self.name])
        kinds = np.zeros(len(table)) if self.kind is None else table[:, self.kind]
        return PickedRows(table[:, self.box : self.box + BOX], table[:, self.score], kinds)


@dataclass(frozen=True)
class ColumnLists:
    """An output for the boxes and one for the scores, a number or one for each class; maybe one for the class and one
    for how many rows count."""

    boxes: str
    scores: str
    classes: str | None
    count: str | None
    centred: bool
    logits: bool

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in (self.boxes, self.scores, self.classes, self.count) if name is not None)

    def rows(self, answer: Outputs) -> PickedRows:
        boxes = _table(answer[self.boxes])
        scores = np.asarray(answer[self.scores], np.float64).reshape(len(boxes), -1)
        scores = 1.0 / (1.0 + np.exp(-np.clip(scores, -50, 50))) if self.logits else scores
        kinds = scores.argmax(axis=1) if scores.size else np.zeros(len(boxes))
        if self.classes is not None:
            kinds = np.asarray(answer[self.classes]).reshape(-1)
        best = scores.max(axis=1) if scores.size else np.zeros(len(boxes))
        told = len(boxes) if self.count is None else int(np.asarray(answer[self.count]).reshape(-1)[0])
        first, second = boxes[:told, :2], boxes[:told, 2:]
        corners = np.hstack([first - second / 2, first + second / 2]) if self.centred else boxes[:told]
        return PickedRows(corners, best[:told], kinds[:told])


@dataclass(frozen=True)
class PickedLists:
    """What NonMaxSuppression itself answers, (image, class, place), beside the boxes and scores of all places."""

    boxes: str
    scores: str
    picked: str

    @property
    def names(self) -> tuple[str, ...]:
        return (self.picked,)

    def rows(self, answer: Outputs) -> PickedRows:
        boxes, scores = _table(answer[self.boxes]), np.asarray(answer[self.scores], np.float64)[0]
        chosen = np.asarray(answer[self.picked]).reshape(-1, 3)
        # Padding of a fixed number of rows is -1.
        chosen = chosen[(chosen >= 0).all(axis=1)]
        kinds, places = chosen[:, 1], chosen[:, 2]
        return PickedRows(boxes[places], scores[kinds, places], kinds)


def picked_outputs(graph: Graph) -> frozenset[str]:
    """Outputs of a graph that depend on what it picked itself."""
    proto = graph.model.graph
    reached: set[str] = set()
    for node in proto.node:
        if _picks(node) or (reached and not reached.isdisjoint(node.input)):
            reached.update(node.output)
    return frozenset(value.name for value in proto.output if value.name in reached)


def find_lists(answers: Sequence[Outputs], picked: Iterable[str], at: float = SEEN * NEARLY) -> Lists | None:
    """The list that outputs of this model make up, by the answers of both sides; None where they make up none, or
    where no row is as sure as `at`."""
    known = {name for answer in answers for name in answer}
    names = sorted(set(picked) & known)
    every = [answer for answer in answers if all(name in answer for name in known)]
    if not names or len(every) < len(answers):
        return None
    candidates: Iterator[Lists] = (
        found for kind in (_tables, _columns, _picked_places) for found in kind(every, names, sorted(known))
    )
    return next((found for found in candidates if _is_list(found, every, at)), None)


def changed_rows(pairs: Sequence[tuple[PickedRows, PickedRows]]) -> tuple[ChangedDecisions, ChangedDecisions]:
    """As `changed_detections`, of lists."""
    return changed_between(
        [[(rows.seen(SEEN), rows.seen(SEEN * NEARLY)) for rows in (one, other)] for one, other in pairs]
    )


def matched_rows(one: PickedRows, other: PickedRows) -> tuple[NDArray[Any], NDArray[Any]]:
    """Places of the same things in both, of all that the first sees and the second nearly."""
    ours, theirs = one.places(SEEN), other.places(SEEN * NEARLY)
    found = matches(Seen(one.boxes[ours], one.classes[ours]), Seen(other.boxes[theirs], other.classes[theirs]))
    return ours[[mine for mine, _ in found]], theirs[[its for _, its in found]]


def row_axis(values: NDArray[Any]) -> int:
    """Rows come first, or behind a batch of one."""
    return 1 if values.ndim > 1 and values.shape[0] == 1 else 0


def _tables(answers: Sequence[Outputs], names: Sequence[str], _: Sequence[str]) -> Iterator[Lists]:
    for name in names:
        shapes = {answer[name].shape[-1] for answer in answers if answer[name].ndim in (2, 3)}
        floats = all(answer[name].dtype.kind == "f" for answer in answers)
        if floats and len(shapes) == 1 and all(_in_rows(answer[name]) for answer in answers):
            yield from (TableLists(name, *columns) for columns in _TABLES.get(shapes.pop(), ()))


def _columns(answers: Sequence[Outputs], names: Sequence[str], _: Sequence[str]) -> Iterator[Lists]:
    for boxes in (name for name in names if all(_are_boxes(answer[name]) for answer in answers)):
        beside = [name for name in names if name != boxes and _same_rows(answers, boxes, name)]
        floats = [name for name in beside if all(answer[name].dtype.kind == "f" for answer in answers)]
        whole = [name for name in beside if all(_are_classes(answer[name]) for answer in answers)]
        single = [name for name in names if name != boxes and _is_count(answers, name, boxes)]
        for scores in (name for name in floats if name not in whole):
            logits = not all(within_one(answer[scores]) for answer in answers if answer[scores].size)
            for centred in (False, True):
                yield ColumnLists(boxes, scores, next(iter(whole), None), next(iter(single), None), centred, logits)


def _picked_places(answers: Sequence[Outputs], names: Sequence[str], known: Sequence[str]) -> Iterator[Lists]:
    for name in names:
        if not all(_are_places(answer[name]) for answer in answers):
            continue
        for boxes in (other for other in known if all(_are_boxes(answer[other]) for answer in answers)):
            count = _table(answers[0][boxes]).shape[0]
            scored = (other for other in known if all(_scores_places(answer[other], count) for answer in answers))
            yield from (PickedLists(boxes, scores, name) for scores in scored)


def _is_list(lists: Lists, answers: Sequence[Outputs], at: float) -> bool:
    """Some row is seen, scores are shares of one, classes are counted, and boxes have corners in order."""
    found = [lists.rows(answer) for answer in answers]
    scores = np.concatenate([rows.scores for rows in found])
    kinds = np.concatenate([rows.classes for rows in found])
    boxes = np.concatenate([rows.boxes for rows in found])[scores >= at]
    if not len(boxes) or not within_one(scores) or not np.array_equal(kinds, np.rint(kinds)):
        return False
    # A column of nothing but 0 and 1 is a flag or a class.
    if np.array_equal(scores, np.rint(scores)):
        return False
    return bool((boxes[:, 2:] >= boxes[:, :2]).mean() > _ALWAYS and (boxes[:, 2:] > boxes[:, :2]).any())


def _picks(node: onnx.NodeProto) -> bool:
    return _is_picking(node.op_type) or any(_picks(inner) for graph in subgraphs_of(node) for inner in graph.node)


@functools.lru_cache(1024)
def _is_picking(op_type: str) -> bool:
    return op_type in _PICKING or "nms" in op_type.lower()


def _table(values: Any) -> NDArray[Any]:
    found = np.asarray(values, np.float64)
    return found.reshape(-1, found.shape[-1])


def _in_rows(values: NDArray[Any]) -> bool:
    return values.ndim == 2 or (values.ndim == 3 and values.shape[0] == 1)


def _are_boxes(values: NDArray[Any]) -> bool:
    return values.dtype.kind == "f" and _in_rows(values) and values.shape[-1] == BOX


def _are_classes(values: NDArray[Any]) -> bool:
    return bool(values.dtype.kind in "iu" or np.array_equal(values, np.rint(values)))


def _are_places(values: NDArray[Any]) -> bool:
    return values.dtype.kind == "i" and _in_rows(values) and values.shape[-1] == 3


def _scores_places(values: NDArray[Any], count: int) -> bool:
    return values.dtype.kind == "f" and values.ndim == 3 and values.shape[0] == 1 and values.shape[2] == count


def _same_rows(answers: Sequence[Outputs], boxes: str, name: str) -> bool:
    """A number, or one for each class, for every box."""
    return all(
        answer[name].shape[: answer[boxes].ndim - 1] == answer[boxes].shape[:-1]
        and answer[name].ndim <= answer[boxes].ndim
        for answer in answers
    )


def _is_count(answers: Sequence[Outputs], name: str, boxes: str) -> bool:
    """One number, between none and all of the rows."""
    return all(
        answer[name].size == 1
        and _are_classes(answer[name])
        and 0 <= int(answer[name].reshape(-1)[0]) <= len(_table(answer[boxes]))
        for answer in answers
    ) and any(len(_table(answer[boxes])) != 1 for answer in answers)
