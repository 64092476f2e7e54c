"""The EP catalogue as data, targets as values, and what this machine can run."""

from modelwright.targets._assignment import mapped_data
from modelwright.targets._binding import (
    Binding,
    GraphOptimization,
    SessionSpec,
    bind,
    resolved_threads,
    session_options,
)
from modelwright.targets._catalogue import Catalogue, Device, ExecutionProvider, Soc, catalogue
from modelwright.targets._host import Accelerator, Cpu, Host, read_cpu, read_host, usable_cpus
from modelwright.targets._isa import on_this_host
from modelwright.targets._placement import (
    BoundaryCopy,
    EpShare,
    LeftNode,
    OpTally,
    PlacedNode,
    Placement,
    PlacementStatus,
    placement,
)
from modelwright.targets._plugins import LIBRARIES_VARIABLE, Plugin, installed_plugins, library_digest
from modelwright.targets._probe import Builtin, EpDevice, new_options
from modelwright.targets._products import products_saturate
from modelwright.targets._reference_sessions import open_as_meant, open_as_written, open_exact
from modelwright.targets._session import (
    AssignedGroup,
    AssignedNode,
    BoundSession,
    ModelBytes,
    NotBound,
    SessionFacts,
    SessionTensor,
    open_session,
)
from modelwright.targets._survey import EpRow, RuntimeRow, Status, Survey, survey
from modelwright.targets._target import Target, known_targets, make_target, parse_target, parse_targets
from modelwright.targets.eps import (
    DeviceBlock,
    DeviceOp,
    DeviceTrace,
    EpAdapter,
    Refusal,
    TensorRule,
    TraceProblem,
    adapter_of,
)

__all__ = [
    "LIBRARIES_VARIABLE",
    "Accelerator",
    "AssignedGroup",
    "AssignedNode",
    "Binding",
    "BoundSession",
    "BoundaryCopy",
    "Builtin",
    "Catalogue",
    "Cpu",
    "Device",
    "DeviceBlock",
    "DeviceOp",
    "DeviceTrace",
    "EpAdapter",
    "EpDevice",
    "EpRow",
    "EpShare",
    "ExecutionProvider",
    "GraphOptimization",
    "Host",
    "LeftNode",
    "ModelBytes",
    "NotBound",
    "OpTally",
    "PlacedNode",
    "Placement",
    "PlacementStatus",
    "Plugin",
    "Refusal",
    "RuntimeRow",
    "SessionFacts",
    "SessionSpec",
    "SessionTensor",
    "Soc",
    "Status",
    "Survey",
    "Target",
    "TensorRule",
    "TraceProblem",
    "adapter_of",
    "bind",
    "catalogue",
    "installed_plugins",
    "known_targets",
    "library_digest",
    "make_target",
    "mapped_data",
    "new_options",
    "on_this_host",
    "open_as_meant",
    "open_as_written",
    "open_exact",
    "open_session",
    "parse_target",
    "parse_targets",
    "placement",
    "products_saturate",
    "read_cpu",
    "read_host",
    "resolved_threads",
    "session_options",
    "survey",
    "usable_cpus",
]
