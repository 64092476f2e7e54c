"""One driver for all cases of a test process, and what every answer must keep whatever the case was."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostile.driver import Answer, Driver, Job

CANARY = "canary"
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@pytest.fixture(scope="session")
def driver():
    if not hasattr(os, "pidfd_open"):
        pytest.skip("the driver forks and watches its forks as Linux does")
    one = Driver()
    yield one
    one.close()


@dataclass(frozen=True)
class Ground:
    """Where one case lives: what is attacked with, where `wright` runs, and where its output goes."""

    driver: Driver
    root: Path

    @property
    def things(self) -> Path:
        return self.root / "things"

    @property
    def work(self) -> Path:
        return self.root / "work"

    def wright(self, *words: object, env: dict[str, str] | None = None, timeout_s: float = 60.0) -> Answer:
        """One command line; whatever it says, it says it properly and ran none of the case's code."""
        scratch, home = str(self.root / "scratch"), str(self.root / "home")
        job = Job(tuple(map(str, words)), str(self.work), scratch, {"MODELWRIGHT_HOME": home, **(env or {})}, timeout_s)
        answer = self.driver.run(job)
        assert not list(self.root.rglob(CANARY)), "the case ran its code"
        require_manners(answer, as_json="--json" in words)
        return answer


@pytest.fixture
def ground(driver, tmp_path):
    made = Ground(driver, tmp_path)
    made.things.mkdir()
    made.work.mkdir()
    return made


def require_manners(answer: Answer, *, as_json: bool) -> None:
    """Ended by itself, no traceback, an error of three lines, nothing on stdout that is no answer."""
    told = f"\nexit {answer.code}\n{answer.out[-2000:]}\n{answer.err[-4000:]}"
    assert isinstance(answer.code, int), f"it hangs{told}"
    assert answer.code in (0, 1, 2, 3, 4, 5, 6), told
    assert "Traceback" not in answer.err, told
    assert not _CONTROL.search(answer.err + ("" if as_json else answer.out)), told
    if answer.code > 1:
        _require_three_lines(answer.err, told)
    if as_json:
        document = json.loads(answer.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
        assert document.get("exit_code", answer.code) == answer.code, told
    elif answer.code > 1:
        assert answer.out == "", told


def _require_three_lines(err: str, told: str) -> None:
    lines = err.rstrip("\n").split("\n")
    starts = [line.split(":")[0] for line in lines[-3:]]
    assert starts == ["error", "  why", "  next"], told
    assert all(len(line.partition(": ")[2]) > 2 for line in lines[-3:]), told
