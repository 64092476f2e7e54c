"""The bench of the search on simulated devices: what it says of a hundred runs rests on one like this."""

import numpy as np
from bench import tune_sim


def test_what_was_planted_is_found():
    rng = np.random.default_rng([tune_sim.SEED + 1, 0])
    truth = tune_sim.planted(rng)
    champion, *_ = tune_sim.searched(tune_sim.DEVICES[0], truth, rng)
    assert truth.of(champion) >= truth.best / (1 + tune_sim.WITHIN)
