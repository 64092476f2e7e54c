"""Forty kills at seeded random moments: what was measured is kept, nothing is left running, no temporary folder stays.

Ten kills each of `perf`, `compare`, `eval` and `debug`, by SIGTERM, SIGHUP, SIGINT and SIGKILL. What was measured is
read from outside right before the signal (the samples, the finished units, the snapshot); the result that is kept must
hold at least as much. `eval` and `debug` take a snapshot at least about once a second: `told_before` is how far they
said they were. SIGKILL keeps nothing by its nature: there the children and the temporary folders count, the
latter after the next command that needs some.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import pty
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from modelwright.measure._sink import read_samples

ROOT = Path(__file__).parents[1]
MODEL, DATA = ROOT / "demo/fashion_cnn.onnx", ROOT / "demo/fashion_test.npz"
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
KILLS = 10
_MARKER = "WRIGHT_KILL"
_GONE_S = 60.0
_BEGIN_S = 600.0


@dataclass(frozen=True)
class Victim:
    """A command that would run for long, how much it has measured (from outside), and how much a result holds."""

    name: str
    words: tuple[str, ...]
    seen: Callable[[Running], int]
    kept: Callable[[str], int]
    told: str
    saves: bool = True


@dataclass
class Running:
    """One command, in a world of its own: home, temporary folder, terminal on stderr."""

    victim: Victim
    folder: Path
    said: str = ""
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        self.tmp = self.folder / "tmp"
        self.tmp.mkdir()
        self.home = self.folder / "home"
        self.output = self.folder / "result.json"
        self.stdout = self.folder / "stdout"
        screen, end = pty.openpty()
        save = ("--save", str(self.output)) if self.victim.saves else ()
        with self.stdout.open("wb") as out:
            self.process = subprocess.Popen(
                [str(Path(sys.executable).with_name("wright")), *self.victim.words, *save],
                cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL, stdout=out, stderr=end,
            )  # fmt: skip
        os.close(end)
        self._reader = threading.Thread(target=self._listen, args=(screen,), daemon=True)
        self._reader.start()

    def environment(self) -> dict[str, str]:
        own = {"TMPDIR": str(self.tmp), "MODELWRIGHT_HOME": str(self.home), _MARKER: self.token, "COLUMNS": "200"}
        return {**os.environ, **own}

    def _listen(self, screen: int) -> None:
        with contextlib.suppress(OSError):
            while chunk := os.read(screen, 1 << 16):
                self.said += chunk.decode(errors="replace")
        os.close(screen)

    def seen(self) -> int:
        # The file may be replaced or removed while it is looked at.
        with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError, ValueError):
            return self.victim.seen(self)
        return 0

    def told(self) -> int:
        """How far it said it was, on the terminal."""
        return max((int(number) for number in re.findall(self.victim.told, self.said)), default=0)

    def wait_for(self, amount: int) -> None:
        end = time.monotonic() + _BEGIN_S
        while self.seen() < amount:
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.victim.name} measured nothing: {self.said[-2000:]}")
            time.sleep(0.02)

    def end(self, number: int) -> Fate:
        """Send the signal, wait, and look at what is left."""
        before, told, began = self.seen(), self.told(), time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(timeout=300)
        took = time.monotonic() - began
        self._reader.join(timeout=60)
        return Fate(
            command=self.victim.name,
            signal=signal.Signals(number).name,
            exit_code=code,
            seconds_to_end=round(took, 2),
            measured_before=before,
            told_before=told,
            kept=self._kept(),
            left_running=self._left_running(),
            temporary=self._temporary(),
            traceback="Traceback" in self.said,
        )

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=300)

    def _kept(self) -> int | None:
        file = self.output if self.victim.saves else self.stdout
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        return self.victim.kept(text) if text else None

    def _left_running(self) -> int:
        end = time.monotonic() + _GONE_S
        while (count := self._marked()) and time.monotonic() < end:
            time.sleep(0.05)
        return count

    def _marked(self) -> int:
        count, mark = 0, f"{_MARKER}={self.token}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                alive = (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
                count += alive and mark in (process / "environ").read_bytes()
        return count

    def _temporary(self) -> list[str]:
        shared = Path("/dev/shm").glob(f"modelwright-{self.process.pid}-*")
        # onnxruntime writes .ses when it is imported, whatever becomes of the process.
        return sorted(path.name for path in (*self.tmp.iterdir(), *shared) if path.name != ".ses")


@dataclass(frozen=True)
class Fate:
    """How one kill ended."""

    command: str
    signal: str
    exit_code: int
    seconds_to_end: float
    measured_before: int
    told_before: int
    kept: int | None
    left_running: int
    temporary: list[str]
    traceback: bool

    @property
    def good(self) -> bool:
        hard, number = self.signal == "SIGKILL", signal.Signals[self.signal]
        # Before the interpreter listens, the system ends it; for a shell that is 128 + n too.
        early = self.measured_before == 0 and self.exit_code == -number
        code = early or self.exit_code == (-number if hard else 128 + number)
        kept = hard or (self.kept or 0) >= self.measured_before
        return code and kept and not (self.left_running or self.temporary or self.traceback)


def _samples(running: Running) -> int:
    return max((len(read_samples(file)[1]) for file in running.tmp.glob("*/samples")), default=0)


def _units(running: Running) -> int:
    return running.told()


def _so_far(running: Running, amount: Callable[[object], int]) -> int:
    return max((amount(pickle.loads(file.read_bytes())) for file in running.tmp.glob("*/so-far")), default=0)


def victims(folder: Path) -> tuple[Victim, ...]:
    """Commands on the demo's model and data; `folder` gets the second model and more data."""
    quantized, many = folder / "w8a8.onnx", folder / "many.npz"
    if not quantized.exists():
        _prepare(quantized, many)
    long = ("--duration", "600", "--threads", "1")
    task = ("--data", str(many), "--task", "image-classification", "--scale", "1/255", "--max-drop", "5pt")
    return (
        Victim("perf", ("perf", str(MODEL), *long), _samples, _perf_kept, "(?!)"),
        Victim(
            "compare",
            (
                "compare",
                str(MODEL),
                f"two={MODEL}@threads=2",
                "--budget",
                "600",
                "--min-effect",
                "0.0001",
                "--threads",
                "1",
            ),
            _units,
            lambda text: len(json.loads(text)["units"]),
            r"unit (\d+),",
        ),
        Victim(
            "eval",
            ("eval", str(quantized), "--reference", str(MODEL), *task),
            lambda running: _so_far(running, lambda found: found.data.selected),
            lambda text: json.loads(text)["data"]["selected"],
            r"(\d+) of \d+ samples",
        ),
        Victim(
            "debug",
            ("debug", str(quantized), "--reference", str(MODEL), "--samples", "20000"),
            lambda running: _so_far(running, lambda found: found.samples),
            lambda text: int(next(iter(re.findall(r"the first ones on (\d+) of", text)), 0)),
            r"sample (\d+)",
            saves=False,
        ),
    )


