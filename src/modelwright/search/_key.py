"""What a search is about, by content: the same question finds what was measured for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from modelwright._installed import installed
from modelwright._json import digest, plain
from modelwright.search._types import TuneOptions
from modelwright.search._workshop import Job
from modelwright.store import Store
from modelwright.targets import read_cpu

_FOLDER = "searches"
_SHAPES = ("onnxruntime", "onnx", "numpy")


def search_folder(store: Store) -> Path:
    return store.root.parent / _FOLDER


def search_key(job: Job, options: TuneOptions) -> str:
    """Neither its budget nor its axes are part of that: what was measured counts with more of them too."""
    return digest(
        {
            "source": job.source.identity(),
            "recipe": plain(replace(job.recipe, tune=None)),
            "pinned": sorted(map(str, job.pinned)),
            "limits": plain(replace(options.limits, budget_s=0.0)),
            "max_drop": [str(options.max_drop), options.task],
            "inputs": [str(options.inputs.data), options.inputs.batch, dict(options.inputs.dims)],
            "threads": options.threads,
            "cpu": read_cpu().features,
            "libraries": {name: installed(name) for name in (*_SHAPES, job.target.provider.package)},
        }
    )


def question_key(job: Job, options: TuneOptions) -> str:
    """With the axes and the budget: the whole question."""
    said = [options.axes, options.forbid, options.only, options.add, options.limits.budget_s, plain(job.recipe.tune)]
    return digest([search_key(job, options), said])
