"""`wright` as it is, but for the times: they come from a device of known truth, and the coins from a fixed seed.

What a unit says depends on its number and its arm alone, so a search that is killed and goes on must end as one that
nobody disturbed.
"""

import random
import sys
import time
from collections.abc import Iterator

from modelwright.cli import main
from modelwright.measure import UnitRecord
from modelwright.search import _tune
from modelwright.search._variant import Variant
from modelwright.search._workshop import Workshop

SPEED = {"spinning=off": 1.08, "denormals=off": 1.05, "level=basic": 0.9, "threads=1": 0.8}
UNIT_S = 0.01


def unit(shop: Workshop, number: int, variant: Variant | None, *, base_first: bool, fresh: bool) -> UnitRecord:
    if variant is not None and fresh:
        shop.rebuilt(variant)
    changes = () if variant is None else variant.changes
    speed, coin = 1.0, random.Random(f"{number} {base_first} {changes}")
    for change in changes:
        speed *= SPEED.get(str(change), 1.0)
    time.sleep(UNIT_S)
    base, arm = _leg(coin, 1.0), _leg(coin, speed)
    label = None if variant is None else variant.label
    return UnitRecord(number, label, base_first, 1, 1, (), (), base, arm, 0.0, UNIT_S)


def _leg(coin: random.Random, speed: float) -> tuple[tuple[int, ...], ...]:
    session = coin.gauss(0, 0.005)
    return tuple(tuple(_runs(coin, speed, session)) for _ in range(2))


def _runs(coin: random.Random, speed: float, session: float) -> Iterator[int]:
    for _ in range(10):
        yield int(1e7 / speed * (1 + session + coin.gauss(0, 0.01)))


if __name__ == "__main__":
    Workshop.unit = unit  # type: ignore[method-assign]
    _tune.secrets.randbits = lambda bits: 7  # type: ignore[assignment]
    sys.exit(main())
