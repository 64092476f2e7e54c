"""The model families that must export and match PyTorch, as tiny configurations with random weights.

`python -m bench.families [name ...]` exports them and prints how each went.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from modelwright.errors import WrightError
from modelwright.models import HfSource, resolve
from modelwright.stages.export import ExportOutcome, ExportParams, run_export

_TEXT = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}
_VISION = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 37,
}
_BART = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 37,
    "decoder_ffn_dim": 37,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}


@dataclass(frozen=True)
class Family:
    """`config` goes to config.json as it is; `processor` to preprocessor_config.json when given."""

    name: str
    architecture: str
    model_type: str
    config: dict[str, Any]
    components: tuple[str, ...] = ("model",)
    processor: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """A model folder without weights."""
        config = {"architectures": [self.architecture], "model_type": self.model_type, **_lively(self.config)}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(config))
        if self.processor:
            (folder / "preprocessor_config.json").write_text(json.dumps(self.processor))


def _lively(config: dict[str, Any]) -> dict[str, Any]:
    """Weights large enough that outputs depend on the inputs: with the usual 0.02 tiny models say nearly nothing,
    RT-DETR's proposals are all ties, and a comparison would prove nothing."""
    parts = {key: _lively(value) if isinstance(value, dict) else value for key, value in config.items()}
    return {"initializer_range": 0.3, "init_std": 0.3, **parts}


