"""What a build costs beside the bare calls it is made of: CPU seconds and peak memory of whole processes.

Bare: an exporter, one onnxruntime session that writes the optimized model, `quantize_static`. The exporter is ours
(`dynamo`, what the limits are about) and, in a process of its own, torch's older one by tracing (`torchscript`), which
takes less time and writes another graph. All start from the same config-only Hugging Face folder with seeded random
weights, in fresh processes, interleaved. What quantize alone needs beside `quantize_static` alone is in
`quantize_memory`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SAMPLES = 32
ROUNDS = 2
TIME_LIMIT, MEMORY_LIMIT = 1.15, 1.1
CASES = (("resnet", "fp32"), ("resnet", "w8a8"), ("bert", "fp32"), ("bert", "w8a8"))

CONFIGS = """
import sys
from transformers import BertConfig, ResNetConfig
resnet = ResNetConfig(num_labels=1000)
resnet.architectures = ["ResNetForImageClassification"]
resnet.save_pretrained(sys.argv[1] + "/resnet")
bert = BertConfig()
bert.architectures = ["BertModel"]
bert.save_pretrained(sys.argv[1] + "/bert")
"""

BARE = """
import sys
from pathlib import Path
import numpy as np
import onnxruntime as ort
import torch
from transformers import AutoConfig, AutoModel, AutoModelForImageClassification

folder, work, precision, samples, way = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5]
config = AutoConfig.from_pretrained(folder)
torch.manual_seed(0)
kind = AutoModelForImageClassification if config.model_type == "resnet" else AutoModel
model = kind.from_config(config, attn_implementation="eager").eval()
rng = np.random.default_rng(0)

def sample():
    if config.model_type == "resnet":
        return {"pixel_values": rng.standard_normal((1, 3, 224, 224), dtype=np.float32)}
    ids = rng.integers(0, config.vocab_size, (1, 128))
    return {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}

given = {name: torch.from_numpy(value) for name, value in sample().items()}
if way == "dynamo":
    import onnx_ir
    from transformers.exporters import OnnxConfig, OnnxExporter
    exported = OnnxExporter().export(model, given, config=OnnxConfig())
    # Until transformers 5.22 this was torch's ONNXProgram; since 5.23 it wraps the graph itself.
    onnx_ir.save(exported.program if hasattr(exported, "program") else exported.model, work / "export.onnx")
    del exported
else:
    class Traced(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model
        def forward(self, *values):
            return self.model(**dict(zip(given, values)), return_dict=False)

    torch.onnx.export(
        Traced().eval(), tuple(given.values()), str(work / "export.onnx"), dynamo=False, input_names=list(given),
        opset_version=17)
del model
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
options.optimized_model_filepath = str(work / "optimized.onnx")
ort.InferenceSession(str(work / "export.onnx"), options, providers=["CPUExecutionProvider"])
if precision == "w8a8":
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

    class Reader(CalibrationDataReader):
        left = samples
        def get_next(self):
            self.left -= 1
            return sample() if self.left >= 0 else None

    quantize_static(
        str(work / "optimized.onnx"), str(work / "quantized.onnx"), Reader(), quant_format=QuantFormat.QDQ,
        per_channel=True, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
        op_types_to_quantize=["Conv", "Gemm", "MatMul"],
    )
"""


def measure(command: list[str], environment: dict[str, str]) -> dict[str, float]:
    """CPU seconds of the process and everything it started, and the largest resident size among them."""
    watch = (
        "import json, resource, subprocess, sys\n"
        "code = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps({'code': code, 'cpu_s': used.ru_utime + used.ru_stime, 'peak_mb': used.ru_maxrss / 1024}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", watch, *command],
        # Installed packages are there as bytecode; a shell that forbids to write it would have every process compile.
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    if found["code"] not in (0, 1):
        raise RuntimeError(done.stderr[-2000:])
    return found


def ours(model: Path, precision: str, work: Path) -> list[str]:
    wright = str(Path(sys.executable).with_name("wright"))
    words = ["build", "-m", str(model), "--random-weights", "--target", "cpu", "--precision", precision]
    return [wright, *words, "--samples", str(SAMPLES), "-o", str(work / "out"), "-q"] if precision != "fp32" else [
        wright, *words, "-o", str(work / "out"), "-q"
    ]  # fmt: skip


def one_round(model: Path, precision: str) -> dict[str, dict[str, float]]:
    result = {}
    for name in ("bare", "torchscript", "wright"):
        work = Path(tempfile.mkdtemp(prefix="build-cost-"))
        way = "dynamo" if name == "bare" else name
        bare = [sys.executable, "-c", BARE, str(model), str(work), precision, str(SAMPLES), way]
        command = ours(model, precision, work) if name == "wright" else bare
        result[name] = measure(command, {"MODELWRIGHT_HOME": str(work / "home")})
        if name != "wright" and result[name]["code"]:
            raise RuntimeError(f"the bare calls fail for {model.name} {precision}: there is nothing to compare with")
        if name == "wright":
            result["warm"] = measure(command, {"MODELWRIGHT_HOME": str(work / "home")})
        shutil.rmtree(work)
    return result


def run() -> dict[str, object]:
    cases = {}
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", CONFIGS, folder], check=True, capture_output=True)
        for name, precision in CASES:
            rounds = [one_round(Path(folder, name), precision) for _ in range(ROUNDS)]
            best = {
                arm: {key: min(item[arm][key] for item in rounds) for key in ("cpu_s", "peak_mb")}
                for arm in ("bare", "torchscript", "wright", "warm")
            }
            cases[f"{name} {precision}"] = {
                "cpu_ratio": round(best["wright"]["cpu_s"] / best["bare"]["cpu_s"], 3),
                "memory_ratio": round(best["wright"]["peak_mb"] / best["bare"]["peak_mb"], 3),
                "cpu_ratio_to_torchscript": round(best["wright"]["cpu_s"] / best["torchscript"]["cpu_s"], 3),
                "warm_cpu_s": round(best["warm"]["cpu_s"], 2),
                **{f"{arm}_{key}": round(value, 1) for arm, values in best.items() for key, value in values.items()},
            }
    met = all(case["cpu_ratio"] <= TIME_LIMIT and case["memory_ratio"] <= MEMORY_LIMIT for case in cases.values())
    limits = f"cpu <= {TIME_LIMIT}, memory <= {MEMORY_LIMIT}"
    return {"cases": cases, "samples": SAMPLES, "rounds": ROUNDS, "target": limits, "met": met}


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
