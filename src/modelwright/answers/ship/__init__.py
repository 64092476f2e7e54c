"""A package for users' machines: variants, the order in which they are asked, what was shown about them."""

from modelwright.answers.ship._asking import PackageQuestion, ship
from modelwright.answers.ship._gates import SpeedAnswer, cpu_variant
from modelwright.answers.ship._package import PACKAGE, PackageDraft, draft_package
from modelwright.answers.ship._selection import SELECTION, SELECTORS
from modelwright.answers.ship._types import (
    GATES,
    HERE,
    NOT_RUN,
    ChainStep,
    ChosenVariant,
    GateRow,
    LeastVersion,
    ShippedVariant,
    ShipResult,
    VariantModel,
    VariantTrial,
    Waiver,
)
from modelwright.answers.ship._variants import in_order
from modelwright.answers.ship._waivers import read_waivers

__all__ = [
    "GATES",
    "HERE",
    "NOT_RUN",
    "PACKAGE",
    "SELECTION",
    "SELECTORS",
    "ChainStep",
    "ChosenVariant",
    "GateRow",
    "LeastVersion",
    "PackageDraft",
    "PackageQuestion",
    "ShipResult",
    "ShippedVariant",
    "SpeedAnswer",
    "VariantModel",
    "VariantTrial",
    "Waiver",
    "cpu_variant",
    "draft_package",
    "in_order",
    "read_waivers",
    "ship",
]
