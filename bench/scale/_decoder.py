"""A language model of three billion parameters, from its configuration to 4 bits."""

from __future__ import annotations

import json

from bench.scale._places import Row, bytes_in, place

# As Llama 3.2 with 3 B parameters, with a smaller vocabulary and one layer more: 3.02 B.
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 3072,
    "intermediate_size": 8192,
    "num_hidden_layers": 29,
    "num_attention_heads": 24,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 32000,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_LONGEST_S = 2400


def decoder(layers: int = 29) -> Row:
    """The peak is said by the plan, and then measured. A gate that fails is an answer: random weights lie badly in
    4 bits."""
    with place() as here:
        model = here.folder / "model"
        model.mkdir()
        (model / "config.json").write_text(json.dumps({**CONFIG, "num_hidden_layers": layers}))
        words = ("build", model, "--random-weights", "--target", "cpu", "--precision", "int4")
        planned = here.answer(*words, "--plan")["plans"][0]["peak"]
        cost = here.wright(*words, "-o", here.folder / "out", good=(0, 1), longest_s=_LONGEST_S)
        off = abs(planned["held_bytes"] - cost.held_bytes) / cost.held_bytes
        return {
            "layers": layers,
            "cpu_s": round(cost.cpu_s, 1),
            "planned_bytes": planned["held_bytes"],
            "planned_by": planned["basis"],
            "held_bytes": cost.held_bytes,
            "peak_bytes": cost.peak_bytes,
            "delivered_bytes": bytes_in(here.folder / "out"),
            "gate_passed": cost.code == 0,
            "off": round(off, 3),
            "limits": {"off": 0.2},
        }
