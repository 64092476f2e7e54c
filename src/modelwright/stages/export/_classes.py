"""From an architecture name and a task to a class of the installed transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.errors import InputError, did_you_mean
from modelwright.stages.export._family import family

if TYPE_CHECKING:
    import transformers
    from transformers.models.auto import modeling_auto
else:
    transformers = lazy("transformers")
    modeling_auto = lazy("transformers.models.auto.modeling_auto")

# Task → transformers' own tables of model_type → class name, in order of preference.
_TABLES: dict[str, tuple[str, ...]] = {
    "text-classification": ("SEQUENCE_CLASSIFICATION",),
    "token-classification": ("TOKEN_CLASSIFICATION",),
    "question-answering": ("QUESTION_ANSWERING",),
    "multiple-choice": ("MULTIPLE_CHOICE",),
    "next-sentence-prediction": ("NEXT_SENTENCE_PREDICTION",),
    "fill-mask": ("MASKED_LM",),
    "text-generation": ("CAUSAL_LM",),
    "text2text-generation": ("SEQ_TO_SEQ_CAUSAL_LM",),
    "image-to-text": ("IMAGE_TEXT_TO_TEXT", "VISION_2_SEQ", "MULTIMODAL_LM"),
    "image-classification": ("IMAGE_CLASSIFICATION",),
    "image-segmentation": ("SEMANTIC_SEGMENTATION", "UNIVERSAL_SEGMENTATION", "IMAGE_SEGMENTATION"),
    "object-detection": ("OBJECT_DETECTION",),
    "zero-shot-object-detection": ("ZERO_SHOT_OBJECT_DETECTION",),
    "depth-estimation": ("DEPTH_ESTIMATION",),
    "keypoint-detection": ("KEYPOINT_DETECTION", "POSE_ESTIMATION"),
    "masked-im": ("MASKED_IMAGE_MODELING",),
    "visual-question-answering": ("VISUAL_QUESTION_ANSWERING",),
    "automatic-speech-recognition": ("CTC", "SPEECH_SEQ_2_SEQ"),
    "audio-classification": ("AUDIO_CLASSIFICATION",),
    "audio-frame-classification": ("AUDIO_FRAME_CLASSIFICATION",),
    "audio-xvector": ("AUDIO_XVECTOR",),
    "zero-shot-image-classification": ("ZERO_SHOT_IMAGE_CLASSIFICATION",),
}
_BASE_TASKS = frozenset({"feature-extraction", "image-feature-extraction"})


def find_class(architecture: str | None, model_type: str, task: str) -> tuple[type[Any], str | None]:
    """The class to load, and the name it was asked for by when that is another one."""
    if architecture is not None:
        if hasattr(transformers, architecture):
            return _get(architecture), None
        respelt = _respelt(architecture)
        if respelt is not None:
            return _get(respelt), architecture
    name = class_for_task(model_type, task)
    if name is None:
        raise _unknown(architecture, model_type, task)
    return _get(name), architecture


def class_for_task(model_type: str, task: str) -> str | None:
    """The class transformers uses for this model type and task; None when there is none."""
    if task in _BASE_TASKS:
        return _base_name(model_type)
    for table in _TABLES.get(task, ()):
        names = getattr(modeling_auto, f"MODEL_FOR_{table}_MAPPING_NAMES", {})
        name = _lookup(names, model_type)
        if name is not None:
            return name
    return family(model_type).classes.get(task)


def _base_name(model_type: str) -> str:
    name = _lookup(modeling_auto.MODEL_MAPPING_NAMES, model_type)
    if name is None:
        raise _unknown(None, model_type, "feature-extraction")
    return name


def _lookup(names: dict[str, Any], model_type: str) -> str | None:
    """Hyphens and underscores are used for the same types in different places."""
    found = next((value for key, value in names.items() if _same(key, model_type)), None)
    return found[0] if isinstance(found, list | tuple) else found


def _same(one: str, other: str) -> bool:
    return one.replace("-", "_").lower() == other.replace("-", "_").lower()


def _respelt(architecture: str) -> str | None:
    """transformers spells classes otherwise over the years; only the case may differ."""
    wanted = architecture.lower()
    return next((name for name in dir(transformers) if name.lower() == wanted), None)


def _get(name: str) -> type[Any]:
    found: type[Any] = getattr(transformers, name)
    return found


def _unknown(architecture: str | None, model_type: str, task: str) -> InputError:
    hint = did_you_mean(architecture, dir(transformers)) if architecture else None
    return InputError(
        f"transformers {transformers.__version__} has no class for {architecture or f'{model_type} and {task}'}",
        cause=f"model type {model_type}, task {task}",
        fix=hint.capitalize() if hint else "Install a transformers version that knows this model.",
    )
