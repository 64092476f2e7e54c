"""How a process ended, in plain words: POSIX signals and Windows NTSTATUS codes in one table."""

from __future__ import annotations

import signal

from modelwright._dataclass import dataclass

_SIGNALS = {
    "SIGABRT": "abort, usually a failed check in native code",
    "SIGALRM": "alarm timer",
    "SIGBUS": "bus error, often a memory-mapped file that was cut short",
    "SIGFPE": "arithmetic error in native code",
    "SIGHUP": "hang-up",
    "SIGILL": "illegal instruction, often a CPU feature this machine lacks",
    "SIGINT": "interrupt",
    "SIGKILL": "killed from outside",
    "SIGPIPE": "broken pipe",
    "SIGQUIT": "quit",
    "SIGSEGV": "segmentation fault",
    "SIGSYS": "forbidden system call",
    "SIGTERM": "asked to end",
    "SIGTRAP": "trace trap",
    "SIGXCPU": "CPU time limit of the system",
    "SIGXFSZ": "file size limit of the system",
}

_NTSTATUS = {
    0x40010004: ("DEBUGGER_TERMINATED", "ended by a debugger"),
    0x80000003: ("BREAKPOINT", "a breakpoint or failed check in native code"),
    0xC0000005: ("ACCESS_VIOLATION", "native code touched memory that is not its own"),
    0xC0000006: ("IN_PAGE_ERROR", "a memory-mapped file could not be read"),
    0xC0000017: ("NO_MEMORY", "not enough memory"),
    0xC000001D: ("ILLEGAL_INSTRUCTION", "illegal instruction, often a CPU feature this machine lacks"),
    0xC0000094: ("INTEGER_DIVIDE_BY_ZERO", "division by zero in native code"),
    0xC00000FD: ("STACK_OVERFLOW", "the stack overflowed"),
    0xC0000135: ("DLL_NOT_FOUND", "a DLL it needs was not found"),
    0xC0000138: ("ORDINAL_NOT_FOUND", "a DLL of the wrong version was found"),
    0xC0000139: ("ENTRYPOINT_NOT_FOUND", "a DLL of the wrong version was found"),
    0xC000013A: ("CONTROL_C_EXIT", "interrupted with Ctrl-C"),
    0xC0000142: ("DLL_INIT_FAILED", "a DLL failed to initialise"),
    0xC0000374: ("HEAP_CORRUPTION", "native code damaged the heap"),
    0xC0000409: ("STACK_BUFFER_OVERRUN", "native code overran a buffer or asked to fail fast"),
    0xC0000417: ("INVALID_CRUNTIME_PARAMETER", "native code gave the C runtime a bad parameter"),
    0xC0000420: ("ASSERTION_FAILURE", "a check failed in native code"),
    0xC06D007E: ("DELAYED_DLL_NOT_FOUND", "a DLL it loads on demand was not found"),
    0xC06D007F: ("DELAYED_ENTRYPOINT_NOT_FOUND", "a DLL it loads on demand is of the wrong version"),
    0xE06D7363: ("CPP_EXCEPTION", "a C++ exception nobody caught"),
}

_HIGHEST_SIGNAL = 64
_WORD = 0xFFFFFFFF


@dataclass(frozen=True)
class Exit:
    """One ended process. `signal` or `exit_code` is set, `name` where the code has one."""

    signal: int | None
    exit_code: int | None
    name: str | None
    words: str


def decode_exit(code: int) -> Exit:
    """Decode a return code as `subprocess` gives it: negative is a signal, large is an NTSTATUS."""
    if -_HIGHEST_SIGNAL <= code < 0:
        return _decode_signal(-code)
    unsigned = code & _WORD
    if unsigned in _NTSTATUS:
        name, words = _NTSTATUS[unsigned]
        return Exit(None, unsigned, name, f"crashed with {name} (0x{unsigned:08X}, {words})")
    if unsigned >= 0xFFFF0000:
        value = unsigned - _WORD - 1
        return Exit(None, unsigned, f"exit({value})", f"ended itself with exit({value})")
    if unsigned >= 0xC0000000:
        return Exit(None, unsigned, None, f"crashed with NTSTATUS 0x{unsigned:08X}")
    return Exit(None, unsigned, None, f"ended itself with exit code {unsigned}")


def _decode_signal(number: int) -> Exit:
    try:
        name = signal.Signals(number).name
    except ValueError:
        return Exit(number, None, None, f"crashed with signal {number}")
    words = _SIGNALS.get(name)
    return Exit(number, None, name, f"crashed with {name} ({words})" if words else f"crashed with {name}")
