"""Samples: where they come from, and how they become what a model is fed. Read in a child only."""

from modelwright.data._arrays import (
    read_array,
    read_npz,
)
from modelwright.data._bearable import (
    bearable,
)
from modelwright.data._drawn import (
    SampleHash,
    data_shapes,
    data_sizes,
    draw,
    drawing,
    drawn,
    first_feeds,
    keep_arrays,
    try_data,
)
from modelwright.data._feeds import (
    Feeder,
    TakenInput,
    refuse_idle_scale,
    split,
)
from modelwright.data._function import (
    UserFunction,
)
from modelwright.data._generate import (
    generate,
)
from modelwright.data._given import (
    check_inputs,
)
from modelwright.data._open import (
    data_files,
    open_data,
    require_there,
)
from modelwright.data._pixels import (
    ImageInput,
    as_taken,
    image_inputs,
    moved,
    specs_as_taken,
)
from modelwright.data._prepare import (
    Preparer,
)
from modelwright.data._rows import (
    Row,
    Rows,
    by_number,
)
from modelwright.data._source import (
    DataSource,
    Drawn,
    DrawnRow,
    Sample,
    Samples,
    samples,
    source_for,
)
from modelwright.data._tables import table_words

__all__ = [
    "DataSource",
    "Drawn",
    "DrawnRow",
    "Feeder",
    "ImageInput",
    "Preparer",
    "Row",
    "Rows",
    "Sample",
    "SampleHash",
    "Samples",
    "TakenInput",
    "UserFunction",
    "as_taken",
    "bearable",
    "by_number",
    "check_inputs",
    "data_files",
    "data_shapes",
    "data_sizes",
    "draw",
    "drawing",
    "drawn",
    "first_feeds",
    "generate",
    "image_inputs",
    "keep_arrays",
    "moved",
    "open_data",
    "read_array",
    "read_npz",
    "refuse_idle_scale",
    "require_there",
    "samples",
    "source_for",
    "specs_as_taken",
    "split",
    "table_words",
    "try_data",
]
