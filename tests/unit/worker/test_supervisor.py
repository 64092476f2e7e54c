"""The half of a worker that watches, alone with a runner whose moments are chosen."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

# It takes over the signals of its process, so it gets one of its own. The runner's death falls between the moment in
# which orders are heard and the one in which the dead are counted; the order to begin comes in that gap too.
GAP = """
    import os, socket, sys
    from modelwright.worker._channel import Channel
    from modelwright.worker._messages import Begin
    from modelwright.worker._supervisor import Supervisor

    ours, theirs = (Channel(end, b"t" * 16) for end in socket.socketpair())
    output, printed = os.pipe()
    go, ready = os.pipe()
    runner = os.fork()
    if runner == 0:
        os.read(go, 1)
        os.write(printed, b"last words")
        os.abort()
    os.close(printed)

    class InTheGap(Supervisor):
        def _drain(self):
            if not hasattr(self, "told"):
                self.told = True
                ours.send(Begin(sys.argv[1], None))
                os.write(ready, b"!")
                os.waitid(os.P_PID, runner, os.WEXITED | os.WNOWAIT)
            super()._drain()

    watch = InTheGap(theirs, output, runner, os.getppid())
    os.set_blocking(output, False)
    watch._wake = os.pipe()[0]
    os.set_blocking(watch._wake, False)
    watch._turn()
    assert watch._code == -6
    watch._say_goodbye()
    print(ours.receive(1).log_bytes)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the supervisor of POSIX")
def test_the_last_words_of_a_runner_that_died_before_its_call_was_heard_of_are_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "call.log"
    command = [sys.executable, "-c", textwrap.dedent(GAP), str(log)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert (ended.stdout.strip(), log.read_text()) == ("10", "last words")
