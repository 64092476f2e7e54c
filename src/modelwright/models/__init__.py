"""What the user points at: one resolver, and reading a build folder back."""

from modelwright.models._build_folder import (
    MANIFEST,
    MANIFEST_VERSION,
    BuildCheck,
    BuildFolder,
    BuildPart,
    BuildVerdict,
    FileDigest,
    check_build,
    digests_of,
    model_files,
    read_build,
    recorded_inputs,
    recorded_verdict,
)
from modelwright.models._digest import (
    file_digest,
    require_file,
)
from modelwright.models._embedding import (
    index_bound,
)
from modelwright.models._facts import (
    ModelFacts,
    model_facts,
)
from modelwright.models._guess import (
    NoGuessError,
    fitted,
    fixed_sizes,
    sized_dims,
    sizes_in,
    specs_from_graph,
    symbolic_dims,
    symbolic_sizes,
    with_sizes,
)
from modelwright.models._guesses import guesses
from modelwright.models._hf import (
    CONFIG,
    SMALL_FILES,
    HfSource,
    SourceChoices,
    read_config,
    refuse_foreign,
    weight_files,
)
from modelwright.models._hub import (
    fetch,
)
from modelwright.models._inspect import (
    Inspection,
    PairInspection,
    inspect,
    inspect_pair,
)
from modelwright.models._resolve import (
    MODEL,
    BuildSource,
    OnnxSource,
    Source,
    onnx_of,
    resolve,
)
from modelwright.models._size_hints import (
    PROCESSORS,
    pair,
    processor_hints,
    processor_image,
    read_processor,
    text_length,
)
from modelwright.models._task import (
    Architecture,
    modality,
    read_architecture,
)

__all__ = [
    "CONFIG",
    "MANIFEST",
    "MANIFEST_VERSION",
    "MODEL",
    "PROCESSORS",
    "SMALL_FILES",
    "Architecture",
    "BuildCheck",
    "BuildFolder",
    "BuildPart",
    "BuildSource",
    "BuildVerdict",
    "FileDigest",
    "HfSource",
    "Inspection",
    "ModelFacts",
    "NoGuessError",
    "OnnxSource",
    "PairInspection",
    "Source",
    "SourceChoices",
    "check_build",
    "digests_of",
    "fetch",
    "file_digest",
    "fitted",
    "fixed_sizes",
    "guesses",
    "index_bound",
    "inspect",
    "inspect_pair",
    "modality",
    "model_facts",
    "model_files",
    "onnx_of",
    "pair",
    "processor_hints",
    "processor_image",
    "read_architecture",
    "read_build",
    "read_config",
    "read_processor",
    "recorded_inputs",
    "recorded_verdict",
    "refuse_foreign",
    "require_file",
    "resolve",
    "sized_dims",
    "sizes_in",
    "specs_from_graph",
    "symbolic_dims",
    "symbolic_sizes",
    "text_length",
    "weight_files",
    "with_sizes",
]
