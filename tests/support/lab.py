"""A lab of real processes on loopback: `wright cluster scheduler` and `wright worker`s, each with a home of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType

from modelwright.farm.cluster import Cluster, make_certificates
from modelwright.store import Store

WRIGHT = str(Path(sys.executable).with_name("wright"))
_START_S = 180.0


class Lab:
    """`workers` are the targets that each announces, by name."""

    def __init__(self, folder: Path, workers: Mapping[str, tuple[str, ...]]) -> None:
        self.folder, self._targets = folder, workers
        self.tls = make_certificates(folder / "tls", ("box",))[0]
        self.address = ""
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Lab:
        try:
            words = ("cluster", "scheduler", "--host", "127.0.0.1", "--port", "0")
            self.address = self._start("scheduler", *words).strip()
            for name in self._targets:
                self.begin(name, wait=False)
            for name in self._targets:
                self._said(name)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin(self, name: str, *more: str, wait: bool = True) -> None:
        announced = [f"--resource=ep:{target}" for target in self._targets[name] or ("none",)]
        words = ("worker", "--scheduler", self.address, "--name", name, *announced, *more)
        self._start(name, *words, wait=wait)

    def _start(self, name: str, *words: str, wait: bool = True) -> str:
        environment = {**os.environ, "MODELWRIGHT_HOME": str(self.home(name)), "MODELWRIGHT_TLS": str(self.tls)}
        with self._log(name).open("wb") as out, self._log(name).with_suffix(".err").open("ab") as err:
            self.processes[name] = subprocess.Popen(
                [WRIGHT, *words], env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=self.folder
            )
        return self._said(name) if wait else ""

    def _said(self, name: str) -> str:
        """The first line of a process, when it has one."""
        log = self._log(name)
        until(lambda: log.read_text().endswith("\n") or self.processes[name].poll() is not None)
        assert self.processes[name].poll() is None, log.with_suffix(".err").read_text()
        return log.read_text()

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.out"

    def home(self, name: str) -> Path:
        return self.folder / "homes" / name

    def close(self) -> None:
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait(60)

    @contextlib.contextmanager
    def connected(self) -> Iterator[Cluster]:
        with Cluster(self.address, tls=self.tls) as cluster:
            yield cluster

    def is_making(self, name: str) -> bool:
        """Is it in the middle of a stage? Then the stage's folder is there."""
        return any((self.home(name) / "store" / "tmp").glob("*/*"))

    def kill(self, name: str) -> None:
        """kill -9."""
        self.processes[name].kill()
        self.processes[name].wait(60)

    def made(self) -> Mapping[str, Counter[tuple[str, str]]]:
        """What the store of each worker holds, as (stage, key), without what it was sent."""
        return {name: Counter(_made(self.home(name) / "store")) for name in self._targets}


def _made(root: Path) -> list[tuple[str, str]]:
    if not root.is_dir():
        return []
    with Store(root) as store:
        return [(entry.key.stage, entry.key.digest) for entry in store.entries() if entry.key.stage != "received"]


def until(true: Callable[[], object], seconds: float = _START_S) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)
