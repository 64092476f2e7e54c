"""A file the user named is replaced only when wright wrote it and nobody changed it."""

import os
import threading
from pathlib import Path

import pytest

from modelwright._output import SEAL, check_output, is_sealed, sealed, write_output
from modelwright.errors import StoreError, UsageError

TEXT = f'{{"a": 1, "seal": "{SEAL}"}}\n'


def test_our_own_file_is_replaced_and_anything_else_is_not(tmp_path):
    ours, notes = tmp_path / "result.json", tmp_path / "notes.txt"
    write_output(ours, TEXT)
    write_output(ours, TEXT.replace("1", "2", 1))
    assert is_sealed(ours.read_bytes())
    notes.write_text("mine")
    with pytest.raises(UsageError, match="stays as it is"):
        write_output(notes, TEXT)
    assert notes.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "result.json"]


@pytest.mark.parametrize("edit", [b" ", b"1", b"\n\n", SEAL.encode()])
def test_an_edited_file_of_ours_is_the_users(tmp_path, edit):
    path = tmp_path / "recipe.toml"
    write_output(path, f"x = 1\n# {SEAL}\n")
    path.write_bytes(path.read_bytes() + edit)
    with pytest.raises(UsageError):
        check_output(path)


def test_an_empty_file_holds_nothing_to_lose(tmp_path):
    (tmp_path / "made-by-mktemp").touch()
    write_output(tmp_path / "made-by-mktemp", TEXT)


def test_other_line_ends_are_no_edit():
    assert is_sealed(sealed(TEXT).replace(b"\n", b"\r\n"))


def test_a_name_in_the_text_that_looks_like_a_seal_does_no_harm():
    text = f'{{"tensor": "{SEAL}", "other": "wright-seal:{"a" * 64}", "seal": "{SEAL}"}}'
    assert is_sealed(sealed(text))
    assert not is_sealed(sealed(text).replace(b"tensor", b"tensar"))


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "real.json").touch()
    (tmp_path / "link.json").symlink_to("real.json")
    write_output(tmp_path / "link.json", TEXT)
    assert (tmp_path / "link.json").is_symlink()
    assert is_sealed((tmp_path / "real.json").read_bytes())


@pytest.mark.skipif(os.name == "nt", reason="no named pipes in folders")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe, seen = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: seen.append(pipe.read_bytes()))
    reader.start()
    write_output(pipe, TEXT)
    reader.join(10)
    assert is_sealed(seen[0])
    assert not pipe.is_file()


def test_a_draft_that_a_kill_left_goes_with_the_next_write(tmp_path):
    old, fresh = tmp_path / ".r.json.1.draft", tmp_path / ".r.json.2.draft"
    for draft in (old, fresh):
        draft.write_bytes(b"half")
    os.utime(old, (0, 0))
    write_output(tmp_path / "r.json", TEXT)
    assert not old.exists()
    assert fresh.exists()  # its writer may be alive


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_device_is_said_to_be_full():
    with pytest.raises(StoreError, match="disk is full"):
        write_output(Path("/dev/full"), TEXT)
