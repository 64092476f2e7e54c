"""What the compile tests do inside a child."""

from __future__ import annotations

import numpy as np

from modelwright.targets import open_session, parse_target
from modelwright.worker import task


@task
def outputs_of(model: str, target: str, feeds: dict[str, np.ndarray]) -> tuple[bool, dict[str, np.ndarray]]:
    with open_session(model, parse_target(target)) as session:
        return session.facts.timing_valid, session.run(feeds)
