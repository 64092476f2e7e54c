"""Many models for many targets: the matrix and its ledger, the machines that share the work, feeds to publish to."""

from modelwright.farm._cells import (
    EIGHT,
    CellChoices,
    CellGroup,
    MatrixCell,
    find_cell,
    group_cells,
    precision_for,
)
from modelwright.farm._list import (
    AnyRows,
    MatrixRow,
    chosen_rows,
    list_schema,
    read_rows,
)
from modelwright.farm._measured import (
    CellAccuracy,
    CellPerf,
    PartTime,
    accuracy_of,
    time_of,
)
from modelwright.farm._orders import (
    MatrixRecall,
    every_order,
    last_order,
    note_order,
)
from modelwright.farm._plan import (
    plan_matrix,
)
from modelwright.farm._result import (
    MATRIX_PAGE,
    MODEL_PAGE,
    LinkedMatrix,
    MatrixModel,
    MatrixPlan,
    MatrixResult,
    MatrixTotals,
    PlannedCell,
)
from modelwright.farm._run import (
    MatrixRun,
    MatrixWish,
    is_settled,
    statuses,
)
from modelwright.farm._states import (
    CLASSES,
    STATES,
    CellFacts,
    CellFailure,
    CellState,
    CellStatus,
    FailureClass,
)

__all__ = [
    "CLASSES",
    "EIGHT",
    "MATRIX_PAGE",
    "MODEL_PAGE",
    "STATES",
    "AnyRows",
    "CellAccuracy",
    "CellChoices",
    "CellFacts",
    "CellFailure",
    "CellGroup",
    "CellPerf",
    "CellState",
    "CellStatus",
    "FailureClass",
    "LinkedMatrix",
    "MatrixCell",
    "MatrixModel",
    "MatrixPlan",
    "MatrixRecall",
    "MatrixResult",
    "MatrixRow",
    "MatrixRun",
    "MatrixTotals",
    "MatrixWish",
    "PartTime",
    "PlannedCell",
    "accuracy_of",
    "chosen_rows",
    "every_order",
    "find_cell",
    "group_cells",
    "is_settled",
    "last_order",
    "list_schema",
    "note_order",
    "plan_matrix",
    "precision_for",
    "read_rows",
    "statuses",
    "time_of",
]
