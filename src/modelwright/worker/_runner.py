"""The half of the child that works: takes calls, makes them, and says how they ended."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import pickle
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from modelwright._dataclass import dataclass
from modelwright._disk import disk_error, lacks_room
from modelwright.errors import InputError, StoreError, WrightError
from modelwright.worker import _usage
from modelwright.worker._channel import Channel
from modelwright.worker._messages import Advance, Call, Done, Inside
from modelwright.worker._payload import Payload, Scratch, pack, unpack
from modelwright.worker._result import Failure
from modelwright.worker._task import resolve

_READABLE_S = 0.05
_LONGEST_MESSAGE = 4 << 10
_LONGEST_TRACEBACK = 32 << 10
_LONGEST_ERROR = 1 << 20
_ASKED_BY_NOBODY: bool = sys.platform == "win32"


@dataclass
class _Post:
    """Where progress of the running call goes, how long it may take without, and how many CPUs it has for itself;
    nowhere in the user's own process."""

    channel: Channel | None = None
    number: int = 0
    patience: float | None = None
    cpus: int | None = None
    told: float = 0.0
    stacks: int = 2


_post = _Post()


def cpu_share() -> int | None:
    """How many CPUs the running call should use; None: nobody else works beside it."""
    return _post.cpus


def progress(message: str, fraction: float | None = None) -> None:
    """Tell the parent that work goes on. Outside a worker it does nothing; nor for what nobody could read: a count in
    the middle of many that come as fast as this."""
    now = time.monotonic()
    counting = fraction is not None and 0.0 < fraction < 1.0
    if _post.channel is not None and not (counting and now < _post.told + _READABLE_S):
        _expect_end()
        _post.told = now if counting else 0.0
        _post.channel.send(Advance(_post.number, message[:_LONGEST_MESSAGE], fraction))


@contextlib.contextmanager
def user_code(what: str, fix: str) -> Iterator[None]:
    """The user's own Python runs inside. However it ends (it raises, leaves, crashes, hangs, takes all memory), the
    parent gets an InputError about `what`. What it imports leaves no compiled files in the user's folders."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    _tell(what, fix)
    try:
        yield
    except WrightError:
        raise
    except (Exception, SystemExit, KeyboardInterrupt) as error:
        text = f"it called sys.exit({error.code!r})" if isinstance(error, SystemExit) else _line(error)
        raise InputError(f"{what} failed", cause=text, fix=fix) from error
    finally:
        sys.dont_write_bytecode = before
        _tell(None, fix)


def _tell(what: str | None, fix: str) -> None:
    if _post.channel is not None:
        _post.channel.send(Inside(_post.number, what, fix))


def serve_calls(channel: Channel, scratch: Scratch, stacks: int) -> None:
    """Make calls until the parent is gone. `stacks` is a file descriptor of its own for where Python stands when it
    crashes or hangs: a task may send 1 and 2 elsewhere for a while."""
    pid = os.getpid()
    _post.stacks = stacks
    faulthandler.enable(stacks)
    _post.channel = channel
    while (call := channel.receive()) is not None:
        _post.number = call.number
        done = _perform(call, scratch)
        if os.getpid() != pid:
            # A task forked and its copy came back here: that copy is not the worker.
            os._exit(0)
        _flush()
        channel.send(done)


def _perform(call: Call, scratch: Scratch) -> Done:
    _usage.reset_peak_rss()
    before = _usage.cpu_s()
    _post.patience, _post.cpus, _post.told = call.timeout, call.cpus, 0.0
    _expect_end()
    try:
        value, failure, error = _attempt(call, scratch)
    finally:
        faulthandler.cancel_dump_traceback_later()
    after = _usage.cpu_s()
    return Done(call.number, value, failure, error, after - before, after, _usage.peak_rss_bytes())


def _expect_end() -> None:
    """No supervisor can ask for a stack on Windows: it is printed by a timer, shortly before the time is over."""
    if _ASKED_BY_NOBODY and _post.patience is not None:
        faulthandler.dump_traceback_later(max(_post.patience - 1.0, _post.patience / 2), file=_post.stacks)


def _attempt(call: Call, scratch: Scratch) -> tuple[Payload | None, Failure | None, bytes | None]:
    ready = returned = False
    # Whatever a task raises, SystemExit and KeyboardInterrupt too, must reach the parent.
    try:
        function, args, kwargs = _prepare(call)
        ready = True
        value = function(*args, **kwargs)
        returned = True
        return pack(value, scratch), None, None
    except WrightError as error:
        return None, _raised(error), _pickled(_no_room(call, error) or error)
    except MemoryError as error:
        return None, _described("oom", f"not enough memory: {_line(error)}", error), None
    except ImportError as error:
        return None, _described("import_error", _line(error), error), None
    except BaseException as error:  # noqa: BLE001 see above
        if room := _no_room(call, error):
            return None, _described("raised", _line(room), error), _pickled(room)
        if not ready:
            return None, _described("import_error", f"{call.name} does not load: {_line(error)}", error), None
        if returned:
            return None, _described("raised", f"the result cannot be sent back: {_line(error)}", error), None
        return None, _raised(error), None


def _no_room(call: Call, error: BaseException) -> StoreError | None:
    """The disk's answer, however deep below the error it is; a folder among the arguments is where it was written."""
    seen: BaseException | None = error
    while seen is not None and not (isinstance(seen, OSError) and lacks_room(seen)):
        seen = seen.__cause__ or seen.__context__
    if not isinstance(seen, OSError) or isinstance(error, StoreError):
        return None
    where = Path(seen.filename).parent if isinstance(seen.filename, str) else Path(call.folder or tempfile.gettempdir())
    return disk_error(seen, where, f"finish {call.name.rpartition(':')[2]}")


def _prepare(call: Call) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    if call.root is not None and call.root not in sys.path:
        sys.path.append(call.root)
    function = resolve(call.name)
    args, kwargs = unpack(call.arguments)
    return function, args, kwargs


def _raised(error: BaseException) -> Failure:
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        return Failure("raised", f"the task called sys.exit({error.code!r})", exit_code=code, traceback=_trace(error))
    return _described("raised", _line(error), error)


def _described(kind: Any, message: str, error: BaseException) -> Failure:
    return Failure(kind, message[:_LONGEST_MESSAGE], traceback=_trace(error))


def _line(error: BaseException) -> str:
    """The first words: some messages begin with an empty line."""
    text = "".join(traceback.format_exception_only(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    alone = len(lines) > 1 and lines[0] == f"{type(error).__name__}:"
    return " ".join(lines[: 1 + alone]) if lines else type(error).__name__


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-_LONGEST_TRACEBACK:]


def _pickled(error: WrightError) -> bytes | None:
    """None when the error cannot travel; its text still does."""
    try:
        data = pickle.dumps(error, protocol=5)
    except Exception:  # noqa: BLE001 a user's class may fail to pickle in any way
        return None
    return data if len(data) <= _LONGEST_ERROR else None


def _flush() -> None:
    """Output printed during a call belongs to its log, that of native code too."""
    for stream in (sys.stdout, sys.stderr):
        # The task may have closed or replaced the stream.
        with contextlib.suppress(ValueError, OSError, AttributeError):
            stream.flush()
    if sys.platform != "win32":
        ctypes.CDLL(None).fflush(None)
