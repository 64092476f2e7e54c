"""A claim on its way: what every step of it needs to know."""

from __future__ import annotations

from modelwright._dataclass import dataclass
from modelwright.store import Store
from modelwright.support._above import Verbs
from modelwright.support._case import Contribution
from modelwright.support._claim import Claim
from modelwright.support._notebook import Notebook
from modelwright.vocabulary import OnProgress

WHOLE = "whole-1"
"""The word for all parts together: that of the worst."""
CONTRIBUTION, WITHOUT = "contribution", "base"


@dataclass(frozen=True, eq=False)
class March:
    """The claim, the notebook, the contribution, what builds and what asks."""

    claim: Claim
    given: Contribution
    notebook: Notebook
    store: Store
    verbs: Verbs
    tell: OnProgress

    @property
    def contributed(self) -> bool:
        return self.claim.contributed
