"""What a variant of another precision loses on labelled data."""

from __future__ import annotations

from modelwright import evaluation
from modelwright.evaluation import EvalOptions, NoRowsLeftError
from modelwright.judge import VerdictKind
from modelwright.pipeline import judged_rows
from modelwright.search._types import TuneOptions
from modelwright.search._variant import Variant
from modelwright.search._workshop import Workshop
from modelwright.vocabulary import OnProgress


def lost(variant: Variant, shop: Workshop, options: TuneOptions, tell: OnProgress) -> tuple[float | None, str | None]:
    """How much of the metric, and why it is not known to keep what it must."""
    data, after = judged_rows(shop.recipe_of(variant))
    _, of_baseline = judged_rows(shop.job.recipe)
    asked = EvalOptions(max_drop=options.max_drop, after=max(after, of_baseline))
    files = shop.file(variant), shop.file(Variant())
    try:
        found = evaluation.evaluate(*files, data, options.task, asked, on_progress=tell)
    except NoRowsLeftError as error:
        return None, f"accuracy: {error.cause}: give more rows"
    drop = None if found.values is None else found.values.drop
    if found.verdict is VerdictKind.PASS:
        return drop, None
    return drop, f"accuracy: {'; '.join(found.reasons) or found.verdict}"
