"""Where the work of a verb is done: here, or on the machines of a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy

if TYPE_CHECKING:
    from modelwright.farm import cluster
else:
    cluster = lazy("modelwright.farm.cluster")


@contextlib.contextmanager
def executor_on(scheduler: str | None, tls: str | Path | None = None) -> Iterator[cluster.DaskExecutor | None]:
    """The executor of a cluster; None is this machine's own."""
    if scheduler is None:
        yield None
        return
    with cluster.Cluster(scheduler, tls=None if tls is None else Path(tls)) as found:
        yield cluster.DaskExecutor(found)
