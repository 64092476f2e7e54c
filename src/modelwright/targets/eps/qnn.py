"""Qualcomm QNN: chips by name or architecture, reasons in its log, cycles of every operator in a CSV.

One execution of one partition is one block of the CSV. Cycles are summed over threads, so an operator's time is its
share of the block's own cycles and µs; a ratio taken from another block would be wrong. Standard library only.
"""

from __future__ import annotations

import csv
import functools
import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from modelwright.errors import UsageError, did_you_mean
from modelwright.targets._catalogue import ExecutionProvider, Soc
from modelwright.targets.eps._adapter import EpAdapter, Explanation, Refusal, RefusalKind, TakenOperators, TensorRule
from modelwright.targets.eps._trace import DeviceBlock, DeviceOp, DeviceTrace, TraceProblem

CSV_MISSING = "qnn_csv_missing"
CSV_DAMAGED = "qnn_csv_damaged"
NO_OPERATORS = "qnn_no_operators"
CYCLES_NOT_CONSERVED = "qnn_cycles_not_conserved"
SDK_NEEDED = "qnn_sdk_needed"

_EP = "QNNExecutionProvider"
_CSV, _MAPPING = "qnn.csv", "qnn_op_trace.json"
_REFUSED = re.compile(
    r"Validation FAILED for \d+ nodes in \w*NodeUnit \([^)]*\) ?:\n"
    r"(?P<nodes>(?:\tOperator type: .*\n)+)"
    r"\tREASON : (?P<reason>.*(?:\n(?!\n|\d{4}-|\x1b).*)*)"
)
_REFUSED_NODE = re.compile(r"\tOperator type: \S+ Node name: (?P<name>.*) Node index: \d+")
# It is told to leave these: it keeps the quantization of graph inputs and outputs outside by default.
_POLICY = re.compile(r"is configured to not take")
_NORMALIZATIONS = frozenset({"LayerNormalization", "InstanceNormalization", "BatchNormalization"})
_WIDE_SCALES = {"Sigmoid": (1 / 65536, 0), "Tanh": (1 / 32768, 32768)}
_BLOCK_CYCLES = "Accelerator (execute) time (cycles)"
_BLOCK_US = "Accelerator (execute) time"
_HVX_THREADS = "Number of HVX threads used"
_COLUMNS = ("Message", "Time", "Unit of Measurement", "Event Level", "Event Identifier")
_SOURCES = "ONNX Source Ops"
_OPERATOR = re.compile(r"^(?P<name>.*?)[ :](?P<key>OpId_\d+)(?: \(cycles\))?$")
_IO = ("Input", "Output")
# Σ operators = block holds exactly where it was looked at; this is room for rounding only.
_TOLERANCE = 0.001


