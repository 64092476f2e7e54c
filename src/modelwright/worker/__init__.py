"""Child processes: isolation, limits, the ways they end, and other interpreters."""

from modelwright.worker._create import create_runtime
from modelwright.worker._exit import Exit, decode_exit
from modelwright.worker._limits import limited, memory_ceiling, said_limits, sharing
from modelwright.worker._result import CallResult, ChildError, Failure, FailureKind
from modelwright.worker._runner import cpu_share, progress, user_code
from modelwright.worker._runtime import Runtime
from modelwright.worker._runtimes import RuntimeStatus, find_runtime, list_runtimes, remove_runtime, runtime_names
from modelwright.worker._so_far import SoFar, read_so_far
from modelwright.worker._task import RemoteTask, Task, TaskFunction, task
from modelwright.worker._user_file import load_file
from modelwright.worker._worker import Worker, run

__all__ = [
    "CallResult",
    "ChildError",
    "Exit",
    "Failure",
    "FailureKind",
    "RemoteTask",
    "Runtime",
    "RuntimeStatus",
    "SoFar",
    "Task",
    "TaskFunction",
    "Worker",
    "cpu_share",
    "create_runtime",
    "decode_exit",
    "find_runtime",
    "limited",
    "list_runtimes",
    "load_file",
    "memory_ceiling",
    "progress",
    "read_so_far",
    "remove_runtime",
    "run",
    "runtime_names",
    "said_limits",
    "sharing",
    "task",
    "user_code",
]
