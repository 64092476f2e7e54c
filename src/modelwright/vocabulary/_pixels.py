"""How whoever runs an artifact has its images: as bytes, channels last, not normalized."""

from __future__ import annotations

import math
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright.errors import UsageError
from modelwright.vocabulary._data import Layout

PixelType = Literal["uint8"]


@dataclass(frozen=True)
class PixelInputs:
    """Image inputs as the finished model takes them; what is unset stays as the source has it.

    - `dtype`: `uint8` takes the bytes of a camera; then what they are worth has to be said
    - `layout`: where the channels are
    - `scale`, `mean`, `std`: the model makes `(pixel * scale - mean) / std` of its pixels itself
    - `images`: which inputs; those of four dimensions with 1, 3 or 4 channels, where none is named
    """

    dtype: PixelType | None = None
    layout: Layout | None = None
    scale: float | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    images: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for wrong, problem, fix in (
            (self.scale is not None and not 0 < self.scale < math.inf, "`input_scale` must be positive", "use 1/255"),
            (
                any(not math.isfinite(part) for part in self.mean or ()),
                "`input_mean` must be finite",
                "use 0.485,0.456,0.406",
            ),
            (
                any(not 0 < part < math.inf for part in self.std or ()),
                "`input_std` must be positive",
                "use 0.229,0.224,0.225",
            ),
            (
                self.dtype is not None and not self.normalizes,
                "`input_type` uint8 needs to know what a pixel is worth",
                "say `input_scale` 1/255 for example, or 1 where the model takes 0 to 255",
            ),
        ):
            if wrong:
                raise UsageError(problem, cause="it says how the finished model takes its images", fix=fix)

    @property
    def normalizes(self) -> bool:
        return not (self.scale is None and self.mean is None and self.std is None)

    @property
    def changes(self) -> bool:
        return self.dtype is not None or self.layout is not None or self.normalizes
