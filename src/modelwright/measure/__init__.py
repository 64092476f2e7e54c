"""Measurements: one timing loop, what watches it, and comparisons that end in a verdict."""

from modelwright.measure._against import against, require_times
from modelwright.measure._against_types import Against, Changed, TypicalTime
from modelwright.measure._operator_types import OperatorChange, OperatorChanges
from modelwright.measure._operators import explained, traced_changes, traced_operators
from modelwright.measure._perf import perf
from modelwright.measure._perf_types import (
    PROTOCOL,
    ColdLoad,
    FailureFact,
    MeasurementFailed,
    MeasurementInterrupted,
    PerfOptions,
    PerfResult,
    ProcessWatch,
    Requested,
    SessionRecord,
    Throughput,
)
from modelwright.measure.races._arm import ReadyArm, inputs_digest, ready_arm
from modelwright.measure.races._arm_spec import Arm, parse_arm, parse_arms
from modelwright.measure.races._compare import compare
from modelwright.measure.races._outputs import OutputCheck, Outputs, check_outputs, first_unlike, says_something
from modelwright.measure.races._schedule import Schedule, Turn
from modelwright.measure.races._sentence import quantile_name, sentence
from modelwright.measure.races._settling import QUIETER, more_budget, what_settles
from modelwright.measure.races._types import (
    COMPARE_PROTOCOL,
    ArmResult,
    CompareOptions,
    CompareResult,
    ComparisonFailed,
    ComparisonInterrupted,
)
from modelwright.measure.races._unit import ArmFailed, UnitPlan, UnitRecord, UnitRunner, unit_plan, with_energy
from modelwright.measure.telemetry._telemetry import Telemetry
from modelwright.measure.telemetry._types import Meter, NoMeter, TelemetryResult, TelemetrySeries
from modelwright.measure.timing._leg import LegPlan, TimedLeg, measure_leg, typical_ms
from modelwright.measure.timing._lock import measurement_lock
from modelwright.measure.timing._sink import SampleSink, read_samples, recent_samples
from modelwright.measure.timing._stats import Latency, latency
from modelwright.measure.timing._subject import InputChoice, InputFact, Subject, make_subject
from modelwright.measure.traces._monitor import TraceMonitor
from modelwright.measure.traces._monitor_contract import (
    Monitor,
    Monitored,
    Runs,
    Window,
    require_effective,
    run_monitored,
)
from modelwright.measure.traces._trace import TraceOptions, trace
from modelwright.measure.traces._types import Operator, OpTrace, ShareSpread, TraceReason, TraceShare, TraceStatus

__all__ = [
    "COMPARE_PROTOCOL",
    "PROTOCOL",
    "QUIETER",
    "Against",
    "Arm",
    "ArmFailed",
    "ArmResult",
    "Changed",
    "ColdLoad",
    "CompareOptions",
    "CompareResult",
    "ComparisonFailed",
    "ComparisonInterrupted",
    "FailureFact",
    "InputChoice",
    "InputFact",
    "Latency",
    "LegPlan",
    "MeasurementFailed",
    "MeasurementInterrupted",
    "Meter",
    "Monitor",
    "Monitored",
    "NoMeter",
    "OpTrace",
    "Operator",
    "OperatorChange",
    "OperatorChanges",
    "OutputCheck",
    "Outputs",
    "PerfOptions",
    "PerfResult",
    "ProcessWatch",
    "ReadyArm",
    "Requested",
    "Runs",
    "SampleSink",
    "Schedule",
    "SessionRecord",
    "ShareSpread",
    "Subject",
    "Telemetry",
    "TelemetryResult",
    "TelemetrySeries",
    "Throughput",
    "TimedLeg",
    "TraceMonitor",
    "TraceOptions",
    "TraceReason",
    "TraceShare",
    "TraceStatus",
    "Turn",
    "TypicalTime",
    "UnitPlan",
    "UnitRecord",
    "UnitRunner",
    "Window",
    "against",
    "check_outputs",
    "compare",
    "explained",
    "first_unlike",
    "inputs_digest",
    "latency",
    "make_subject",
    "measure_leg",
    "measurement_lock",
    "more_budget",
    "parse_arm",
    "parse_arms",
    "perf",
    "quantile_name",
    "read_samples",
    "ready_arm",
    "recent_samples",
    "require_effective",
    "require_times",
    "run_monitored",
    "says_something",
    "sentence",
    "trace",
    "traced_changes",
    "traced_operators",
    "typical_ms",
    "unit_plan",
    "what_settles",
    "with_energy",
]
