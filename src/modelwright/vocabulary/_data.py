"""Which samples a model is fed, and what makes numbers of them: one value for every command."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, field
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright.errors import UsageError

Layout = Literal["nchw", "nhwc"]
RANDOM = "random"


@dataclass(frozen=True)
class Data:
    """What `source` holds, row by row: a file, a folder, `file.py:function`, a `datasets` id, or the word random.

    - `samples`: how many rows at most, drawn by `seed` without replacement where the source knows how many it has.
    - `scale`, `mean`, `std`: pixels become `(pixel * scale - mean) / std`; nothing about that is ever guessed.
    - `size`: (height, width) to resize images to; `layout`: where the model has its channels.
    - `columns`: field -> the name that the source has for it. `labels`: a file with a label per row.
    - `split`: of a `datasets` id. `processor`: folder of the model's tokenizer, image or audio processor.
    """

    source: str = RANDOM
    _: KW_ONLY
    samples: int | None = None
    seed: int = 0
    scale: float | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    size: tuple[int, int] | None = None
    layout: Layout | None = None
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)
    labels: str | None = None
    split: str | None = None
    processor: str | None = None

    def __post_init__(self) -> None:
        """What can be no data is refused where it is written down."""
        for wrong, problem, fix in (
            (not self.source, "the data has no name", "give a file, a folder, or the word random"),
            (self.samples is not None and self.samples < 1, f"{self.samples} samples decide nothing", "at least 1"),
            (self.seed < 0, f"{self.seed} is no seed", "use 0 or more"),
            (self.scale is not None and not 0 < self.scale < math.inf, "`scale` must be positive", "use 1/255"),
            (any(part <= 0 for part in self.std or ()), "`std` must be positive", "use 0.229,0.224,0.225"),
            (any(part < 1 for part in self.size or ()), "`size` must be positive", "use 224x224"),
        ):
            if wrong:
                raise UsageError(problem, cause="it says which samples are used, and how", fix=fix)

    @property
    def random(self) -> bool:
        """Made-up input: it shows that something runs, never how good it is."""
        return self.source == RANDOM

    @property
    def function(self) -> bool:
        """`file.py:function`, the user's own code."""
        name, _, function = self.source.rpartition(":")
        return name.endswith(".py") and bool(function)


def as_data(data: Data | str | None) -> Data:
    """A word alone is a source; nothing is made-up input."""
    if data is None:
        return Data()
    return Data(data) if isinstance(data, str) else data