class QnnAdapter(EpAdapter):
    # Nodes are claimed before graphs are finalised, so the cheapest finalisation gives the same answer sooner.
    quick_options: ClassVar[Mapping[str, str]] = {"htp_graph_finalization_optimization_mode": "1"}
    narrowest_range = 1e-4
    # With steps below 3e-6 (a range of 0.2) its 16-bit Softmax is off by up to a half; what wider steps lose is less
    # than one step of the output. `tests/ep/quantize/test_npu_faults.py` shows it on the simulator.
    narrowest_inputs: ClassVar[Mapping[str, float]] = {"Softmax": 0.5}
    lacks_detail = TraceProblem(
        SDK_NEEDED, "DRAM and VTCM traffic needs Qualcomm's profile viewer; cycles and times are complete"
    )
    trace_advice: ClassVar[Mapping[str, str]] = {
        CSV_MISSING: "partitions are shown whole; end other tracing tools and try again",
        SDK_NEEDED: "open the profile in Qualcomm's profile viewer for memory traffic",
    }

    def chip(self, provider: ExecutionProvider, words: Mapping[str, str]) -> dict[str, str]:
        found = dict(words)
        if "htp_arch" in found:
            found["htp_arch"] = _known_arch(provider, found["htp_arch"])
        if "soc" in found:
            _apply_soc(provider, found)
        return found

    def chip_options(self, provider: ExecutionProvider, chip: Mapping[str, str]) -> dict[str, str]:
        options = dict(chip)
        soc = options.pop("soc", None)
        known = provider.socs.get(soc or "")
        if known is not None:
            return {**known.words, **options}
        return options if soc is None else {**options, "soc_model": soc}

    def explain(self, words: str, soc: Soc | None) -> Explanation | None:
        """Memory is what it names when float operators meet a chip without fp16; on one with fp16 it may mean that."""
        if "QNN_COMMON_ERROR_MEM_ALLOC" not in words or (soc is not None and soc.fp16):
            return None
        chip = "the chip is not in our table and may have none" if soc is None else f"{soc.title} has none"
        cause = f"QNN_COMMON_ERROR_MEM_ALLOC is what QNN says when float operators meet a chip without fp16, and {chip}"
        return Explanation(cause, "quantize all of the model (`precision` w8a16), or build for a chip that has fp16")

    def refusals(self, log: str) -> dict[str, Refusal]:
        """It may be asked twice; its last word counts."""
        found = {}
        for entry in _REFUSED.finditer(log):
            reason = " ".join(entry["reason"].split())
            kind: RefusalKind = "policy" if _POLICY.search(reason) else "unsupported"
            for node in _REFUSED_NODE.finditer(entry["nodes"]):
                found[node["name"]] = Refusal(kind, reason, entry[0].strip())
        return found

    def tensor_rules(self, op_type: str, weights: str, activations: str) -> tuple[TensorRule, ...]:
        """Measured with the real compiler: signed 8-bit gammas, and 16-bit Sigmoid and Tanh outputs with another scale
        than these, are left to the CPU."""
        if op_type in _NORMALIZATIONS and weights == "int8":
            return (TensorRule("weight", "uint8"),)
        if op_type in _WIDE_SCALES and activations == "uint16":
            scale, zero_point = _WIDE_SCALES[op_type]
            return (TensorRule("output", "uint16", scale, zero_point),)
        return ()

    def operators(self, activation_bits: int) -> TakenOperators | None:
        """By a table that its compiler filled, with ONNX's own node tests (`bench/npu_operators.py`)."""
        return _taken(f"a{activation_bits}")

    def trace_options(self, folder: Path) -> dict[str, str]:
        """Its own level "basic" records no operators; a level it does not know it ignores without a word. It appends to
        a file that is already there."""
        return {
            "profiling_level": "detailed",
            "profiling_file_path": str(folder / _CSV),
            "enable_framework_op_trace": "1",
            "framework_op_trace_dir": str(folder),
        }

    def read_trace(self, folder: Path) -> DeviceTrace:
        return read_csv(folder / _CSV, folder / _MAPPING)


ADAPTER = QnnAdapter()


@functools.cache
def _taken(width: str) -> TakenOperators | None:
    rows = tomllib.loads(Path(__file__).with_name("qnn_operators.toml").read_text(encoding="utf-8"))["operators"]
    if not all(width in row for row in rows.values()):
        return None
    integers = frozenset(name for name, row in rows.items() if row[width])
    return TakenOperators(integers, frozenset(name for name, row in rows.items() if row["float"]) - integers)


def _known_arch(provider: ExecutionProvider, value: str) -> str:
    arch = value.removeprefix("v")
    allowed = provider.chip_keys["htp_arch"]
    if arch not in allowed:
        raise UsageError(
            f"unknown htp_arch '{value}'",
            cause=f"known architectures are {', '.join(allowed)}",
            fix="use for example qnn-npu:htp_arch=73 (Snapdragon X Elite)",
        )
    return arch


def _apply_soc(provider: ExecutionProvider, chip: dict[str, str]) -> None:
    """Name the chip by its key and add its architecture; a number we do not know stays a soc_model."""
    value = chip["soc"]
    by_model = {soc.words["soc_model"]: name for name, soc in provider.socs.items()}
    name = by_model.get(value, value)
    soc = provider.socs.get(name)
    if soc is None:
        if not value.isdigit():
            raise UsageError(
                f"unknown soc '{value}'",
                cause=f"known chips are {', '.join(provider.socs)}",
                fix=did_you_mean(value, provider.socs) or "give its QNN soc_model number and htp_arch",
            )
        return
    arch = soc.words["htp_arch"]
    if chip.get("htp_arch", arch) != arch:
        raise UsageError(
            f"soc={value} and htp_arch={chip['htp_arch']} contradict each other",
            cause=f"{soc.title} has htp_arch {arch}",
            fix="give only soc= or make them agree",
        )
    chip["soc"] = name
    chip["htp_arch"] = arch


