"""What the user points at, and what a model is fed."""

from modelwright.sources._build_folder import (
    MANIFEST,
    MANIFEST_VERSION,
    BuildCheck,
    BuildFolder,
    BuildPart,
    FileDigest,
    check_build,
    digests_of,
    model_files,
    read_build,
    recorded_inputs,
)
from modelwright.sources._calibration import (
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
from modelwright.sources._calibration import identity as calibration_identity
from modelwright.sources._digest import file_digest, require_file
from modelwright.sources._drawn import data_sizes, draw, drawn
from modelwright.sources._embedding import index_bound
from modelwright.sources._find import MODEL, find_model
from modelwright.sources._function import UserFunction
from modelwright.sources._generate import generate
from modelwright.sources._given import check_inputs, load_npz, read_array, read_npz
from modelwright.sources._guess import sizes_in, specs_from_graph, symbolic_dims, symbolic_sizes
from modelwright.sources._hf import HfSource, read_config, refuse_foreign
from modelwright.sources._hub import fetch
from modelwright.sources._resolve import BuildSource, OnnxSource, Source, resolve_source
from modelwright.sources._spec import Fill, FillKind, InputSpec, TensorSpec, static
from modelwright.sources._task import TASKS, Architecture, canonical_task, modality, read_architecture

__all__ = [
    "MANIFEST",
    "MANIFEST_VERSION",
    "MODEL",
    "TASKS",
    "Architecture",
    "BuildCheck",
    "BuildFolder",
    "BuildPart",
    "BuildSource",
    "CalibrationSource",
    "FileDigest",
    "Fill",
    "FillKind",
    "HfSource",
    "InputSpec",
    "OnnxSource",
    "RandomCalibration",
    "ReaderCalibration",
    "SampleHash",
    "Samples",
    "Source",
    "TensorSpec",
    "UserFunction",
    "calibration_identity",
    "calibration_source",
    "canonical_task",
    "check_build",
    "check_inputs",
    "data_bytes",
    "data_sizes",
    "digests_of",
    "draw",
    "drawn",
    "fetch",
    "file_digest",
    "find_model",
    "generate",
    "index_bound",
    "load_npz",
    "modality",
    "model_files",
    "read_architecture",
    "read_array",
    "read_build",
    "read_config",
    "read_npz",
    "recorded_inputs",
    "refuse_foreign",
    "require_file",
    "resolve_source",
    "rows",
    "samples",
    "sizes_in",
    "specs_from_graph",
    "static",
    "symbolic_dims",
    "symbolic_sizes",
]
