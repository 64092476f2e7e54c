"""What it would take to build a model, asked before any of its weights are loaded."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

from modelwright._dataclass import dataclass
from modelwright.errors import InputError, UsageError, WrightError
from modelwright.models import HfSource, SourceChoices, fetch, read_architecture, resolve
from modelwright.stages import export as exporting
from modelwright.stages.export import ExportOutline, ExportParams
from modelwright.support._words import Effort
from modelwright.vocabulary import TASKS, Modality, Result, read_task
from modelwright.worker import run

_LIMIT_S = 600.0
_TOKENIZERS = (
    "tokenizer.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tokenizer.model",
)
_PROCESSORS = ("preprocessor_config.json", "processor_config.json")
# What reads a modality's data as people have it; arrays are always read.
_READERS: dict[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    "text": (("text", "tokenizer", _TOKENIZERS),),
    "image": (("images", "image processor", _PROCESSORS),),
    "audio": (("audio", "feature extractor", _PROCESSORS),),
    "image+text": (("text", "tokenizer", _TOKENIZERS), ("images", "image processor", _PROCESSORS)),
}
ARRAYS = "arrays"


@dataclass(frozen=True)
class TaskSurface:
    """What can be done for one task: `forms` of data that calibrate it, what a `label` is where something scores it."""

    task: str
    export: bool | None
    inputs: bool | None
    forms: tuple[str, ...]
    label: str | None


@dataclass(frozen=True)
class SupportProbe(Result):
    """`effort` is the least that could do, never the most: only a build shows that it does. None where nobody can tell
    without the weights. `refused` is why this checkpoint cannot be built, whatever is added.

    - `head`: the task that the checkpoint's class is made for; None where its configuration names no such class
    - `outline`: what an export would make of it; None where there is no class for it
    - `lacks`: files that belong to the model, are not there, and would let it read data as people have it
    """

    kind: ClassVar[str] = "support probe"

    model: str
    model_type: str
    architecture: str | None
    task: str
    head: str | None
    effort: Effort | None
    reasons: tuple[str, ...]
    refused: str | None
    outline: ExportOutline | None
    weight_bytes: int | None
    lacks: tuple[str, ...]
    tasks: tuple[TaskSurface, ...]

    @property
    def builds(self) -> bool | None:
        """Whether a build has what it needs as things stand."""
        if self.refused is not None or self.effort in ("family", "shared"):
            return False
        return None if self.effort is None else True


def probe(
    model: str,
    *,
    task: str | None = None,
    revision: str | None = None,
    random_weights: bool = False,
    trust_remote_code: bool = False,
) -> SupportProbe:
    """Only configuration, processor and the headers of the weights are read; a model with random weights is run."""
    source, refused = _source(model, SourceChoices(task, revision, trust_remote_code, random_weights))
    asked = ExportParams(
        task=source.task, random_weights=source.random_weights, trust_remote_code=source.trust_remote_code
    )
    outline, missing = None, None
    try:
        outline = run(exporting.outline_export.call(source, asked), timeout=_LIMIT_S).unwrap()
    except InputError as error:
        missing = _line(error)
    found = read_architecture([source.architecture] if source.architecture else [], source.model_type)
    effort, reasons = _effort(outline, missing, found is None)
    lacks = _lacks(source)
    return SupportProbe(
        model=model,
        model_type=source.model_type,
        architecture=source.architecture,
        task=source.task,
        head=found.task if found else None,
        effort=effort,
        reasons=reasons,
        refused=refused or _unfit(outline),
        outline=outline,
        weight_bytes=source.weight_bytes(),
        lacks=lacks,
        tasks=tuple(_surfaces(source, outline, lacks)),
    )


def _source(model: str, choices: SourceChoices) -> tuple[HfSource, str | None]:
    """The source with its small files here. A checkpoint that cannot be built is still of a type that can be looked at:
    then without its weights, and with the reason."""
    try:
        return _small(model, resolve(model, **vars(choices))), None
    except InputError as error:
        try:
            bare = resolve(model, **vars(dataclasses.replace(choices, random_weights=True)))
        except InputError:
            raise error from None
        return _small(model, bare), _line(error)


def _line(error: WrightError) -> str:
    return f"{error.problem}: {error.cause}" if error.cause else error.problem


def _small(model: str, source: object) -> HfSource:
    if not isinstance(source, HfSource):
        raise UsageError(
            f"{model} needs no support", cause="it is a graph already", fix=f"build it: wright build {model}"
        )
    # The weights of a model on the Hub stay there: what they are called cannot be told then.
    return source if source.repo is None else fetch(dataclasses.replace(source, random_weights=True))


def _effort(
    outline: ExportOutline | None, missing: str | None, headless: bool
) -> tuple[Effort | None, tuple[str, ...]]:
    if outline is None:
        return "shared", (missing or "no class",)
    if outline.trouble is not None:
        return "family", (outline.trouble,)
    if outline.parts is None:
        return None, ("it is too large to run with random weights, and shapes alone do not tell",)
    said = [f"its {size.name} is a guess ({size.size})" for size in outline.sizes if size.guessed]
    if headless:
        said.append("its configuration does not say which task it does")
    return ("recipe", tuple(said)) if said else ("none", ())


def _unfit(outline: ExportOutline | None) -> str | None:
    if outline is None or outline.fit is None or not outline.fit.missing:
        return None
    names = outline.fit.missing
    return f"the checkpoint lacks {len(names)} weights of {outline.model_class}, for example {names[0]}"


def _lacks(source: HfSource) -> tuple[str, ...]:
    there = source.companions()
    return tuple(word for _, word, files in _READERS[_modality(source)] if not any(name in there for name in files))


def _modality(source: HfSource) -> Modality:
    return read_task(source.task).modality


def _surfaces(source: HfSource, outline: ExportOutline | None, lacks: tuple[str, ...]) -> list[TaskSurface]:
    """Its task, and those that the same graph does."""
    forms = tuple(form for form, word, _ in _READERS[_modality(source)] if word not in lacks)
    ready = None if outline is None or (outline.parts is None and outline.trouble is None) else outline.trouble is None
    return [
        TaskSurface(one.name, outline is not None, ready if outline else None, (ARRAYS, *forms), one.label)
        for one in TASKS
        if one.head == source.task
    ]
