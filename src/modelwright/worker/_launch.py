"""Starting a child, and holding its two conversations: with its supervisor and with its runner."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import IO

from modelwright._dataclass import dataclass
from modelwright.worker import _windows
from modelwright.worker._channel import TOKEN_BYTES, Channel
from modelwright.worker._payload import INLINE_BYTES, Scratch
from modelwright.worker._serve import ChildPlan

_HERE = Path(__file__).parent
_GOODBYE_S = 8.0


@dataclass
class Child:
    """A started child. `startup` is what its supervisor prints, which is nothing unless it cannot work."""

    process: subprocess.Popen[bytes]
    control: Channel
    data: Channel
    scratch: Scratch
    startup: IO[bytes]
    cpu_total_s: float = 0.0

    def complaint(self) -> str:
        """The last thing the child said before it could start."""
        self.startup.seek(0)
        lines = self.startup.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """End the whole tree and wait for it. The end of the control channel is the order to go."""
        self.control.close()
        self.data.close()
        try:
            self.process.wait(_GOODBYE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        finally:
            self.startup.close()
            self.scratch.remove()


def launch(python: Path) -> Child:
    """Start a child with this interpreter. It is ready for orders at once; it reads them when it can."""
    token = secrets.token_bytes(TOKEN_BYTES)
    scratch = Scratch.create()
    startup = tempfile.TemporaryFile()  # noqa: SIM115 lives as long as the child
    try:
        if sys.platform == "win32":
            child = _launch_windows(python, token, scratch, startup)
        else:
            child = _launch_posix(python, token, scratch, startup)
        return child
    except BaseException:
        startup.close()
        scratch.remove()
        raise


def _launch_posix(python: Path, token: bytes, scratch: Scratch, startup: IO[bytes]) -> Child:
    control, their_control = _socket_pair()
    data, their_data = _socket_pair()
    plan = ChildPlan(os.getpid(), token.hex(), scratch.folders, their_control.fileno(), their_data.fileno())
    with contextlib.ExitStack() as on_error, their_control, their_data:
        on_error.callback(control.close)
        on_error.callback(data.close)
        process = subprocess.Popen(
            _command(python, plan),
            stdin=subprocess.DEVNULL,
            stdout=startup,
            stderr=startup,
            pass_fds=(their_control.fileno(), their_data.fileno()),
            start_new_session=True,
            env=_environment(),
        )
        on_error.pop_all()
    return Child(process, Channel(control, token), Channel(data, token), scratch, startup)


if sys.platform == "win32":

    def _launch_windows(python: Path, token: bytes, scratch: Scratch, startup: IO[bytes]) -> Child:
        """No fork there: the child is the runner, and a thread of ours supervises it through a job object."""
        control, their_control = _socket_pair()
        data, their_data = _socket_pair()
        plan = ChildPlan(os.getpid(), token.hex(), scratch.folders)
        with contextlib.ExitStack() as on_error, their_data:
            for end in (control, their_control, data):
                on_error.callback(end.close)
            process = _windows.start(_command(python, plan), their_data, Channel(their_control, token))
            on_error.pop_all()
        return Child(process, Channel(control, token), Channel(data, token), scratch, startup)


def _socket_pair() -> tuple[socket.socket, socket.socket]:
    """Room for a whole message, so that sending does not wait for a child that is still starting."""
    pair = socket.socketpair()
    for end in pair:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * INLINE_BYTES)
    return pair


def _command(python: Path, plan: ChildPlan) -> list[str]:
    bootstrap = str(_HERE / "_bootstrap.py")
    return [str(python), "-I", "-u", bootstrap, str(_HERE.parent), json.dumps(asdict(plan))]


def _environment() -> dict[str, str]:
    # A mac framework build sets this for itself; it would turn another interpreter into ours.
    kept = {key: value for key, value in os.environ.items() if key != "__PYVENV_LAUNCHER__"}
    # numpy's OpenBLAS starts a thread per core when it is imported, and each of them spins for 2**26 cycles before it
    # sleeps: more CPU time than the import itself. Said in powers of two; 4 is the least it takes.
    kept.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    # onnxruntime reports about its process while it is imported; only this stops that.
    return {**kept, "ORT_DISABLE_TELEMETRY": "1"}
