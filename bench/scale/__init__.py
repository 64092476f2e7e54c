"""What large and long models cost beside the bare calls: CPU seconds and peak memory of whole processes, bytes on disk.

    python -m bench.scale [ROW ...]

Each row runs our command and the bare call in turns, in fresh processes; rows are kept in bench/results/scale.json as
they come, each with the machine it was measured on (`elsewhere` is
what others had). Bare calls are onnxruntime's (and, for placement and compiling,
onnxruntime with Qualcomm's plugin).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.scale._compile import compiling
from bench.scale._decoder import decoder
from bench.scale._fixed import small, warm
from bench.scale._nodes import nodes
from bench.scale._places import Row
from bench.scale._samples import evaluation
from bench.scale._store import store
from bench.scale._weights import eight, external, int4, streams
from bench.written import environment, read, write

ROWS: Mapping[str, Callable[[], Row]] = {
    "external": external,
    "warm": warm,
    "optimize": lambda: nodes("optimize", 2.0),
    "analyze": lambda: nodes("analyze", 1.3),
    "quantize": lambda: nodes("quantize", 0.3),
    "small": small,
    "int4": int4,
    "streams": streams,
    "eight": eight,
    "decoder": decoder,
    "eval": evaluation,
    "store": store,
    "compile": compiling,
}


def run(names: Sequence[str] = ()) -> Row:
    found: Row = {}
    for name in names or ROWS:
        row = ROWS[name]()
        row["met"] = _met(row)
        row["measured"] = _here()
        print(name, json.dumps(row, indent=1), flush=True)
        # Read again each time: another row may have come to its end meanwhile.
        found = {name: row for name, row in read("scale").items() if name in ROWS}
        row["elsewhere"] = _elsewhere(found.get(name), row["measured"]["machine"])
        found[name] = row
        write("scale", found)
    return found


def _here() -> Row:
    """CPUs differ: one without instructions for SHA-256 takes as long to hash a model as to optimize it."""
    flags = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), "")
    about = {key: value for key, value in environment().items() if key in ("date", "machine", "cpus")}
    return {**about, "sha_instructions": "sha_ni" in flags.split()}


def _elsewhere(before: Row | None, machine: str) -> list[Row]:
    """The last result of every other machine."""
    known = [*before.pop("elsewhere", []), before] if before else []
    return [row for row in known if row["measured"]["machine"] != machine]


def _met(row: Row) -> bool:
    return all(row[name] <= limit for name, limit in row["limits"].items())
