"""Runs the benchmarks named on the command line, or all but the long proofs, and writes bench/results/NAME.json."""

from __future__ import annotations

import argparse
import importlib
import json
import sys

from bench.written import write

NAMES = (
    "startup",
    "inspect_model",
    "store_hit",
    "quantize_memory",
    "analyze_speed",
    "perf_overhead",
    "debug_memory",
    "build_cost",
    "plans",
    "one_of_each",
    "tune_overhead",
)
PROOFS = (
    "aa_real",
    "eval_power",
    "planted",
    "diagnose",
    "advise",
    "equality",
    "two_runtimes",
    "real_repairs",
    "passed",
    "peers",
    "old_cpu",
    "kills",
    "fix_kills",
    "repair_optimum",
    "effort",
    "mutations",
    "tune_sim",
    "tune_combos",
    "tune_real",
    "tune_kills",
    "node_tests",
    "busy_test",
    "matrix",
    "farm_cluster",
    "matrix_kills",
    "breadth",
    "scale",
    "recipes",
    "catalog",
    "catalog_lint",
    "support_review",
    "ship",
    "site",
    "watch",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", choices=[[], *NAMES, *PROOFS], metavar="NAME", help=", ".join((*NAMES, *PROOFS))
    )
    chosen = parser.parse_args().names or NAMES
    missed = []
    for name in chosen:
        result = importlib.import_module(f"bench.{name}").run()
        write(name, result)
        print(f"{name}: {json.dumps(result)}")
        if result.get("met") is False:
            missed.append(name)
    if missed:
        sys.stderr.write(f"target missed: {', '.join(missed)}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
