"""Calibration functions that behave badly. Each is a Python file; `wright` may not follow it anywhere."""

from __future__ import annotations

from dataclasses import dataclass

from hostile.case import BAD, FINE

GOOD = "yield {'x': np.ones((1, 4), np.float32)}"


@dataclass(frozen=True)
class Reader:
    """`source` is the whole file; `good` ones end in 0 or 1, since one sample quantizes no model well."""

    name: str
    source: str
    code: int = BAD
    limits: tuple[str, ...] = ()


def _body(name: str, body: str, code: int = BAD, limits: tuple[str, ...] = ()) -> Reader:
    """A function with this body that gives one good sample when it comes that far."""
    return Reader(name, f"import numpy as np\ndef read():\n    {body}\n    {GOOD}\n", code, limits)


def _gives(name: str, value: str) -> Reader:
    return Reader(name, f"import numpy as np\ndef read():\n    yield {value}\n")


CASES: tuple[Reader, ...] = (
    _body("leaves with sys.exit(0)", "import sys; sys.exit(0)"),
    _body("leaves with os._exit(0)", "import os; os._exit(0)"),
    _body("crashes", "import ctypes; ctypes.string_at(0)"),
    _body("aborts", "import os; os.abort()"),
    _body("kills itself", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
    _body("raises", "raise RuntimeError('no')"),
    _body("raises what is no Exception", "raise KeyboardInterrupt"),
    _body("raises with an escape in the text", "raise RuntimeError('a\\x1b[31m\\nerror: b')"),
    _body("raises what cannot be shown", "raise type('E', (Exception,), {'__str__': lambda self: 1 / 0})()"),
    _body("calls itself", "read2 = lambda: read2(); read2()"),
    _body("takes all memory", "x = bytearray(b'x') * (2 << 30)", BAD, ("--memory", "800MB")),
    _body("never ends", "while True: pass", BAD, ("--timeout", "5s")),
    _body("sleeps for ever", "import time; time.sleep(1e6)", BAD, ("--timeout", "5s")),
    _body("leaves a thread behind", "import threading, time; threading.Timer(9, time.time).start()", FINE),
    _body("prints into the answer", "import os; os.write(1, b'{\"passed\": true}'); print('more', flush=True)", FINE),
    _body("closes stdout and stderr", "import os; os.close(1); os.close(2)", FINE),
    _body("goes to another folder", "import os; os.chdir('/')", FINE),
    _body("ignores all signals", "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 15)]", FINE),
    _body("forks", "import os; os.fork()", FINE),
    _body("deletes its own file", "import os; os.remove(__file__)", FINE),
    _body("changes the environment", "import os; os.environ.clear(); os.environ['MODELWRIGHT_HOME'] = '/evil'", FINE),
    _body("changes numpy", "np.asarray = None; np.float64 = None"),
    _body("goes on for ever, one sample at a time", f"import itertools\n    for _ in itertools.count(): {GOOD}", FINE),
    Reader("cannot be parsed", "def read(:\n"),
    Reader("is no text", "\x00\x01"),
    Reader("imports what is not there", "import not_there\ndef read():\n    yield {}\n"),
    Reader("leaves while it is imported", "raise SystemExit(0)\n"),
    Reader("has no such function", "def other():\n    yield {}\n"),
    Reader("has a class instead", "class read:\n    def __iter__(self): return iter(())\n"),
    Reader("wants an argument", "def read(folder):\n    yield {}\n"),
    Reader("gives nothing", "def read():\n    return\n    yield\n"),
    Reader("returns a number", "def read():\n    return 7\n"),
    _gives("gives a list", "[1, 2]"),
    _gives("gives no arrays", "{'x': object()}"),
    _gives("gives text", "{'x': 'abc'}"),
    _gives("gives another name", "{'y': np.ones((1, 4), np.float32)}"),
    _gives("gives another shape", "{'x': np.ones((1, 5), np.float32)}"),
    _gives("gives another type", "{'x': np.ones((1, 4), np.int32)}"),
    _gives("gives rows of different lengths", "{'x': [[1.0], [1.0, 2.0]]}"),
)  # fmt: skip
