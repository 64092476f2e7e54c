"""Which EP takes which node of a model, asked once; and whether it takes what a pass wrote."""

from modelwright.stages.place._claim import CLAIM, ClaimOutcome, ClaimParams
from modelwright.stages.place._place import PLACE, PlaceParams

__all__ = ["CLAIM", "PLACE", "ClaimOutcome", "ClaimParams", "PlaceParams"]
