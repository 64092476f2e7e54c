"""docs/breadth.md from the rows of the sweep."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

Row = Mapping[str, Any]

# What an error says → what blocks the model, in words. The first that fits counts.
_CAUSES: tuple[tuple[str, str], ...] = (
    (r"differs from PyTorch", "a graph is written and runs, and its answers are not PyTorch's"),
    (r"not finite in PyTorch itself", "PyTorch's own answer is not finite with random weights"),
    (
        r"answers differ between samples by",
        "PyTorch's own answer hardly depends on the input, so agreement proves nothing",
    ),
    (r"no end in \d+ s of processor time", "no end within the limit of processor time"),
    (r"the process ended with", "the process dies"),
    (
        r"GuardOnDataDependent|data-dependent|Could not guard|unbacked",
        "the model branches on values, which a trace does not have",
    ),
    (r"the graph lost the inputs", "an input does not reach the graph"),
    (
        r"cannot open the model|INVALID_GRAPH|NOT_IMPLEMENTED|InvalidGraph|Fail:|RuntimeException|NotImplemented :",
        "a graph is written, and onnxruntime refuses it",
    ),
    (
        r"[Uu]nsupported|No decompositions registered|UnsupportedOperator|ConversionError|DispatchError",
        "an operator has no translation to ONNX",
    ),
    (r"no export strategy", "no exporter writes it, for reasons of its own"),
    (r"takes \w+, which cannot be made up", "an argument that cannot be made up"),
    (r"does not run on what can be made up", "it does not run on the inputs that can be made up"),
    (r"does not return", "no output that can be read"),
    (r"cache", "its cache"),
)


def cause(row: Row) -> str:
    why = str(row.get("why") or "")
    return next((words for pattern, words in _CAUSES if re.search(pattern, why)), "other")


def page(result: Mapping[str, Any]) -> str:
    rows: list[Row] = list(result["rows"])
    by_state = defaultdict(list)
    for row in rows:
        by_state[row["state"]].append(row)
    agrees, fails, unmade = (by_state[state] for state in ("agrees", "fails", "not made"))
    return "\n".join(
        (
            *_opening(result, agrees, fails, unmade),
            *_tasks(agrees, fails),
            *_blocked(fails),
            *_unmade(unmade),
        )
    )


def _opening(result: Mapping[str, Any], agrees: list[Row], fails: list[Row], unmade: list[Row]) -> Iterable[str]:
    partly = [row for row in agrees if _unseen(row)]
    uncached = [row for row in agrees if "past_key_values" in row.get("left_out", ())]
    asked = len(agrees) + len(fails)
    yield "# Breadth: every model type of transformers"
    yield ""
    yield "<!-- Written by `python -m bench.breadth --page` from bench/results/breadth.json. -->"
    yield ""
    tried = len(agrees) + len(fails) + len(unmade)
    yield (
        f"Of the {result['of']} model types in the auto classes of transformers {result['transformers']}, {tried} were"
        " tried: the class of the first task that we know, else the plain model, from its default configuration, shrunk"
        " by rule (`bench/_small_configs.py`), with seeded weights and texts of 32 tokens. They are tried in the order"
        " of the SHA-256 of their names, which no outcome changes: these are the first"
        f" {result['first']}{_more(result, tried)}."
    )
    yield ""
    yield "| | model types |"
    yield "|---|---|"
    yield f"| PyTorch makes the model | {asked} |"
    yield f"| every graph of it agrees with PyTorch | {len(agrees)} ({100 * len(agrees) / max(1, asked):.1f} %) |"
    yield f"| fails | {len(fails)} |"
    yield f"| not made | {len(unmade)} |"
    yield ""
    yield (
        "Agreeing is what every export is held to: cosine ≥ 0.99999 and max-abs ≤ 1e-3 · max(1, reference) on samples"
        " that the graph was not traced with, on the CPU; a row none of whose answers differs from sample to sample"
        " by more than that fails. Small models with random weights stand for their code, not for a checkpoint."
    )
    yield ""
    yield (
        f"Of those that agree, {len(partly)} leave a picture, film or sound out that the model could take beside its"
        f" text, and {len(uncached)} are generators whose cache has no fixed size here: one graph computes the whole"
        " text. Both are said in the model's own record (`left_out`)."
    )
    yield ""
    yield "`make breadth` goes on where it was ended. Every row, with its reason: bench/results/breadth.json."
    yield ""


def _more(result: Mapping[str, Any], tried: int) -> str:
    later = tried - int(result["first"])
    return f" and {later} of those that follow" if later else ""


def _unseen(row: Row) -> bool:
    return any(re.match(r"pixel_values|input_features|input_values|images?$", name) for name in row.get("left_out", ()))


def _tasks(agrees: list[Row], fails: list[Row]) -> Iterable[str]:
    good, bad = (Counter(row["task"] for row in rows) for rows in (agrees, fails))
    yield "| task | agree | fail |"
    yield "|---|---|---|"
    for task in sorted({*good, *bad}, key=lambda task: (-good[task] - bad[task], task)):
        yield f"| {task} | {good[task]} | {bad[task]} |"
    yield ""


def _blocked(fails: list[Row]) -> Iterable[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for row in fails:
        groups[cause(row)].append(row["model_type"])
    yield "## What blocks the rest"
    yield ""
    yield "| cause | types | which |"
    yield "|---|---|---|"
    for words, names in sorted(groups.items(), key=lambda group: -len(group[1])):
        yield f"| {words} | {len(names)} | {', '.join(sorted(names))} |"
    yield ""


def _unmade(unmade: list[Row]) -> Iterable[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for row in unmade:
        package = re.search(r"requires the (\w+) library|No module named '(\w+)'", str(row["why"]))
        words = f"needs {package[1] or package[2]}" if package else re.sub(r"[\d,]{4,}", "N", str(row["why"]))[:90]
        groups[words.replace("|", "/")].append(row["model_type"])
    yield "## Not made"
    yield ""
    yield "Packages that are not among our dependencies, and configurations that the rule does not shrink far enough."
    yield ""
    yield "| why | types | which |"
    yield "|---|---|---|"
    for words, names in sorted(groups.items(), key=lambda group: -len(group[1])):
        yield f"| {words} | {len(names)} | {', '.join(sorted(names))} |"
    yield ""
