"""The task comes from the architecture's name; a wish that does not fit is refused."""

import pytest

from modelwright.models import read_architecture


@pytest.mark.parametrize(
    ("architecture", "model_type", "task"),
    [
        ("BertForSequenceClassification", "bert", "text-classification"),
        ("Wav2Vec2ForSequenceClassification", "wav2vec2", "audio-classification"),
        ("BartForConditionalGeneration", "bart", "text2text-generation"),
        ("WhisperForConditionalGeneration", "whisper", "automatic-speech-recognition"),
        ("Pix2StructForConditionalGeneration", "pix2struct", "image-to-text"),
        ("MarianMTModel", "marian", "text2text-generation"),
        ("VisionEncoderDecoderModel", "vision-encoder-decoder", "image-to-text"),
        ("VisionEncoderDecoderModel", "vision_encoder_decoder", "image-to-text"),
        ("MGPSTRForSceneTextRecognition", "mgp-str", "image-to-text"),
        ("mgpstrforscenetextrecognition", "mgp_str", "image-to-text"),
        ("ViltForQuestionAnswering", "vilt", "visual-question-answering"),
        ("ElectraForQuestionAnswering", "electra", "question-answering"),
        ("CLIPModel", "clip", "zero-shot-image-classification"),
        ("ViTModel", "vit", "image-feature-extraction"),
        ("BertModel", "bert", "feature-extraction"),
        ("CLIPVisionModelWithProjection", "clip_vision_model", "image-feature-extraction"),
        ("RTDetrForObjectDetection", "rt_detr", "object-detection"),
        ("OwlViTForObjectDetection", "owlvit", "zero-shot-object-detection"),
        ("Qwen3ForCausalLM", "qwen3", "text-generation"),
        ("GPT2LMHeadModel", "gpt2", "text-generation"),
        ("T5WithLMHeadModel", "t5", "text2text-generation"),
        ("Wav2Vec2ForCTC", "wav2vec2", "automatic-speech-recognition"),
        ("SegformerForSemanticSegmentation", "segformer", "image-segmentation"),
    ],
)
def test_the_head_tells_the_task(architecture, model_type, task):
    found = read_architecture([architecture], model_type)
    assert found is not None
    assert found.task == task


def test_the_first_architecture_with_a_known_head_counts():
    found = read_architecture(["SomethingNew", "BertForMaskedLM"], "bert")
    assert found is not None
    assert (found.name, found.task) == ("BertForMaskedLM", "fill-mask")


def test_an_unknown_head_is_no_task():
    assert read_architecture(["SomethingNew"], "bert") is None
