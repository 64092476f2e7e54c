"""A model's main input has the first layout that it runs on, and any answer that it gives is read."""

import dataclasses
from types import SimpleNamespace

import pytest
import torch
from bench.families import FAMILIES, source_of

from modelwright.errors import InputError
from modelwright.stages.export import ExportParams
from modelwright.stages.export._causal import causal_parts
from modelwright.stages.export._layouts import fitting, layouts
from modelwright.stages.export._load import Loaded, load_model
from modelwright.stages.export._single import _tensors, single_part

pytestmark = pytest.mark.filterwarnings("ignore")
PARAMS = ExportParams(task="feature-extraction")
BY_NAME = {family.name: family for family in FAMILIES}


class Config(SimpleNamespace):
    model_type = "made-up"
    _attn_implementation = "eager"

    def get_text_config(self, **_):
        return self


class Model(torch.nn.Module):
    main_input_name = "pixel_values"

    def __init__(self, **config):
        super().__init__()
        self.config = Config(**config)

    def can_generate(self):
        return False


def loaded(model):
    return Loaded(model, model.config, {}, PARAMS.task, None)


def found(model):
    def run_with(fixed):
        return lambda tensors: {"y": model.forward(**tensors, **fixed)}

    state = loaded(model)
    return fitting(model, run_with, layouts(model, state, PARAMS), state, PARAMS), state


class Film(Model):
    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        _, frames, _, _, _ = pixel_values.shape
        return pixel_values.sum() * frames


def test_where_one_picture_does_not_do_a_film_is_given():
    fits, state = found(Film(image_size=8, num_frames=3))
    assert fits.inputs[0].sizes == (1, 3, 3, 8, 8)
    assert state.sizes["frames"].size == 3


def test_the_usual_layout_comes_first_and_leaves_no_size_of_another():
    class Picture(Model):
        def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
            return pixel_values.sum()

    fits, state = found(Picture(image_size=8, num_frames=3))
    assert fits.inputs[0].sizes == (1, 3, 8, 8)
    assert "frames" not in state.sizes


def test_what_the_usual_layout_ran_into_is_what_is_said():
    class Never(Model):
        def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
            raise ValueError(f"not with {pixel_values.dim()} axes")

    with pytest.raises(InputError, match="does not run") as error:
        found(Never(image_size=8))
    assert "not with 4 axes" in error.value.cause


def test_sound_is_bands_over_time_or_time_over_bands():
    class Sound(Model):
        main_input_name = "input_features"

        def forward(self, input_features: torch.Tensor) -> torch.Tensor:
            if input_features.shape[-1] != self.config.num_mel_bins:
                raise ValueError("bands stand last")
            return input_features.sum()

    fits, _ = found(Sound(num_mel_bins=20))
    assert fits.inputs[0].sizes[2] == 20


def test_tokens_of_several_codebooks_are_given_together():
    class Music(Model):
        main_input_name = "input_ids"

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return input_ids.reshape(-1, 4, input_ids.shape[-1]).sum()

    class Odd(Music):
        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            if input_ids.shape[0] % 4:
                raise ValueError("four at a time")
            return super().forward(input_ids)

    fits, _ = found(Odd(vocab_size=9, num_codebooks=4, max_position_embeddings=6))
    assert fits.inputs[0].sizes == (4, 6)


def test_a_grid_is_fixed_with_the_size_of_the_picture_and_said_to_be():
    class Patches(Model):
        main_input_name = "pixel_values"

        def forward(self, pixel_values: torch.Tensor, grid_thw: torch.Tensor) -> torch.Tensor:
            if int(grid_thw.prod()) != pixel_values.shape[0] or pixel_values.shape[1] != 3 * 2 * 4 * 4:
                raise ValueError("patches and grid differ")
            return pixel_values.sum()

    model = Patches(image_size=16, patch_size=4, temporal_patch_size=2, spatial_merge_size=2)
    fits, _ = found(model)
    assert [spec.name for spec in fits.inputs] == ["pixel_values"]
    assert fits.inputs[0].sizes == (16, 96)
    assert fits.fixed["grid_thw"].tolist() == [[1, 4, 4]]
    assert [(one.argument, "size of the picture" in one.reason) for one in fits.left_out] == [("grid_thw", True)]


def test_an_answer_by_another_name_is_read_whole_without_what_is_inside():
    output = {"iou_scores": torch.ones(2), "hidden_states": (torch.ones(1),), "loss": torch.ones(()), "masks": None}
    assert list(_tensors(Film(), output, ("logits",))) == ["iou_scores"]
    assert list(_tensors(Film(), torch.ones(3), ("logits",))) == ["output"]
    assert list(_tensors(Film(), {"logits": torch.ones(1), "more": torch.ones(1)}, ("logits",))) == ["logits"]
    with pytest.raises(InputError, match="does not return logits"):
        _tensors(Film(), {"loss": torch.ones(())}, ("logits",))


def test_a_cache_that_changes_the_answers_is_left_out_with_the_reason(tmp_path, monkeypatch):
    """What our own cache computes is held against the model with its own, not against itself."""
    from modelwright.stages.export import _causal

    family = dataclasses.replace(BY_NAME["qwen3"])
    source = source_of(family, tmp_path / "model")
    params = ExportParams(task=source.task, random_weights=True, sequence_length=8)
    model = load_model(source, params)
    right = _causal.static_cache
    monkeypatch.setattr(_causal, "static_cache", lambda shape, past, at: right(shape, [p + 1 for p in past], at))
    (part,), links = causal_parts(model, params)
    assert (part.name, links) == ("model", ())
    assert any("not those of the model" in one.reason for one in part.left_out)


def test_an_option_that_a_head_takes_from_nobody_is_not_given(tmp_path):
    config = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "head_dim": 16}
    config |= {"num_key_value_heads": 2, "intermediate_size": 37}
    family = dataclasses.replace(
        BY_NAME["bert"],
        architecture="T5GemmaForSequenceClassification",
        model_type="t5gemma",
        config={"encoder": config, "decoder": config, "vocab_size": 99, "num_labels": 3},
    )
    source = source_of(family, tmp_path / "model")
    params = ExportParams(task=source.task, random_weights=True, sequence_length=8)
    part = single_part(load_model(source, params), params)
    assert part.inputs[0].name == "input_ids"
