"""How dask is set in every process of a cluster."""

from __future__ import annotations

from typing import Any

DASK: dict[str, Any] = {
    # Dask wants to serve pages about itself.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # A machine that says nothing for a minute is gone, and its work is given to another: dask would wait for up to ten.
    "distributed.scheduler.worker-ttl": "60s",
    # What nobody looks at, and costs time on every machine: stacks a hundred times a second, a clock every 20 ms.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.scheduler.active-memory-manager.start": False,
    # A job is given to a machine that is free, so there is nothing to steal, and nothing that two could begin.
    "distributed.scheduler.work-stealing": False,
}
