"""What is going on, where lines stay."""

import pytest

from modelwright.report import status
from modelwright.report.screen import Screen
from modelwright.vocabulary import Progress


@pytest.fixture
def clock(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(status.time, "monotonic", lambda: now[0])
    return now


def test_steps_of_one_thing_are_said_once_in_a_while_where_no_line_can_change(clock, tmp_path):
    kept = []
    with (tmp_path / "err").open("w") as stream:
        line = status.KeptLines(Screen(stream, width=80), kept.append, quiet=False)
        for step in range(70):
            line(Progress(f"{16 * step} of 1128 samples", step / 70))
            clock[0] += 0.5
        line(Progress("building the baseline"))
    assert len(kept) == 5
    assert kept[-1] == "building the baseline"
