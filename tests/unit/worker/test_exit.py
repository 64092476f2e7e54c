from __future__ import annotations

import signal

import pytest

from modelwright.worker import decode_exit


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (3221225477, "ACCESS_VIOLATION"),
        (3221225794, "DLL_INIT_FAILED"),
        (3221226505, "STACK_BUFFER_OVERRUN"),
        (3221225725, "STACK_OVERFLOW"),
        (3221226356, "HEAP_CORRUPTION"),
        (3221225501, "ILLEGAL_INSTRUCTION"),
        (3221225781, "DLL_NOT_FOUND"),
        (3221225786, "CONTROL_C_EXIT"),
        (4294967295, "exit(-1)"),
        (-1073741819, "ACCESS_VIOLATION"),
    ],
)
def test_windows_codes_have_their_own_names(code: int, name: str) -> None:
    end = decode_exit(code)
    assert (end.name, end.signal) == (name, None)
    assert name in end.words


def test_dll_init_failure_is_not_called_an_access_violation() -> None:
    assert "violation" not in decode_exit(0xC0000142).words.lower()


def test_a_signal_is_named_and_explained() -> None:
    end = decode_exit(-signal.SIGSEGV)
    assert (end.signal, end.exit_code, end.name) == (11, None, "SIGSEGV")
    assert end.words == "crashed with SIGSEGV (segmentation fault)"


def test_an_unknown_status_keeps_its_number() -> None:
    assert "0xC0DEC0DE" in decode_exit(0xC0DEC0DE).words
    assert decode_exit(-60).words  # a real-time signal without a name


def test_a_plain_exit_code_is_not_a_crash() -> None:
    end = decode_exit(3)
    assert (end.exit_code, end.name, end.words) == (3, None, "ended itself with exit code 3")
