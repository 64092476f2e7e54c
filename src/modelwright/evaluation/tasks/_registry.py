"""Task names, and where their classes are."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from modelwright.errors import UsageError, did_you_mean
from modelwright.evaluation.tasks._base import Context, EvalTask

_HERE = "modelwright.evaluation.tasks"

TASKS: Mapping[str, str] = {
    "image-classification": "_classification:Classification",
    "text-classification": "_classification:Classification",
    "audio-classification": "_classification:Classification",
    "zero-shot-image-classification": "_zero_shot:ZeroShotImage",
    "zero-shot-classification": "_zero_shot:ZeroShotText",
    "token-classification": "_tagging:TokenClassification",
    "question-answering": "_answers:QuestionAnswering",
    "sentence-similarity": "_embeddings:SentenceSimilarity",
    "feature-extraction": "_embeddings:Neighbours",
    "image-feature-extraction": "_embeddings:Neighbours",
    "fill-mask": "_language:FillMask",
    "text-generation": "_language:NextToken",
    "object-detection": "_detection:ObjectDetection",
    "semantic-segmentation": "_pixels:Segmentation",
    "depth-estimation": "_pixels:Depth",
    "automatic-speech-recognition": "_speech:SpeechRecognition",
    "translation": "_generation:Translation",
    "summarization": "_generation:Summarization",
}

ALIASES: Mapping[str, str] = {
    "image-segmentation": "semantic-segmentation",
    "sequence-classification": "text-classification",
    "sentiment-analysis": "text-classification",
    "ner": "token-classification",
    "asr": "automatic-speech-recognition",
    "zero-shot-text-classification": "zero-shot-classification",
}


def canonical_name(name: str) -> str:
    """The one spelling of a task; an unknown word is an error with a hint."""
    word = name.strip().lower().replace("_", "-")
    word = ALIASES.get(word, word)
    if word not in TASKS:
        raise UsageError(
            f"unknown task '{name}'",
            cause=f"the tasks are {', '.join(TASKS)}",
            fix=did_you_mean(word, [*TASKS, *ALIASES]) or "score it yourself with --metric file.py:function",
        )
    return word


def make_task(name: str, context: Context, settings: Mapping[str, str]) -> EvalTask:
    module, _, attribute = TASKS[canonical_name(name)].partition(":")
    made: EvalTask = getattr(importlib.import_module(f"{_HERE}.{module}"), attribute)(context, settings)
    return made
