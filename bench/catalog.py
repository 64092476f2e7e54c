"""The entries about trained models, built from what `bench.zoo` fetches and judged by the metric of each.

A build that loses more than the bound of its metric misses, unless it is known to be bad; one that is known to be bad
and loses nothing misses too: what is said of it is not true any more.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import modelwright as mw
from bench import zoo
from modelwright.models import onnx_of, resolve
from modelwright.recipes import CatalogEntry, own_folder, read_entries

_BY_ENTRY = {
    "google_magika-v3": "magika",
    "modelwright_fashion-cnn": "fashion",
    "PaddlePaddle_PP-OCRv2-cls": "ppocr-cls",
    "PaddlePaddle_PP-OCRv4-rec": "ppocr-rec",
    "sentence-transformers_all-MiniLM-L6-v2": "minilm",
    "snakers4_silero-vad": "silero-vad",
}


def run(*names: str) -> dict[str, Any]:
    brought = [one for one in read_entries(own_folder()) if one.kind == "brought" and one.name in (names or _BY_ENTRY)]
    rows = []
    for entry in brought:
        for trained in zoo.models(_BY_ENTRY[entry.name]):
            with tempfile.TemporaryDirectory() as folder:
                rows += _rows(entry, trained, Path(folder))
    return {"rows": rows, "met": len(rows) >= len(brought) and not any(row["miss"] for row in rows)}


def _rows(entry: CatalogEntry, trained: zoo.Trained, folder: Path) -> list[dict[str, Any]]:
    data, bad = str(trained.write_calibration(folder)), entry.said.known_bad is not None
    common = {"entry": entry.name, "metric": trained.metric, "bound": trained.bound, "known_bad": bad}
    with mw.Store(folder / "store") as store:
        # A model that has to be exported is held against its export: the same graph before it lost bits.
        source = resolve(str(trained.path), task=entry.said.task)
        plain = mw.build(
            source, "cpu", recipe=dict(trained.sizes), precision="fp32", data=data, store=store, output=folder / "float"
        )
        assert plain.builds, "the float model is built"
        before = trained.score(zoo.answers(onnx_of(folder / "float")))
        try:
            found = mw.catalog.build(
                entry.name, trained.path, data=data, store=store, output=folder / "built", anyway=True
            )
        except mw.WrightError as error:
            return [{**common, "refused": f"{error.problem}: {error.cause}", "miss": not bad}]
        rows = []
        for build, place in zip(found.builds, found.folders, strict=True):
            assert place is not None, "each goes to a folder"
            on_cpu = build.target == "cpu"
            after = trained.score(zoo.answers(onnx_of(place), as_written=not on_cpu))
            lost = zoo.drop(trained, before, after)
            useless = lost.drop > trained.bound
            said = {"target": build.target, "gate": build.passed, "drop": round(lost.drop, 4), "miss": useless != bad}
            rows.append({**common, **said})
        return rows
