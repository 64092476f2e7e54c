"""What `make demo` shows: the commands a user would type, and what they answer."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.rule import Rule

ROOT = Path(__file__).parent.parent
MODEL = "demo/fashion_cnn.onnx"
SCALE = ("--scale", "1/255")
DATA = ("--data", "demo/fashion_test.npz", *SCALE)
SEEN = 400
BUILD = ("build", "-m", MODEL, "--target", "cpu", "--target", "qnn-npu", *DATA)
console = Console(highlight=False)


def main() -> int:
    console.print("A small image classifier, trained on Fashion-MNIST, on its way to a CPU and to a Qualcomm NPU.\n")
    step("What is in the model?")
    wright("inspect", MODEL)
    step("What can this machine target?")
    wright("sys")
    step("Build for both, with real images for calibration")
    wright(*BUILD, "-o", "demo-out")
    step("Where would it run on the NPU? Its own partitioner answers")
    wright("analyze", "demo-out/qnn-npu", "--target", "qnn-npu")
    step("Is int8 faster on this CPU? Only a proven difference counts")
    wright("build", "-m", MODEL, "--target", "cpu", "--precision", "w8a8", *DATA, "-o", "demo-out/cpu-int8")
    compared = ("fp32=demo-out/cpu", "int8=demo-out/cpu-int8")
    wright("compare", *compared, *DATA, "--budget", "45")
    step("Which build is the smallest that is proven to lose no more than 3 points?")
    asked = ("--objective", "size", "--task", "image-classification", "--max-drop", "3pt")
    wright("tune", MODEL, *DATA, *asked, "--axis", "precision", "--axis", "pass", "-o", "demo-out/smallest")
    step("Where does the time go?")
    wright("perf", "demo-out/cpu", "--duration", "2", "--op-trace", "--trace-html", "demo-out/trace.html")
    step("An int8 build whose calibration images were too dark: does it still see?")
    wright(
        "build",
        "-m",
        MODEL,
        "--target",
        "cpu",
        "-r",
        "demo/naive_int8.toml",
        "-o",
        "demo-out/naive-int8",
        may_say_no=True,
    )
    seen, unseen = split()
    judged = ("--reference", "demo-out/cpu", *unseen, "--task", "image-classification", "--max-drop", "3pt")
    wright("eval", "demo-out/naive-int8", *judged, may_say_no=True)
    step("Where was it lost, and what is the smallest repair?")
    models = ("demo-out/naive-int8", "--reference", "demo-out/cpu/model.onnx")
    repair = ("--fix", "--target-sqnr", "24", "--samples", "128", "-o", "demo-out/repaired")
    wright("debug", *models, *seen, *repair, "--html", "demo-out/debug.html")
    console.print("Judged on images that the repair never saw:\n")
    wright("eval", "demo-out/repaired", *judged)
    climb_and_forge(unseen)
    step("Nothing twice: the first build again")
    seconds = wright(*BUILD, "-o", "demo-out")
    console.print(f"[bold]The second build took {seconds:.1f} s: everything came from the store.[/]")
    step("All of it as pages: open the one that it names")
    wright("site", "build", "-o", "demo-out/site")
    return 0


def climb_and_forge(data: tuple[str, ...]) -> None:
    """A claim, what is shown of it, and a copy in which somebody wrote down what was not measured."""
    step("Supported? A claim climbs: structure, runs, parity, task")
    shutil.rmtree(ROOT / "demo-out/contribution", ignore_errors=True)
    asked = ("--task", "image-classification", "--ceiling", "L3", "--max-drop", "3pt", "--seeds", "2")
    wright("support", "run", "-m", MODEL, *data, *asked, "-o", "demo-out/contribution", quiet=True)
    wright("support", "report", "demo-out/contribution", shown=12)
    step("A forged copy, with every id made to fit: does a review believe it?")
    forge(ROOT / "demo-out/contribution", ROOT / "demo-out/forged")
    wright("support", "review", "demo-out/forged", "-m", MODEL, *data[:2], may_say_no=True)


def forge(folder: Path, copy: Path) -> None:
    """What a forger can do who knows the format: another number, and all ids hashed again."""
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("builds", "report.md"))
    lines, previous = [], None
    for line in (copy / "evidence.jsonl").read_text().splitlines():
        said = json.loads(line)
        del said["id"]
        if said["predicate"]["asked"]["level"] == "L3":
            said["predicate"]["measured"]["candidate"] = 0.99
        said["predicate"]["previous"] = previous
        body = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        previous = said["id"] = hashlib.sha256(body.encode()).hexdigest()
        lines.append(json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
    (copy / "evidence.jsonl").write_text("\n".join(lines) + "\n")


def split() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Images that choose and check the repair, and others that judge it."""
    with np.load(ROOT / "demo/fashion_test.npz") as data:
        for name, part in (("seen", slice(SEEN)), ("unseen", slice(SEEN, None))):
            np.savez(ROOT / f"demo-out/{name}.npz", image=data["image"][part], label=data["label"][part])
    return ("--data", "demo-out/seen.npz", *SCALE), ("--data", "demo-out/unseen.npz", *SCALE)


def step(title: str) -> None:
    console.print(Rule(title, align="left"))


def wright(*words: str, may_say_no: bool = False, quiet: bool = False, shown: int | None = None) -> float:
    """Show a command as a user types it, and its answer; returns seconds. 1 (no) and 6 (cannot tell) are answers."""
    console.print(f"[bold]$ {shlex.join(['wright', *words])}[/]", soft_wrap=True)
    script = Path(sys.executable).with_name("wright")
    home = os.environ.get("MODELWRIGHT_HOME", str(ROOT / ".demo-home"))
    environment = {**os.environ, "COLUMNS": str(console.width), "MODELWRIGHT_HOME": home}
    started = time.perf_counter()
    silent = ["-q"] if quiet else []
    done = subprocess.run(
        [script, *words, *silent],
        cwd=ROOT,
        env=environment,
        check=False,
        stdout=subprocess.PIPE if shown is not None else None,
        text=True,
    )
    if shown is not None:
        console.print("\n".join([*done.stdout.splitlines()[:shown], "…"]), markup=False, soft_wrap=True)
    if done.returncode not in ((0, 1, 6) if may_say_no else (0,)):
        sys.exit(done.returncode)
    return time.perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
