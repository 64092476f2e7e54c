"""Shared libraries that misbehave while they are being loaded, written byte by byte: no compiler is needed.

Each is the smallest ELF file ld.so accepts, with an initialiser that makes one system call.
"""

import struct
from pathlib import Path

# kill(getpid(), SIGABRT); ret
_ABORT = bytes.fromhex("b8270000000f0589c7be06000000b83e0000000f05c3")
# again: pause(); jmp again
_HANG = bytes.fromhex("b8220000000f05ebf7")
_HEADER, _PROGRAM_HEADERS, _DYNAMIC = 64, 2, 11


def aborting(path: Path) -> Path:
    return _write(path, _ABORT)


def hanging(path: Path) -> Path:
    return _write(path, _HANG)


def _write(path: Path, code: bytes) -> Path:
    dynamic_at = _HEADER + 56 * _PROGRAM_HEADERS
    symbols_at = dynamic_at + 16 * _DYNAMIC
    strings_at = symbols_at + 24
    hash_at = strings_at + 8
    code_at = hash_at + 16
    size = code_at + len(code)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, _HEADER, 0, 0, 64, 56, _PROGRAM_HEADERS, 64, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 7, 0, 0, 0, size, size, 0x1000)
    dynamic = struct.pack("<IIQQQQQQ", 2, 6, dynamic_at, dynamic_at, dynamic_at, 16 * _DYNAMIC, 16 * _DYNAMIC, 8)
    # DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_INIT, then DT_NULL
    tags = [(4, hash_at), (5, strings_at), (6, symbols_at), (10, 8), (11, 24), (12, code_at)]
    entries = b"".join(struct.pack("<QQ", tag, value) for tag, value in tags)
    entries += bytes(16 * (_DYNAMIC - len(tags)))
    empty_hash = struct.pack("<IIII", 1, 1, 0, 0)
    path.write_bytes(header + load + dynamic + entries + bytes(24) + bytes(8) + empty_hash + code)
    path.chmod(0o755)
    return path