def _perf_kept(text: str) -> int:
    return sum(len(session["samples_ns"]) for session in json.loads(text)["sessions"])


def _prepare(quantized: Path, many: Path) -> None:
    import numpy as np
    from onnxruntime.quantization import CalibrationDataReader, quantize_static

    images, labels = np.load(DATA)["image"], np.load(DATA)["label"]
    name = "image"

    class Reader(CalibrationDataReader):
        rows = iter([{name: images[:16].astype("float32") / 255}])

        def get_next(self):
            return next(self.rows, None)

    quantize_static(str(MODEL), str(quantized), Reader())
    np.savez(many, image=np.tile(images, (40, 1, 1, 1)), label=np.tile(labels, 40))


def kill(victim: Victim, folder: Path, number: int, delay_s: float, *, measured: bool = True) -> Fate:
    """Start it, wait until it has measured something (or not at all), then `delay_s` more, then the signal."""
    folder.mkdir(parents=True)
    running = Running(victim, folder)
    try:
        if measured:
            running.wait_for(1)
        time.sleep(delay_s)
        fate = running.end(number)
        return _swept(running, fate) if number == signal.SIGKILL else fate
    finally:
        running.close()


def _swept(running: Running, fate: Fate) -> Fate:
    """What the next command leaves of the temporary folders of one that was killed."""
    from dataclasses import replace

    script = str(Path(sys.executable).with_name("wright"))
    words = (script, "eval", str(MODEL), "--reference", str(MODEL), "--data", "random", "--samples", "1", "--outputs")
    subprocess.run(words, env=running.environment(), capture_output=True, check=True, timeout=120)
    return replace(fate, temporary=running._temporary())


def run(kills: int = KILLS, seed: int = 0) -> dict[str, object]:
    coin = random.Random(seed)
    fates = []
    with tempfile.TemporaryDirectory(prefix="kills-") as place:
        folder = Path(place)
        for victim in victims(folder):
            for count in range(kills):
                # Every fifth one at any moment of the start, when there may be nothing to keep yet.
                early, number = count % 5 == 4, SIGNALS[count % len(SIGNALS)]
                delay = coin.uniform(0.0, 2.0)
                fates.append(kill(victim, folder / f"{victim.name}-{count}", number, delay, measured=not early))
                print(f"{fates[-1]}", flush=True)
    return {
        "what": __doc__.partition("\n")[0],
        "kills": len(fates),
        "good": sum(fate.good for fate in fates),
        "met": all(fate.good for fate in fates),
        "fates": [vars(fate) | {"good": fate.good} for fate in fates],
    }
