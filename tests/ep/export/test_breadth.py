"""The sweep over every model type: what its rule makes, what it counts, and that its page says what its rows say."""

import numpy as np
import pytest
import transformers
from bench import breadth
from bench._breadth_page import cause, page
from bench._small_configs import scaled, shallow, small
from bench.written import read


def test_one_layer_of_every_kind_is_kept():
    config = small(transformers.Qwen3NextConfig())
    assert config.layer_types == ["linear_attention", "full_attention"]
    assert config.num_hidden_layers == 2


def test_special_tokens_stay_inside_the_vocabulary_and_apart():
    config = small(transformers.LlavaConfig())
    text = config.text_config
    assert text.vocab_size == 160
    assert config.image_token_id < 160


def test_a_backbone_gives_features_from_as_many_stages_as_before():
    config = small(transformers.RTDetrV2Config())
    assert config.backbone_config.out_features == ["stage2", "stage3", "stage4"]
    assert config.backbone_config.depths == [1, 1, 1, 1]


def test_what_hangs_together_is_divided_by_the_same_number():
    was = transformers.LlamaConfig()
    config = scaled(was)
    assert config.hidden_size * was.num_attention_heads == was.hidden_size * config.num_attention_heads
    assert shallow(was).hidden_size == was.hidden_size


def test_a_row_whose_answers_never_change_does_not_count():
    still = [{"y": np.ones(4)}, {"y": np.ones(4) + 1e-5}]
    assert not breadth._varies(still)
    assert breadth._varies([{"y": np.ones(4), "z": np.zeros(2)}, {"y": np.ones(4), "z": np.ones(2)}])


def test_the_order_of_trials_is_not_that_of_names_and_holds_every_type():
    names = breadth.model_types()
    assert sorted(names) != list(names)
    assert len(set(names)) == len(names) >= 250


@pytest.mark.parametrize(
    ("why", "words"),
    [
        (
            "no export strategy works: transformers: logits differs from PyTorch: cosine 0.9",
            "answers are not PyTorch's",
        ),
        ("no export strategy works: dynamo: GuardOnDataDependentSymNode: Could not guard", "branches on values"),
        ("X takes lamp, which cannot be made up here: it has no default for it", "cannot be made up"),
    ],
)
def test_a_failure_is_listed_under_what_blocks_it(why, words):
    assert words in cause({"why": why})


def test_the_page_says_what_the_rows_say():
    result = read("breadth")
    assert breadth.PAGE.read_text() == page(result)
    states = [row["state"] for row in result["rows"]]
    assert result["states"] == {state: states.count(state) for state in set(states)}
    assert all(row["why"] for row in result["rows"] if row["state"] != "agrees")
