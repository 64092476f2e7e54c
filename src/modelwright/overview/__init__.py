"""What is known of every model on every target, gathered from records, the ledger, the catalogue and the findings.

Nothing is measured or judged here: every number is that of a record, and says of which.
"""

from modelwright.overview._find import FindWish, Found, FoundModel, PassedOver, shortlist
from modelwright.overview._gather import gather
from modelwright.overview._hub import HubModels, hub_models
from modelwright.overview._types import (
    AS_IT_CAME,
    UNKNOWN,
    MatrixOrder,
    Overview,
    OverviewCell,
    OverviewModel,
    Sourced,
    SourcedRecord,
)

__all__ = [
    "AS_IT_CAME",
    "UNKNOWN",
    "FindWish",
    "Found",
    "FoundModel",
    "HubModels",
    "MatrixOrder",
    "Overview",
    "OverviewCell",
    "OverviewModel",
    "PassedOver",
    "Sourced",
    "SourcedRecord",
    "gather",
    "hub_models",
    "shortlist",
]
