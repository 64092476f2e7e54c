"""Reading and writing ONNX without onnxruntime: loading, external data, canonical fingerprint, summary."""

from modelwright.graph._bodies import subgraphs_of
from modelwright.graph._difference import ModelChange, ModelDifference, difference
from modelwright.graph._epcontext import EpContextNode
from modelwright.graph._external import (
    ExternalDataError,
    ExternalTensor,
    external_data,
    is_external,
    model_bytes,
    stands_alone,
)
from modelwright.graph._fingerprint import fingerprint, structure
from modelwright.graph._inplace import point_at, with_weights_in_place
from modelwright.graph._late import late, names_read
from modelwright.graph._listed import freeze_weights
from modelwright.graph._load import DamagedFileError, FileStamp, Graph, file_stamp, load, mentions, shared
from modelwright.graph._macs import Macs, MacShare, UncountedMacs, count_macs
from modelwright.graph._moved import data_places, with_data_at
from modelwright.graph._precision import Precision, TypeShare
from modelwright.graph._stored_weights import StoredWeight, stored_weights
from modelwright.graph._streamed import StreamedWeight, mapped, pieces, write_streamed
from modelwright.graph._summary import (
    DtypeTotal,
    FunctionEntry,
    ModelFilePart,
    ModelSummary,
    OpCount,
    Opset,
    facts,
    holds_quantized,
    inputs_of,
    operators_in,
    outputs_of,
    summary,
)
from modelwright.graph._types import ValueSpec, dtype_name, stored_bytes
from modelwright.graph._work import work_rank
from modelwright.graph._write import (
    DATA,
    MODEL,
    data_range,
    fits_one_file,
    is_streamed,
    needs_data_file,
    write_message,
    write_model,
)

__all__ = [
    "DATA",
    "MODEL",
    "DamagedFileError",
    "DtypeTotal",
    "EpContextNode",
    "ExternalDataError",
    "ExternalTensor",
    "FileStamp",
    "FunctionEntry",
    "Graph",
    "MacShare",
    "Macs",
    "ModelChange",
    "ModelDifference",
    "ModelFilePart",
    "ModelSummary",
    "OpCount",
    "Opset",
    "Precision",
    "StoredWeight",
    "StreamedWeight",
    "TypeShare",
    "UncountedMacs",
    "ValueSpec",
    "count_macs",
    "data_places",
    "data_range",
    "difference",
    "dtype_name",
    "external_data",
    "facts",
    "file_stamp",
    "fingerprint",
    "fits_one_file",
    "freeze_weights",
    "holds_quantized",
    "inputs_of",
    "is_external",
    "is_streamed",
    "late",
    "load",
    "mapped",
    "mentions",
    "model_bytes",
    "names_read",
    "needs_data_file",
    "operators_in",
    "outputs_of",
    "pieces",
    "point_at",
    "shared",
    "stands_alone",
    "stored_bytes",
    "stored_weights",
    "structure",
    "subgraphs_of",
    "summary",
    "with_data_at",
    "with_weights_in_place",
    "work_rank",
    "write_message",
    "write_model",
    "write_streamed",
]
