"""Samples: where they come from, and reading them one at a time."""

from modelwright.data._calibration import (
    CalibrationSource,
    RandomCalibration,
    ReaderCalibration,
    SampleHash,
    Samples,
    calibration_source,
    data_bytes,
    rows,
    samples,
)
from modelwright.data._calibration import (
    identity as calibration_identity,
)
from modelwright.data._drawn import (
    data_sizes,
    draw,
    drawn,
)
from modelwright.data._function import (
    UserFunction,
)
from modelwright.data._generate import (
    generate,
)
from modelwright.data._given import (
    check_inputs,
    load_npz,
    read_array,
    read_npz,
)

__all__ = [
    "CalibrationSource",
    "RandomCalibration",
    "ReaderCalibration",
    "SampleHash",
    "Samples",
    "UserFunction",
    "calibration_identity",
    "calibration_source",
    "check_inputs",
    "data_bytes",
    "data_sizes",
    "draw",
    "drawn",
    "generate",
    "load_npz",
    "read_array",
    "read_npz",
    "rows",
    "samples",
]
