"""Forty kills at seeded random moments: what was measured is kept, nothing is left running, no temporary folder stays.

Ten kills each of `perf`, `compare`, `eval` and `debug`, by SIGTERM, SIGHUP, SIGINT and SIGKILL. `measured_before` is
seen from outside right before the signal: the samples of `perf` in its file, the units that `compare` told on the
terminal, the samples that `eval` and `debug` had told `lost_s` before, because about a second of theirs may be missing;
the result that is kept must hold at least as much. For comparison: `told_before` is how far they said they were at the
signal, `snapshot_before` what their last snapshot held. SIGKILL keeps nothing by its nature: there the children and the
temporary folders count, the latter after the next command that needs some.
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
from typing import Any

from modelwright.measure.timing._sink import read_samples

ROOT = Path(__file__).parents[1]
MODEL, DATA = ROOT / "demo/fashion_cnn.onnx", ROOT / "demo/fashion_test.npz"
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
KILLS = 10
_MARKER = "WRIGHT_KILL"
_GONE_S = 60.0
_BEGIN_S = 600.0
LOST_S = 1.5
"""Of `eval` and `debug`: about a second between two snapshots, the time one takes, and the time until it is told."""


@dataclass(frozen=True)
class Victim:
    """A command that would run for long, how much it has measured (from outside), and how much a result holds.
    `snapshot` is how much is in what it keeps on the way, where it does."""

    name: str
    words: tuple[str, ...]
    seen: Callable[[Running], int]
    kept: Callable[[str], int]
    told: str
    saves: bool = True
    snapshot: Callable[[Any], int] | None = None


@dataclass
class Running:
    """One command, in a world of its own: home, temporary folder, terminal on stderr."""

    victim: Victim
    folder: Path
    heard: list[tuple[float, str]] = field(default_factory=list)
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
                self.heard.append((time.monotonic(), chunk.decode(errors="replace")))
        os.close(screen)

    @property
    def said(self) -> str:
        return "".join(text for _, text in self.heard)

    def seen(self) -> int:
        # The file may be replaced or removed while it is looked at.
        with contextlib.suppress(OSError, ValueError):
            return self.victim.seen(self)
        return 0

    def snapshot(self) -> int:
        held = self.victim.snapshot
        with contextlib.suppress(OSError, EOFError, pickle.UnpicklingError):
            files = self.tmp.glob("*/so-far") if held else ()
            return max((held(pickle.loads(file.read_bytes())) for file in files if held), default=0)
        return 0

    def told(self, ago_s: float = 0.0) -> int:
        """How far it said it was, on the terminal, so many seconds ago."""
        then = time.monotonic() - ago_s
        said = "".join(text for when, text in self.heard if when <= then)
        return max((int(number) for number in re.findall(self.victim.told, said)), default=0)

    def wait_for(self, amount: int) -> None:
        end = time.monotonic() + _BEGIN_S
        while self.seen() < amount or (self.victim.snapshot is not None and self.snapshot() < amount):
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.victim.name} measured nothing: {self.said[-2000:]}")
            time.sleep(0.02)

    def end(self, number: int) -> Fate:
        """Send the signal, wait, and look at what is left."""
        before, told, snapshot, began = self.seen(), self.told(), self.snapshot(), time.monotonic()
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
            snapshot_before=snapshot,
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
    snapshot_before: int
    kept: int | None
    left_running: int
    temporary: list[str]
    traceback: bool

    @property
    def clean(self) -> bool:
        """It ended as it should, and nothing is left."""
        hard, number = self.signal == "SIGKILL", signal.Signals[self.signal]
        # Before the interpreter listens, the system ends it; for a shell that is 128 + n too.
        early = self.measured_before == 0 and self.exit_code == -number
        code = early or self.exit_code == (-number if hard else 128 + number)
        return code and not (self.left_running or self.temporary or self.traceback)

    @property
    def good(self) -> bool:
        return self.clean and (self.signal == "SIGKILL" or (self.kept or 0) >= self.measured_before)


def _samples(running: Running) -> int:
    return max((len(read_samples(file)[1]) for file in running.tmp.glob("*/samples")), default=0)


def _told(running: Running) -> int:
    return running.told()


def _told_before(running: Running) -> int:
    return running.told(LOST_S)


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
            _told,
            lambda text: len(json.loads(text)["units"]),
            r"unit (\d+),",
        ),
        Victim(
            "eval",
            ("eval", str(quantized), "--reference", str(MODEL), *task),
            _told_before,
            lambda text: json.loads(text)["data"]["selected"],
            r"(\d+) of \d+ samples",
            snapshot=lambda found: found.data.selected,
        ),
        Victim(
            "debug",
            ("debug", str(quantized), "--reference", str(MODEL), "--samples", "20000"),
            _told_before,
            lambda text: int(next(iter(re.findall(r"the first ones on (\d+) of", text)), 0)),
            r"sample (\d+)",
            saves=False,
            snapshot=lambda found: found.samples,
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
                delay = coin.uniform(0.0, 3.0)
                fates.append(kill(victim, folder / f"{victim.name}-{count}", number, delay, measured=not early))
                print(f"{fates[-1]}", flush=True)
    return {
        "what": __doc__.partition("\n")[0],
        "lost_s": LOST_S,
        "kills": len(fates),
        "good": sum(fate.good for fate in fates),
        "met": all(fate.good for fate in fates),
        "fates": [vars(fate) | {"good": fate.good} for fate in fates],
    }
