"""What there is to do, as nodes of a plan, and doing it through the store."""

from modelwright.graph import MODEL
from modelwright.plans._executor import Executor, LocalExecutor, at_once, run_all
from modelwright.plans._forecast import History, StageForecast
from modelwright.plans._model import DiskModel, Model, ModelInput, left_in_store, model_paths
from modelwright.plans._node import Node, Plan, Ref
from modelwright.plans._outlook import Foreseen, State, foresee
from modelwright.plans._result import NodeResult, NotKeptError, StageResult, made_once, peek_node, run_node
from modelwright.plans._schedule import NodeSchedule

__all__ = [
    "MODEL",
    "DiskModel",
    "Executor",
    "Foreseen",
    "History",
    "LocalExecutor",
    "Model",
    "ModelInput",
    "Node",
    "NodeResult",
    "NodeSchedule",
    "NotKeptError",
    "Plan",
    "Ref",
    "StageForecast",
    "StageResult",
    "State",
    "at_once",
    "foresee",
    "left_in_store",
    "made_once",
    "model_paths",
    "peek_node",
    "run_all",
    "run_node",
]
