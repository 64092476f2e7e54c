from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwright.worker._channel import TOKEN_BYTES, Channel

TOKEN = bytes(range(TOKEN_BYTES))


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, Channel]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, Channel(theirs, TOKEN)


@given(st.lists(st.one_of(st.binary(max_size=300), st.integers()), max_size=8))
def test_messages_arrive_whole_whatever_is_written_between_them(items: list[bytes | int]) -> None:
    ours, theirs = socket.socketpair()
    sender, receiver = Channel(ours, TOKEN), Channel(theirs, TOKEN)
    for item in items:
        if isinstance(item, bytes):
            ours.sendall(item)
        else:
            sender.send(item)
    assert receiver.drain() == [item for item in items if isinstance(item, int)]
    sender.close()
    receiver.close()


def test_a_damaged_frame_is_skipped_and_the_next_is_read(pair: tuple[socket.socket, Channel]) -> None:
    ours, receiver = pair
    ours.sendall(TOKEN + b"\x04\x00\x00\x00" + b"\x00" * 4 + b"abcd")
    ours.sendall(TOKEN + b"\xff\xff\xff\xff" + b"\x00" * 4)
    Channel(ours, TOKEN).send("good")
    assert receiver.drain() == ["good"]


def test_a_flood_of_garbage_does_not_pile_up(pair: tuple[socket.socket, Channel]) -> None:
    ours, receiver = pair
    for _ in range(40):
        ours.sendall(os.urandom(1 << 15))
        assert receiver.drain() == []
    assert len(receiver._buffer) < TOKEN_BYTES


def test_the_end_of_the_peer_is_seen(pair: tuple[socket.socket, Channel]) -> None:
    ours, receiver = pair
    assert receiver.receive(timeout=0.01) is None
    assert not receiver.closed
    ours.close()
    assert receiver.receive() is None
    assert receiver.closed
