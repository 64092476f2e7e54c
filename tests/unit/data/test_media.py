"""Sounds and pictures as their files hold them."""

import wave

import numpy as np
import pytest

from modelwright.data import Preparer
from modelwright.data._media import picture, resized, sound
from modelwright.errors import InputError
from modelwright.graph import ValueSpec
from modelwright.vocabulary import Data


def write_wave(path, numbers, width, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(16_000)
        file.writeframes(numbers.tobytes())


@pytest.mark.parametrize(("width", "dtype", "full"), [(1, "u1", 128), (2, "<i2", 2**15), (4, "<i4", 2**31)])
def test_a_sound_is_numbers_from_minus_one_to_one(tmp_path, width, dtype, full):
    numbers = np.array([0, full // 2, -full // 2]) + (128 if width == 1 else 0)
    write_wave(tmp_path / "a.wav", numbers.astype(dtype), width)
    found, rate = sound(tmp_path / "a.wav")
    assert (found.tolist(), rate, found.dtype) == ([0.0, 0.5, -0.5], 16_000, np.float32)


def test_channels_are_mixed_and_what_is_no_wave_is_refused(tmp_path):
    write_wave(tmp_path / "a.wav", np.array([2**14, 0, 2**14, 0], "<i2"), 2, channels=2)
    assert sound(tmp_path / "a.wav")[0].tolist() == [0.25, 0.25]
    (tmp_path / "b.wav").write_bytes(b"RIFF....WAVE")
    with pytest.raises(InputError, match="cannot be read"):
        sound(tmp_path / "b.wav")
    with pytest.raises(InputError, match="no processor"):
        Preparer([ValueSpec("x", "float32", (1, 4))], Data("sounds"))({"audio": tmp_path / "a.wav"})


def test_a_picture_takes_the_size_and_the_layout_that_were_said(tmp_path):
    pil = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    pil.fromarray(np.full((8, 6, 3), 7, np.uint8)).save(tmp_path / "a.png")
    assert resized(picture(tmp_path / "a.png"), (4, 2)).size == (2, 4)
    for layout, shape in (("nchw", (3, 4, 2)), ("nhwc", (4, 2, 3))):
        made = Preparer([ValueSpec("x", "float32", (1, *shape))], Data("photos", size=(4, 2), layout=layout))
        assert made({"image": tmp_path / "a.png"})["x"].shape == shape
    with pytest.raises(InputError, match="6x8, and the model takes 2x4"):
        Preparer([ValueSpec("x", "float32", (1, 3, 4, 2))], Data("photos"))({"image": tmp_path / "a.png"})
    (tmp_path / "b.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match="cannot be read"):
        Preparer((), Data("photos")).tried({"image": tmp_path / "b.png"})
