"""Many machines: a plan on a cluster of workers that each have a store of their own. Artifacts move by digest."""

from modelwright.farm.cluster._cluster import Cluster, ClusterWorker
from modelwright.farm.cluster._executor import DaskExecutor
from modelwright.farm.cluster._serve import WorkerChoices, serve_scheduler, serve_worker
from modelwright.farm.cluster._stages import STAGES
from modelwright.farm.cluster._tls import make_certificates

__all__ = [
    "STAGES",
    "Cluster",
    "ClusterWorker",
    "DaskExecutor",
    "WorkerChoices",
    "make_certificates",
    "serve_scheduler",
    "serve_worker",
]
