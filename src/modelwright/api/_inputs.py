"""The inputs that perf and compare feed."""

from __future__ import annotations

from collections.abc import Mapping

from modelwright.measure import InputChoice
from modelwright.vocabulary import Data, InputSpec, as_data


def input_choice(
    data: Data | str | None, batch: int | None, dims: Mapping[str, int] | None, recorded: InputSpec | None = None
) -> InputChoice:
    return InputChoice(as_data(data), batch, dict(dims or {}), recorded)
