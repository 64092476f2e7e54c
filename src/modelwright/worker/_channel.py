"""Framed messages over a socket that stray writes cannot damage.

A task shares its process with the socket, so native code or a careless task may write to it. Every frame
starts with a random token and carries a checksum: whatever is not a frame is skipped.
"""

from __future__ import annotations

import contextlib
import pickle
import socket
import struct
import threading
import zlib
from typing import Any

_HEADER = struct.Struct("<II")
_LARGEST = 8 << 20
_CHUNK = 1 << 16
TOKEN_BYTES = 16


class Channel:
    """One end of a conversation. Sending is thread-safe; receiving belongs to one thread."""

    def __init__(self, sock: socket.socket, token: bytes) -> None:
        self.closed = False
        self._socket = sock
        self._token = token
        self._buffer = bytearray()
        self._sending = threading.Lock()

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: object) -> None:
        """Send one message. A gone peer is not an error here: its end is what the reader will see."""
        body = pickle.dumps(message, protocol=5)
        frame = self._token + _HEADER.pack(len(body), zlib.crc32(body)) + body
        with self._sending, contextlib.suppress(BrokenPipeError, ConnectionError):
            self._socket.sendall(frame)

    def receive(self, timeout: float | None = None) -> Any | None:
        """The next message; None after `timeout` or when the peer is gone (`closed` tells which)."""
        while (message := self._next_frame()) is None:
            if not self._fill(timeout):
                return None
        return message

    def drain(self) -> list[Any]:
        """Every message that has already arrived."""
        messages = []
        while (message := self.receive(timeout=0)) is not None:
            messages.append(message)
        return messages

    def close(self) -> None:
        self.closed = True
        self._socket.close()

    def _fill(self, timeout: float | None) -> bool:
        if self.closed:
            return False
        try:
            self._socket.settimeout(timeout)
            chunk = self._socket.recv(_CHUNK)
        except (BlockingIOError, TimeoutError):
            return False
        except ConnectionError:
            chunk = b""
        finally:
            self._socket.settimeout(None)
        self.closed = not chunk
        self._buffer += chunk
        return bool(chunk)

    def _next_frame(self) -> Any | None:
        start = self._buffer.find(self._token)
        while start >= 0:
            head = start + TOKEN_BYTES
            body = head + _HEADER.size
            if len(self._buffer) < body:
                return None
            length, checksum = _HEADER.unpack_from(self._buffer, head)
            if length <= _LARGEST:
                if len(self._buffer) < body + length:
                    return None
                content = bytes(self._buffer[body : body + length])
                if zlib.crc32(content) == checksum:
                    del self._buffer[: body + length]
                    return pickle.loads(content)
            start = self._buffer.find(self._token, head)
        del self._buffer[: -(TOKEN_BYTES - 1)]
        return None
