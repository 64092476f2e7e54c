"""optuna as one who proposes combinations: it is told what was seen, asked for a few more, and forgotten.

Nothing is kept between two calls, so a search that was killed proposes the same when it goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from modelwright._installed import installed
from modelwright._lazy import lazy
from modelwright.search._combining import Proposer, Seen, Space
from modelwright.search._variant import AxisChange, Variant

if TYPE_CHECKING:
    import optuna
else:
    optuna = lazy("optuna")

# What does not work is as bad as what takes forever.
_BROKEN = -1.0
_TRIES, _CANDIDATES = 16, 64
_SEEDS = 1 << 32


def find_proposer() -> Proposer | None:
    """None where optuna is not installed."""
    return propose if installed("optuna") is not None else None


def propose(space: Space, seen: Seen, seed: int, count: int) -> list[Variant]:
    """Up to `count` combinations that nobody has seen."""
    with _quiet():
        study = _told(space, seen, seed)
        known, found = {variant for variant, _ in seen}, dict[Variant, None]()
        for _ in range(_TRIES * count):
            variant = _variant(space, study.ask(_distributions(space)).params)
            if variant not in known and len(variant.changes) > 1:
                found[variant] = None
            if len(found) == count:
                break
        return list(found)


def _told(space: Space, seen: Seen, seed: int) -> optuna.Study:
    """Changes depend on each other, so they are drawn together; what was asked for counts as poor until it is told."""
    sampler = optuna.samplers.TPESampler(
        n_startup_trials=0,
        n_ei_candidates=_CANDIDATES,
        multivariate=True,
        constant_liar=True,
        seed=seed % _SEEDS,
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    distributions = _distributions(space)
    for variant, gain in seen:
        params = {slot: _index(space[slot], variant) for slot in space}
        value = _BROKEN if gain is None else gain
        study.add_trial(optuna.trial.create_trial(params=params, distributions=distributions, value=value))
    return study


def _distributions(space: Space) -> dict[str, Any]:
    return {
        slot: optuna.distributions.CategoricalDistribution(range(1 + len(changes))) for slot, changes in space.items()
    }


def _index(changes: tuple[AxisChange, ...], variant: Variant) -> int:
    """0 is none of them."""
    return next((place for place, change in enumerate(changes, 1) if change in variant.changes), 0)


def _variant(space: Space, params: Mapping[str, Any]) -> Variant:
    return Variant(tuple(sorted(space[slot][place - 1] for slot, place in params.items() if place)))


@contextmanager
def _quiet() -> Iterator[None]:
    """It tells of every study on stderr."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
