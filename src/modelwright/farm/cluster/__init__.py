"""Many machines: a plan on a cluster of workers that each have a store of their own. Artifacts move by digest."""

from modelwright.farm.cluster._cluster import Cluster, ClusterWorker
from modelwright.farm.cluster._executor import DaskExecutor
from modelwright.farm.cluster._freight import Freight
from modelwright.farm.cluster._hand import Loan
from modelwright.farm.cluster._lending import Lent, VerbOrder, lend
from modelwright.farm.cluster._serve import WorkerChoices, serve_scheduler, serve_worker
from modelwright.farm.cluster._stages import STAGES
from modelwright.farm.cluster._tls import make_certificates
from modelwright.farm.cluster._wire import VerbAnswer, forged

__all__ = [
    "STAGES",
    "Cluster",
    "ClusterWorker",
    "DaskExecutor",
    "Freight",
    "Lent",
    "Loan",
    "VerbAnswer",
    "VerbOrder",
    "WorkerChoices",
    "forged",
    "lend",
    "make_certificates",
    "serve_scheduler",
    "serve_worker",
]
