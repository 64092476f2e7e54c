"""From what a verb is given to the one .onnx file that runs: a Hugging Face model is built for the target first."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from modelwright._dataclass import dataclass
from modelwright._lazy import lazy
from modelwright._scratch import scratch
from modelwright.api._opened import opened
from modelwright.errors import UsageError
from modelwright.models import MODEL, BuildSource, HfSource, OnnxSource, Source, onnx_of, resolve
from modelwright.store import Store
from modelwright.targets import Target
from modelwright.vocabulary import InputSpec, OnProgress, Progress, silent

if TYPE_CHECKING:
    from modelwright import pipeline
    from modelwright.pipeline import BuildResult, Builds

    Model: TypeAlias = str | Path | Source | BuildResult | Builds
else:
    pipeline = lazy("modelwright.pipeline")


@dataclass(frozen=True)
class ModelFile:
    """`name` is what was said; `inputs` is what the export recorded, where the file lies in the store. `named`: it has
    a name beside its place."""

    path: Path
    name: str
    inputs: InputSpec | None = None
    named: bool = False


def source_of(model: Model) -> Source | BuildResult:
    """What a verb was given, as a value: a text is looked up once, here."""
    if isinstance(model, str | Path | OnnxSource | BuildSource | HfSource):
        return resolve(model)
    if not isinstance(model, pipeline.Builds):
        return model
    if len(model) != 1:
        raise UsageError("these are several builds", cause="one model is needed", fix="take one of them, like [0]")
    return model[0]


def file_of(
    model: Model,
    target: Target,
    *,
    component: str | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> ModelFile:
    """The file that runs on `target`: the one given, that of a build, or of the Hugging Face model, built first."""
    source = source_of(model)
    if isinstance(source, OnnxSource | BuildSource):
        name = _part_name(source, component)
        return ModelFile(onnx_of(source, component), name or name_of(model), named=name is not None)
    if isinstance(source, HfSource):
        return _part(built_for(source, target, store, on_progress), name_of(model), component)
    return _part(source, source.source, component)


@contextlib.contextmanager
def artifact_of(
    model: Model, target: Target, store: Store | None, on_progress: OnProgress | None
) -> Iterator[ModelFile]:
    """What would be shipped, of however many parts: the file or build folder itself, else a build written for now."""
    source = source_of(model)
    if isinstance(source, OnnxSource | BuildSource):
        yield ModelFile(Path(str(model)) if isinstance(model, str | Path) else _place(source), name_of(model))
        return
    with scratch("built") as folder, opened(store) as place:
        result = built_for(source, target, store, on_progress) if isinstance(source, HfSource) else source
        yield ModelFile(pipeline.deliver(result, Path(folder, "build"), store=place), result.source)


def built_for(source: HfSource, target: Target, store: Store | None, on_progress: OnProgress | None) -> BuildResult:
    tell = on_progress or silent
    with opened(store) as place:
        result = pipeline.build(source, pipeline.resolve_recipe(source, target), store=place, on_progress=tell)
    tell(Progress(f"built {source.name} for {result.target} at {result.recipe.precision}"))
    return result


def _part(result: BuildResult, name: str, component: str | None) -> ModelFile:
    parts = {part.name: part for part in result.components}
    chosen = next(iter(parts)) if len(parts) == 1 and component is None else _chosen(list(parts), component, name)
    final = parts[chosen].final
    place = f"{final.folder}/{MODEL}" if final.folder else MODEL
    shown = f"{name} {chosen}" if len(parts) > 1 else name
    return ModelFile(final.artifact.path_of(place), shown, parts[chosen].inputs, named=True)


def _chosen(names: Sequence[str], component: str | None, text: str) -> str:
    if component in names:
        return str(component)
    raise UsageError(
        f"{text} has several components" if component is None else f"{text} has no component '{component}'",
        cause=f"they are {', '.join(names)}",
        fix=f"give one as `component`, for example {names[0]}",
    )


def _place(source: OnnxSource | BuildSource) -> Path:
    return Path(source.path if isinstance(source, OnnxSource) else source.folder)


def _part_name(source: OnnxSource | BuildSource, component: str | None) -> str | None:
    """What a build that has a name calls one of its parts."""
    if isinstance(source, OnnxSource) or source.name is None:
        return None
    part = source.component or component
    return source.name if part is None else f"{source.name} {part}"


def name_of(model: Model) -> str:
    """How whoever called names it."""
    if isinstance(model, OnnxSource | BuildSource):
        return getattr(model, "name", None) or str(_place(model))
    return model.name if isinstance(model, HfSource) else str(model)