_SEQ2SEQ = ("encoder", "decoder")
_SQUARE = {"size": {"height": 32, "width": 32}}
FAMILIES: tuple[Family, ...] = (
    Family(
        "resnet",
        "ResNetForImageClassification",
        "resnet",
        {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"},
        processor={"size": {"shortest_edge": 40}, "do_center_crop": True, "crop_size": {"height": 32, "width": 32}},
    ),
    Family(
        "convnext",
        "ConvNextForImageClassification",
        "convnext",
        {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2},
        processor={"size": {"shortest_edge": 32}},
    ),
    Family("vit", "ViTForImageClassification", "vit", _VISION),
    Family("dinov2", "Dinov2ForImageClassification", "dinov2", {**_VISION, "patch_size": 14, "image_size": 28}),
    Family(
        "mobilevit",
        "MobileViTForImageClassification",
        "mobilevit",
        {
            "image_size": 64,
            "hidden_sizes": [16, 20, 24],
            "neck_hidden_sizes": [8, 8, 16, 16, 24, 24, 32],
            "num_attention_heads": 4,
        },
    ),
    Family(
        "swin",
        "SwinForImageClassification",
        "swin",
        {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 2], "num_heads": [2, 2], "window_size": 4},
    ),
    Family(
        "swinv2",
        "Swinv2ForImageClassification",
        "swinv2",
        {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 2], "num_heads": [2, 2], "window_size": 4},
    ),
    Family(
        "segformer",
        "SegformerForSemanticSegmentation",
        "segformer",
        {
            "num_encoder_blocks": 2,
            "depths": [1, 1],
            "sr_ratios": [4, 2],
            "hidden_sizes": [8, 16],
            "patch_sizes": [7, 3],
            "strides": [4, 2],
            "num_attention_heads": [1, 2],
            "mlp_ratios": [2, 2],
            "decoder_hidden_size": 16,
        },
        processor=_SQUARE,
    ),
    Family(
        "yolos",
        "YolosForObjectDetection",
        "yolos",
        {**_VISION, "image_size": [32, 48], "num_detection_tokens": 5},
    ),
    Family(
        "rt-detr",
        "RTDetrForObjectDetection",
        "rt_detr",
        {
            "backbone_config": {
                "model_type": "rt_detr_resnet",
                "embedding_size": 8,
                "hidden_sizes": [8, 16, 24, 32],
                "depths": [1, 1, 1, 1],
                "layer_type": "basic",
                "out_features": ["stage2", "stage3", "stage4"],
            },
            "encoder_hidden_dim": 32,
            "encoder_in_channels": [16, 24, 32],
            "encoder_ffn_dim": 32,
            "encoder_attention_heads": 2,
            "d_model": 32,
            "num_queries": 5,
            "decoder_in_channels": [32, 32, 32],
            "decoder_ffn_dim": 16,
            "num_denoising": 0,
            "decoder_layers": 2,
            "decoder_attention_heads": 2,
            "disable_custom_kernels": True,
        },
        processor={"size": {"height": 64, "width": 64}},
    ),
    Family(
        "depth-anything",
        "DepthAnythingForDepthEstimation",
        "depth_anything",
        {
            "backbone_config": {
                "model_type": "dinov2",
                **_VISION,
                "image_size": 56,
                "patch_size": 14,
                "out_features": ["stage1", "stage2"],
                "reshape_hidden_states": False,
            },
            "reassemble_hidden_size": 32,
            "patch_size": 14,
            "reassemble_factors": [4, 2],
            "neck_hidden_sizes": [16, 16],
            "fusion_hidden_size": 16,
            "head_hidden_size": 8,
        },
        processor={"size": {"height": 56, "width": 56}},
    ),
    Family("bert", "BertForSequenceClassification", "bert", {**_TEXT, "max_position_embeddings": 64}),
    Family(
        "distilbert",
        "DistilBertForSequenceClassification",
        "distilbert",
        {"vocab_size": 99, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37, "max_position_embeddings": 64},
    ),
    Family(
        "roberta",
        "RobertaForTokenClassification",
        "roberta",
        {**_TEXT, "max_position_embeddings": 66, "type_vocab_size": 1, "pad_token_id": 1},
    ),
    Family("mpnet", "MPNetModel", "mpnet", {**_TEXT, "max_position_embeddings": 66, "pad_token_id": 1}),
    Family(
        "electra",
        "ElectraForQuestionAnswering",
        "electra",
        {**_TEXT, "embedding_size": 16, "max_position_embeddings": 64},
    ),
    Family("bart", "BartForSequenceClassification", "bart", {**_BART, "eos_token_id": 7, "num_labels": 3}),
    Family(
        "layoutlm",
        "LayoutLMForTokenClassification",
        "layoutlm",
        {**_TEXT, "max_position_embeddings": 64, "max_2d_position_embeddings": 64},
    ),
    Family(
        "vitpose",
        "VitPoseForPoseEstimation",
        "vitpose",
        {
            "backbone_config": {
                "model_type": "vitpose_backbone",
                **_VISION,
                "image_size": [32, 24],
                "patch_size": [8, 8],
                "out_indices": [2],
            },
            "num_labels": 5,
        },
    ),
    Family(
        "owlvit",
        "OwlViTForObjectDetection",
        "owlvit",
        {
            "text_config": {**_TEXT, "max_position_embeddings": 16},
            "vision_config": _VISION,
            "projection_dim": 32,
        },
    ),
    Family(
        "blip",
        "BlipForConditionalGeneration",
        "blip",
        {
            "text_config": {**_TEXT, "max_position_embeddings": 64, "encoder_hidden_size": 32, "eos_token_id": 2},
            "vision_config": _VISION,
        },
    ),
    Family(
        "clip",
        "CLIPModel",
        "clip",
        {
            "text_config": {
                **_TEXT,
                "max_position_embeddings": 16,
                "eos_token_id": 98,
                "bos_token_id": 97,
                "pad_token_id": 1,
            },
            "vision_config": _VISION,
            "projection_dim": 16,
        },
        components=("text", "vision"),
    ),
    Family(
        "wav2vec2",
        "Wav2Vec2ForCTC",
        "wav2vec2",
        {
            **_TEXT,
            "vocab_size": 32,
            "feat_extract_norm": "layer",
            "conv_dim": [16, 16, 16],
            "conv_stride": [5, 4, 4],
            "conv_kernel": [10, 4, 4],
            "num_feat_extract_layers": 3,
            "num_conv_pos_embeddings": 16,
            "num_conv_pos_embedding_groups": 2,
            "do_stable_layer_norm": True,
        },
        processor={"sampling_rate": 1600},
    ),
    Family(
        "whisper",
        "WhisperForConditionalGeneration",
        "whisper",
        {
            **_BART,
            "num_mel_bins": 16,
            "max_source_positions": 30,
            "max_target_positions": 32,
            "begin_suppress_tokens": None,
            "suppress_tokens": None,
        },
        components=_SEQ2SEQ,
    ),
    Family(
        "t5",
        "T5ForConditionalGeneration",
        "t5",
        {
            "vocab_size": 99,
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 37,
            "num_layers": 2,
            "num_heads": 4,
            "decoder_start_token_id": 0,
            "pad_token_id": 0,
            "eos_token_id": 1,
        },
        components=_SEQ2SEQ,
    ),
    Family("marian", "MarianMTModel", "marian", {**_BART, "decoder_vocab_size": 99}, components=_SEQ2SEQ),
    Family("m2m_100", "M2M100ForConditionalGeneration", "m2m_100", _BART, components=_SEQ2SEQ),
    Family(
        "vision-encoder-decoder",
        "VisionEncoderDecoderModel",
        "vision-encoder-decoder",
        {
            "encoder": {"model_type": "vit", **_VISION},
            "decoder": {
                "model_type": "gpt2",
                "vocab_size": 99,
                "n_embd": 32,
                "n_layer": 2,
                "n_head": 4,
                "n_positions": 32,
                "add_cross_attention": True,
                "is_decoder": True,
                "bos_token_id": 98,
                "eos_token_id": 98,
            },
            "decoder_start_token_id": 98,
            "pad_token_id": 98,
            "is_encoder_decoder": True,
        },
        components=_SEQ2SEQ,
    ),
    Family(
        "pix2struct",
        "Pix2StructForConditionalGeneration",
        "pix2struct",
        {
            "text_config": {
                "vocab_size": 99,
                "hidden_size": 32,
                "d_kv": 8,
                "d_ff": 37,
                "num_layers": 2,
                "num_heads": 4,
                "decoder_start_token_id": 0,
                "eos_token_id": 1,
                "pad_token_id": 0,
                "is_decoder": True,
            },
            "vision_config": {
                "hidden_size": 32,
                "patch_embed_hidden_size": 48,
                "d_ff": 37,
                "d_kv": 8,
                "num_hidden_layers": 2,
                "num_attention_heads": 4,
                "seq_len": 64,
            },
            "is_encoder_decoder": True,
        },
        components=_SEQ2SEQ,
        processor={"max_patches": 16},
    ),
    Family(
        "vilt",
        "ViltForQuestionAnswering",
        "vilt",
        {**_TEXT, "image_size": 32, "patch_size": 8, "max_position_embeddings": 16, "num_labels": 11},
    ),
    Family(
        "mgp-str",
        "MGPSTRForSceneTextRecognition",
        "mgp-str",
        {
            "image_size": [32, 128],
            "patch_size": 8,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_character_labels": 11,
            "num_bpe_labels": 13,
            "num_wordpiece_labels": 17,
            "max_token_length": 9,
        },
    ),
    Family(
        "qwen3",
        "Qwen3ForCausalLM",
        "qwen3",
        {**_TEXT, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64},
        components=("prefill", "decode"),
    ),
)


