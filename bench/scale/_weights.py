"""Rows about big weights."""

from __future__ import annotations

from bench.scale._bare import INT4, OPTIMIZE
from bench.scale._models import heavy
from bench.scale._places import Row, beside, bytes_in, place


def external(megabytes: int = 2400) -> Row:
    """fp32 build of a model whose weights are in a file of their own."""
    with place() as here:
        model = heavy(here.folder / "model.onnx", megabytes, external=True, width=4096)
        size = bytes_in(here.folder)
        bare = here.bare(OPTIMIZE, model, here.folder / "optimized.onnx", "external")
        written = sum((here.folder / name).stat().st_size for name in ("optimized.onnx", "optimized.data"))
        ours = here.wright("build", model, "--target", "cpu", "-o", here.folder / "out")
        warm = here.wright("build", model, "--target", "cpu", "-o", here.folder / "out")
        return {
            "model_bytes": size, **beside(ours, bare), "stored_bytes": here.stored(), "bare_bytes": written,
            "stored_ratio": round(here.stored() / written, 3), "peak_of_model": round(ours.held_bytes / size, 3),
            "warm_cpu_s": round(warm.cpu_s, 2),
            "limits": {"cpu_ratio": 1.3, "stored_ratio": 1.05, "peak_of_model": 0.6, "warm_cpu_s": 0.6},
        }  # fmt: skip


def int4(megabytes: int = 500) -> Row:
    with place() as here:
        model = heavy(here.folder / "model.onnx", megabytes)
        bare = here.bare(INT4, model, here.folder / "int4.onnx")
        words = ("quantize", model, "--precision", "int4", "-o", here.folder / "out")
        ours = here.wright(*words, good=(0, 1, 6))
        memory = round(ours.held_bytes / bare.held_bytes, 2)
        return {**beside(ours, bare), "memory_ratio": memory, "limits": {"cpu_ratio": 1.1, "memory_ratio": 0.5}}
