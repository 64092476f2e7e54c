"""The table of task words: what each means to an export, and what scores it. Everyone who takes a task asks here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from modelwright._dataclass import dataclass
from modelwright.errors import UsageError, did_you_mean

Modality = Literal["text", "image", "audio", "image+text"]
_WITH_PAST = "-with-past"


@dataclass(frozen=True)
class ModelTask:
    """What a model is for. A word means the same to everyone: a build takes the `head`, an evaluation the `scorer`.

    `head` names the task whose exported graph does it (translating and summarizing are one kind of graph, scored
    differently). `scorer` is module:class in `evaluation.tasks`, None where nothing scores it yet; `label` is what
    a row of labelled data holds under that name.
    """

    name: str
    modality: Modality
    head: str
    aliases: tuple[str, ...] = ()
    scorer: str | None = None
    label: str | None = None


def _row(
    name: str, modality: Modality, scored: tuple[str, str] | None = None, *, head: str = "", aliases: str = ""
) -> ModelTask:
    scorer, label = scored or (None, None)
    return ModelTask(name, modality, head or name, tuple(aliases.split()), scorer, label)


_CLASS, _CLASSES = "_classification:Classification", "class number"
_NEAREST = ("_embeddings:Neighbours", _CLASSES)
_TEXT = "text, or token ids"

TASKS: tuple[ModelTask, ...] = (
    _row("image-classification", "image", (_CLASS, _CLASSES)),
    _row(
        "text-classification",
        "text",
        (_CLASS, _CLASSES),
        aliases="sequence-classification sentiment-analysis text-ranking",
    ),
    _row("audio-classification", "audio", (_CLASS, _CLASSES)),
    _row("zero-shot-image-classification", "image+text", ("_zero_shot:ZeroShotImage", _CLASSES)),
    _row(
        "zero-shot-classification",
        "text",
        ("_zero_shot:ZeroShotText", _CLASSES),
        head="text-classification",
        aliases="zero-shot-text-classification",
    ),
    _row(
        "token-classification",
        "text",
        ("_tagging:TokenClassification", "class per token, -100 for none"),
        aliases="ner",
    ),
    _row("question-answering", "text", ("_answers:QuestionAnswering", "[first, last] token")),
    _row("sentence-similarity", "text", ("_embeddings:SentenceSimilarity", "human score"), head="feature-extraction"),
    _row("feature-extraction", "text", _NEAREST, aliases="default"),
    _row("image-feature-extraction", "image", _NEAREST),
    _row("fill-mask", "text", ("_language:FillMask", "the hidden token, -100 elsewhere"), aliases="masked-lm"),
    _row("text-generation", "text", ("_language:NextToken", "none"), aliases="causal-lm"),
    _row("object-detection", "image", ("_detection:ObjectDetection", "class per box")),
    _row("image-segmentation", "image", ("_pixels:Segmentation", "class per pixel"), aliases="semantic-segmentation"),
    _row("depth-estimation", "image", ("_pixels:Depth", "depth per pixel, 0 for unknown")),
    _row(
        "automatic-speech-recognition", "audio", ("_speech:SpeechRecognition", _TEXT), aliases="asr speech-recognition"
    ),
    _row("translation", "text", ("_generation:Translation", _TEXT), head="text2text-generation"),
    _row("summarization", "text", ("_generation:Summarization", _TEXT), head="text2text-generation"),
    _row("text2text-generation", "text", aliases="seq2seq-lm"),
    _row("image-to-text", "image+text", aliases="image-captioning image-text-to-text vision2seq-lm"),
    _row("multiple-choice", "text"),
    _row("next-sentence-prediction", "text"),
    _row("zero-shot-object-detection", "image+text"),
    _row("masked-im", "image"),
    _row("visual-question-answering", "image+text", aliases="vqa"),
    _row("audio-frame-classification", "audio"),
    _row("audio-xvector", "audio"),
    _row("keypoint-detection", "image", aliases="pose-estimation"),
)
_WORDS: Mapping[str, ModelTask] = {word: task for task in TASKS for word in (task.name, *task.aliases)}
TASK_WORDS = tuple(_WORDS)


def find_task(word: str) -> ModelTask | None:
    """The task of this name or alias, in any spelling; None when nobody knows it."""
    return _WORDS.get(word.strip().lower().replace("_", "-").removesuffix(_WITH_PAST))


def read_task(word: str) -> ModelTask:
    """The same; an unknown word is an error with a hint."""
    task = find_task(word)
    if task is None:
        raise UsageError(
            f"unknown task {word}",
            cause="it is neither a task that models are known for here nor another name of one",
            fix=did_you_mean(word.lower(), TASK_WORDS) or f"the tasks are {', '.join(task.name for task in TASKS)}",
        )
    return task