def source_of(family: Family, folder: Path) -> HfSource:
    family.write(folder)
    source = resolve(str(folder), random_weights=True)
    assert isinstance(source, HfSource)
    return source


def export_family(family: Family, folder: Path, **options: Any) -> ExportOutcome:
    """Export a family into `folder/out` with random weights."""
    source = source_of(family, folder / "model")
    out = folder / "out"
    out.mkdir()
    params = ExportParams(task=source.task, random_weights=True, **options)
    return run_export(source, str(out), params)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="families to export; all when empty")
    wanted = parser.parse_args(arguments).names
    print(
        f"{'family':<24}{'component':<10}{'strategy':<14}{'nodes':>6}{'cosine':>12}{'max-abs':>10}{'allowed':>10}{'seconds':>9}"
    )
    failed = 0
    for family in FAMILIES:
        if not wanted or family.name in wanted:
            failed += not _report(family)
    return 1 if failed else 0


def _report(family: Family) -> bool:
    started = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            outcome = export_family(family, Path(folder))
        except WrightError as error:
            print(f"{family.name:<24}FAILED {error.problem}: {error.cause}", flush=True)
            return False
    for part in outcome.components:
        parity = part.parity
        print(
            f"{family.name:<24}{part.name:<10}{part.strategy:<14}{part.nodes:>6}{parity.cosine:>12.8f}"
            f"{parity.max_abs:>10.1e}{parity.bound:>10.1e}{part.seconds:>9.1f}",
            flush=True,
        )
        for attempt in part.rejected:
            print(f"{'':<24}not {attempt.strategy} ({attempt.seconds:.1f} s): {attempt.reason}", flush=True)
    print(f"{'':<24}total {time.perf_counter() - started:.1f} s", file=sys.stderr)
    return True


if __name__ == "__main__":
    sys.exit(main())
