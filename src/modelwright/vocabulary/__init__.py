"""Values that every room speaks."""

from modelwright.vocabulary._data import (
    RANDOM,
    Data,
    Layout,
    as_data,
)
from modelwright.vocabulary._on import On
from modelwright.vocabulary._passed import weakest
from modelwright.vocabulary._pixels import PixelInputs, PixelType
from modelwright.vocabulary._progress import OnProgress, Progress, silent, within
from modelwright.vocabulary._result import RESULT_VERSION, HasPage, Result
from modelwright.vocabulary._sized import GUESS, Origin, Sized
from modelwright.vocabulary._spec import (
    Fill,
    FillKind,
    InputSpec,
    TensorSpec,
    static,
)
from modelwright.vocabulary._task import (
    TASK_WORDS,
    TASKS,
    Modality,
    ModelTask,
    find_task,
    read_task,
)

__all__ = [
    "GUESS",
    "RANDOM",
    "RESULT_VERSION",
    "TASKS",
    "TASK_WORDS",
    "Data",
    "Fill",
    "FillKind",
    "HasPage",
    "InputSpec",
    "Layout",
    "Modality",
    "ModelTask",
    "On",
    "OnProgress",
    "Origin",
    "PixelInputs",
    "PixelType",
    "Progress",
    "Result",
    "Sized",
    "TensorSpec",
    "as_data",
    "find_task",
    "read_task",
    "silent",
    "static",
    "weakest",
    "within",
]
