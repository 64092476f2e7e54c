"""Whether a device still works, asked with a model that is known to be good."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import WrightError
from modelwright.targets._probe import ONE_ADD
from modelwright.targets._session import ModelBytes, open_session
from modelwright.targets._target import Target
from modelwright.worker import run, task

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

_PROOF_S = 120.0


def target_fails(target: Target) -> str | None:
    """Why a device that should be there does not add two numbers, asked in a child of its own; None where it does."""
    try:
        return run(_add_there.call(target), timeout=_PROOF_S).unwrap()
    except WrightError as error:
        return f"{error.problem}: {error.cause}"


@task
def _add_there(target: Target) -> str | None:
    numbers = np.arange(4, dtype=np.float32).reshape(1, 4)
    with open_session(ModelBytes(ONE_ADD), target) as session:
        (result,) = session.run({session.inputs[0].name: numbers}).values()
    return None if np.allclose(result, 2 * numbers, atol=0.05) else f"wrong answer: {result.tolist()}"
