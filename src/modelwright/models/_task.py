"""Which task a model does, read from the name of its architecture class. Without transformers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from modelwright._dataclass import dataclass
from modelwright.errors import InputError
from modelwright.vocabulary import TASKS, Modality, read_task

# The end of an architecture's name → its task for each modality; "" is any modality.
_HEADS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("forsequenceclassification", {"audio": "audio-classification", "": "text-classification"}),
    ("fortokenclassification", {"": "token-classification"}),
    ("forquestionanswering", {"image+text": "visual-question-answering", "": "question-answering"}),
    ("formultiplechoice", {"": "multiple-choice"}),
    ("fornextsentenceprediction", {"": "next-sentence-prediction"}),
    ("formaskedlm", {"audio": "automatic-speech-recognition", "": "fill-mask"}),
    ("forpretraining", {"": "feature-extraction"}),
    ("forcausallm", {"": "text-generation"}),
    ("lmheadmodel", {"": "text-generation"}),
    ("withlmheadmodel", {"": "text2text-generation"}),
    (
        "forconditionalgeneration",
        {
            "audio": "automatic-speech-recognition",
            "image": "image-to-text",
            "image+text": "image-to-text",
            "": "text2text-generation",
        },
    ),
    ("mtmodel", {"": "text2text-generation"}),
    ("forimageclassification", {"": "image-classification"}),
    ("forimageclassificationwithteacher", {"": "image-classification"}),
    ("forsemanticsegmentation", {"": "image-segmentation"}),
    ("forimagesegmentation", {"": "image-segmentation"}),
    ("forinstancesegmentation", {"": "image-segmentation"}),
    ("foruniversalsegmentation", {"": "image-segmentation"}),
    ("forobjectdetection", {"image+text": "zero-shot-object-detection", "": "object-detection"}),
    ("fordepthestimation", {"": "depth-estimation"}),
    ("forposeestimation", {"": "keypoint-detection"}),
    ("forkeypointdetection", {"": "keypoint-detection"}),
    ("formaskedimagemodeling", {"": "masked-im"}),
    ("forscenetextrecognition", {"": "image-to-text"}),
    ("forctc", {"": "automatic-speech-recognition"}),
    ("foraudioclassification", {"": "audio-classification"}),
    ("foraudioframeclassification", {"": "audio-frame-classification"}),
    ("forxvector", {"": "audio-xvector"}),
    (
        "encoderdecodermodel",
        {"audio": "automatic-speech-recognition", "image": "image-to-text", "": "text2text-generation"},
    ),
    ("visionmodelwithprojection", {"": "image-feature-extraction"}),
    ("textmodelwithprojection", {"": "feature-extraction"}),
    ("visionmodel", {"": "image-feature-extraction"}),
    ("textmodel", {"": "feature-extraction"}),
    ("encodermodel", {"": "feature-extraction"}),
    ("backbone", {"": "image-feature-extraction"}),
    (
        "model",
        {
            "image": "image-feature-extraction",
            "image+text": "zero-shot-image-classification",
            "": "feature-extraction",
        },
    ),
)
FEATURES = frozenset({"feature-extraction", "image-feature-extraction"})

# model_type, spelt without hyphens and underscores → modality, where the class name does not tell.
_MODALITIES: Mapping[Modality, str] = {
    "audio": """
        audiospectrogramtransformer data2vecaudio hubert mctct moonshine sew sewd speechencoderdecoder speechtotext
        unispeech unispeechsat wav2vec2 wav2vec2bert wav2vec2conformer wavlm whisper
        """,
    "image": """
        beit bit conditionaldetr convnext convnextv2 cvt data2vecvision deformabledetr deit depthanything depthpro detr
        dfine dinov2 dinov2withregisters dinov3vit dpt efficientnet focalnet glpn hiera ijepa levit mgpstr mobilenetv1
        mobilenetv2 mobilevit mobilevitv2 pix2struct poolformer pvt pvtv2 regnet resnet rtdetr rtdetrresnet rtdetrv2
        segformer swiftformer swin swin2sr swinv2 tabletransformer textnet timmwrapper van visionencoderdecoder vit
        vitmae vitmsn vitpose yolos
        """,
    "image+text": """
        align altclip blip blip2 bridgetower chineseclip clip clipseg flava git groupvit idefics idefics2 idefics3
        instructblip kosmos2 llava owlv2 owlvit paligemma siglip siglip2 vilt visiontextdualencoder xclip
        """,
}


@dataclass(frozen=True)
class Architecture:
    """The class a checkpoint was saved from, and the task its head does."""

    name: str
    task: str
    modality: Modality


def modality(model_type: str) -> Modality:
    word = _letters(model_type)
    return next((kind for kind, types in _MODALITIES.items() if word in types.split()), "text")


def read_architecture(architectures: Sequence[str], model_type: str) -> Architecture | None:
    """The first listed class whose name ends in a known head; any case, any spelling of the prefix."""
    kind = modality(model_type)
    for name in architectures:
        word = _letters(name)
        heads = [(suffix, tasks) for suffix, tasks in _HEADS if word.endswith(suffix)]
        if heads:
            _, tasks = max(heads, key=lambda head: len(head[0]))
            return Architecture(name, tasks.get(kind, tasks.get("", next(iter(tasks.values())))), kind)
    return None


def choose_task(wanted: str | None, found: Architecture | None, *, name: str, random_weights: bool) -> str:
    """The task to build for. A head that the checkpoint does not have is refused: its weights would be noise."""
    task = read_task(wanted).head if wanted else None
    if found is None:
        if task is None:
            raise InputError(
                f"the task of {name} is unknown",
                cause="its configuration names no architecture with a known head",
                fix=f"Say which with `task`; known: {', '.join(task.name for task in TASKS)}.",
            )
        return task
    if task is None or task == found.task:
        return found.task
    if task in FEATURES:
        return "image-feature-extraction" if found.modality == "image" else "feature-extraction"
    if random_weights:
        return task
    raise InputError(
        f"{name} cannot do {task}",
        cause=f"it is a {found.name}, whose head does {found.task}; another head would start from random weights",
        fix=f"Use `task` {found.task}{'' if found.task in FEATURES else ' or feature-extraction'},"
        " or a checkpoint trained for that task.",
    )


def _letters(word: str) -> str:
    return "".join(letter for letter in word.lower() if letter.isalnum())
