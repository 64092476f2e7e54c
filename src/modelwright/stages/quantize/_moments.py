"""What products read, as sums over the samples: the rows of their input, and how the values in a row go together.

The squared error that a changed weight makes in a product is a quadratic form of these sums, so it is known without
running the model again. Some of the samples are learnt from and the others judge. Memory holds the sums of as many
products as fit; the model runs once more for each group of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright.data import Samples
from modelwright.stages.quantize._ranges import fetch
from modelwright.stages.quantize._session import run_each
from modelwright.worker import progress

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
    onnx = lazy("onnx")

# Every so many samples one judges what was learnt from the others.
JUDGE = 4
# Fewer samples would leave none or one to judge.
FEWEST = 2 * JUDGE
# Places of a convolution for each sample: neighbours say much the same.
_PLACES = 512
# Longer rows would take gigabytes, and minutes to solve.
_LONGEST = 6144
_BUDGET = 1 << 30


@dataclass(frozen=True)
class ProductRows:
    """A product with a stored weight of its own, and how it reads its input."""

    node: str
    weight: str
    source: str
    groups: int
    length: int
    turned: bool = False
    kernel: tuple[int, ...] = ()
    dilations: tuple[int, ...] = ()

    def rows(self, value: NDArray[Any]) -> NDArray[Any]:
        """(groups, rows, length), in the order of the stored weight. Padding is left out: it is zeros at the border."""
        if not self.kernel:
            return value.reshape(1, -1, self.length)
        extent = [1 + (size - 1) * step for size, step in zip(self.kernel, self.dilations, strict=True)]
        if any(size > room for size, room in zip(extent, value.shape[2:], strict=True)):
            return np.zeros((self.groups, 0, self.length), value.dtype)
        axes = tuple(range(2, value.ndim))
        windows = np.lib.stride_tricks.sliding_window_view(value, extent, axis=axes)
        places, total = windows.shape[2 : value.ndim], math.prod(windows.shape[2 : value.ndim])
        chosen = np.random.default_rng(0).permutation(total)[:_PLACES]
        every: Any = slice(None)
        picked = windows[(every, every, *np.unravel_index(chosen, places))]
        picked = picked[(every, every, every, *(slice(None, None, step) for step in self.dilations))]
        batch, count = len(value), len(chosen)
        shaped = picked.reshape(batch, self.groups, -1, count, math.prod(self.kernel))
        return np.ascontiguousarray(shaped.transpose(1, 0, 3, 2, 4)).reshape(self.groups, batch * count, -1)

    def matrix(self, weight: NDArray[Any]) -> NDArray[Any]:
        """The weight as (groups, outputs of a group, length)."""
        rows = weight.T if self.turned else weight
        return rows.reshape(self.groups, -1, self.length)

    def stored(self, matrix: NDArray[Any], like: NDArray[Any]) -> NDArray[Any]:
        """The way back."""
        return np.ascontiguousarray(matrix.reshape(like.T.shape).T if self.turned else matrix.reshape(like.shape))


@dataclass
class RowSums:
    """Sums over rows: how many, of the values, and of the products of each two."""

    count: int
    total: NDArray[Any]
    products: NDArray[Any]

    @classmethod
    def empty(cls, reading: ProductRows) -> RowSums:
        shape = (reading.groups, reading.length)
        return cls(0, np.zeros(shape), np.zeros((*shape, reading.length)))

    def add(self, rows: NDArray[Any]) -> None:
        self.count += rows.shape[1]
        self.total += rows.sum(axis=1)
        self.products += rows.transpose(0, 2, 1) @ rows

    def about(self, *, mean: bool) -> NDArray[Any]:
        """The mean of the products of two values; with `mean`, of their deviations, which is what is left once a bias
        has taken the mean error back."""
        count = max(self.count, 1)
        found: NDArray[Any] = self.products / count
        if mean:
            found -= np.einsum("gi,gj->gij", self.total / count, self.total / count)
        return found


@dataclass(frozen=True)
class Learnt:
    """The sums of the samples that are learnt from, and of those that judge."""

    reading: ProductRows
    learn: RowSums
    judge: RowSums


def readings(model: onnx.ModelProto, nodes: set[str]) -> tuple[ProductRows, ...]:
    """Those of `nodes` whose weight nobody else reads, and whose rows are not too long."""
    stored = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    readers = Counter(name for node in model.graph.node for name in node.input)
    found = []
    for node in model.graph.node:
        alone = node.name in nodes and len(node.input) > 1 and readers[node.input[1]] == 1
        if alone and node.input[1] in stored and node.input[0] not in stored:
            found.append(_reading(node, stored[node.input[1]]))
    return tuple(item for item in found if item is not None and 0 < item.length <= _LONGEST)


def _reading(node: onnx.NodeProto, dims: tuple[int, ...]) -> ProductRows | None:
    said = {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
    if node.op_type == "Conv" and len(dims) > 2:
        kernel = dims[2:]
        steps = tuple(said.get("dilations", (1,) * len(kernel)))
        length = math.prod(dims[1:])
        return ProductRows(node.name, node.input[1], node.input[0], said.get("group", 1), length, False, kernel, steps)
    if node.op_type in ("Gemm", "MatMul") and len(dims) == 2 and not said.get("transA", 0):
        turned = not said.get("transB", 0)
        return ProductRows(node.name, node.input[1], node.input[0], 1, dims[0 if turned else 1], turned)
    return None


def learn(model: onnx.ModelProto, found: Sequence[ProductRows], samples: Samples, workdir: Path) -> Iterator[Learnt]:
    """The sums of each product; as many at a time as fit."""
    for group in _groups(found):
        sums = [Learnt(item, RowSums.empty(item), RowSums.empty(item)) for item in group]
        sources = tuple(dict.fromkeys(item.source for item in group))
        session = fetch(model, sources, workdir)
        for index, (_, answers) in enumerate(run_each(session, list(sources), samples)):
            values = dict(zip(sources, answers, strict=True))
            for item in sums:
                side = item.judge if judges(index) else item.learn
                side.add(item.reading.rows(values[item.reading.source]))
            progress(f"what products read: sample {index + 1}")
        yield from sums


def judges(index: int) -> bool:
    """Is this one of the samples that nothing is learnt from?"""
    return index % JUDGE == JUDGE - 1


def _groups(found: Sequence[ProductRows]) -> Iterator[list[ProductRows]]:
    group: list[ProductRows] = []
    room = _BUDGET
    for item in found:
        size = 2 * 8 * item.groups * item.length**2
        if group and size > room:
            yield group
            group, room = [], _BUDGET
        group.append(item)
        room -= size
    if group:
        yield group