def read_csv(csv_file: Path, mapping_file: Path) -> DeviceTrace:
    """Raise `TraceProblem` when the CSV is missing, is not as expected, or its cycles do not add up."""
    try:
        with csv_file.open(encoding="utf-8", newline="") as file:
            blocks = tuple(parse_blocks(file))
    except FileNotFoundError:
        words = "QNN wrote no profile; on Windows an active ETW trace of onnxruntime keeps it from writing"
        raise TraceProblem(CSV_MISSING, words) from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TraceProblem(CSV_DAMAGED, f"QNN's profile cannot be read: {error}") from None
    if not any(block.ops for block in blocks):
        raise TraceProblem(NO_OPERATORS, "QNN's profile holds totals but no operators")
    for block in blocks:
        _require_conserved(block)
    return DeviceTrace(_EP, "qnn csv", blocks, _op_types(mapping_file))


def parse_blocks(lines: Iterable[str]) -> Iterator[DeviceBlock]:
    """Columns are found by name: their order and number differ between versions."""
    rows = csv.DictReader(lines)
    missing = [name for name in _COLUMNS if name not in (rows.fieldnames or ())]
    if missing:
        raise TraceProblem(CSV_DAMAGED, f"QNN's profile has no column {missing[0]!r}")
    totals: dict[str, float] = {}
    ops: list[DeviceOp] = []
    for row in rows:
        message, level, unit = row["Message"], row["Event Level"], row["Unit of Measurement"]
        if message == "NODE" and unit == "CYCLES":
            ops.append(_operator(row))
        elif level == "ROOT" and message == "BACKEND":
            totals.update(_total(row))
        elif level == "ROOT" and message == "EXECUTE":
            yield _block(totals, ops)
            totals, ops = {}, []


def _operator(row: Mapping[str, str | None]) -> DeviceOp:
    found = _OPERATOR.match(row["Event Identifier"] or "")
    cycles = _number(row["Time"])
    if found is None or cycles is None:
        words = f"QNN's profile has an operator that cannot be read: {row['Event Identifier']!r}"
        raise TraceProblem(CSV_DAMAGED, words)
    sources = tuple(name.strip() for name in (row.get(_SOURCES) or "").split(";") if name.strip())
    return DeviceOp(found["name"], found["key"], int(cycles), sources, is_io=found["name"] in _IO)


def _total(row: Mapping[str, str | None]) -> dict[str, float]:
    """A number by its name; QNN writes UNKNOWN where it has none."""
    number = _number(row["Time"])
    return {} if number is None else {row["Event Identifier"] or "": number}


def _number(text: str | None) -> float | None:
    try:
        return float(text or "")
    except ValueError:
        return None


def _block(totals: Mapping[str, float], ops: list[DeviceOp]) -> DeviceBlock:
    if _BLOCK_CYCLES not in totals or _BLOCK_US not in totals:
        lost = _BLOCK_CYCLES if _BLOCK_CYCLES not in totals else _BLOCK_US
        raise TraceProblem(CSV_DAMAGED, f"an execution in QNN's profile has no {lost!r}")
    threads = totals.get(_HVX_THREADS)
    return DeviceBlock(
        int(totals[_BLOCK_CYCLES]), totals[_BLOCK_US], None if threads is None else int(threads), tuple(ops)
    )


def _require_conserved(block: DeviceBlock) -> None:
    total = sum(op.cycles for op in block.ops)
    if abs(total - block.cycles) > _TOLERANCE * max(block.cycles, 1):
        words = f"QNN's operators took {total:,} cycles where the whole took {block.cycles:,}"
        raise TraceProblem(CYCLES_NOT_CONSERVED, words)


def _op_types(path: Path) -> dict[tuple[str, str], str]:
    """Empty for a model that was compiled before: then QNN composes nothing and writes no such file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return {
            (graph["graph_name"], op["dst_name"]): op["dst_qnn_op_type"]
            for graph in document["subgraph_traces"]
            for op in graph["op_mappings"]
        }
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, TypeError) as error:
        raise TraceProblem(CSV_DAMAGED, f"QNN's operator list cannot be read: {error}") from None
