"""Models of sound: speech that is read aloud, and notes that are made up."""

from __future__ import annotations

import wave
from typing import Any

import numpy as np
from scipy import signal

from bench.zoo._fetch import package
from bench.zoo._trained import Answer, Answers, Sample, Scores, Trained, agree, answers, each

RATE, FRAME, CONTEXT = 16000, 512, 64
MUSIC_RATE, WINDOW = 22050, 43844


def speech(name: str) -> Any:
    """Somebody reading, 16 kHz, between -1 and 1: `beckett` (10 s) and `two_cities` (44 s) are two speakers."""
    with wave.open(str(package("moonshine-voice==0.1.5") / f"moonshine_voice/assets/{name}.wav")) as opened:
        sound = np.frombuffer(opened.readframes(opened.getnframes()), np.int16) / 32768
        return signal.resample_poly(sound, RATE, opened.getframerate()).astype(np.float32)


def silero() -> Trained:
    """Is somebody speaking? Pauses of noise are put between the parts of the speech, so they are known."""
    path = package("silero-vad==6.2.3") / "silero_vad/data/silero_vad_16k_op15.onnx"
    rng = np.random.default_rng(4)
    (heard, _), (judged, spoken) = (_broken_up(speech(name), rng) for name in ("beckett", "two_cities"))
    frames, told = _frames(judged[:480]), ~np.isnan(spoken[:480])

    def score(answer: Answer) -> Scores:
        said = np.array([found for _, found in _followed(answer, frames)])
        return np.asarray(((said > 0.5) == (spoken[:480] > 0.5))[told], float)

    return Trained(
        name="silero-vad",
        path=path,
        kind="speech",
        metric="frames told right",
        labels="by construction",
        bound=0.03,
        calibration=[sample for sample, _ in _followed(answers(path), _frames(heard[:160]))],
        judged=[sample for sample, _ in _followed(answers(path), frames)],
        score=score,
    )


def dnsmos() -> Trained:
    """How good speech sounds, from 1 to 5, under noise of known strength."""
    path = package("speechmos==0.0.1.1") / "speechmos/dnsmos_models/sig_bak_ovr.onnx"
    rng = np.random.default_rng(8)
    heard, judged = (
        [{"input_1": _noisy(speech(name), rng, 144160)} for _ in range(count)]
        for name, count in (("beckett", 12), ("two_cities", 24))
    )
    return Trained(
        name="dnsmos",
        path=path,
        kind="audio",
        metric="minus the mean distance in points of 5",
        labels="agreement with float",
        bound=0.15,
        calibration=heard,
        judged=judged,
        score=agree(path, judged, lambda found, wanted: -float(np.abs(found[0] - wanted[0]).mean())),
    )


def wakeword() -> Trained:
    """What openWakeWord hears: an embedding of 0.8 s of speech, made from a spectrogram of another model."""
    place = package("openwakeword==0.4.0") / "openwakeword/resources/models"
    spectrogram = answers(place / "melspectrogram.onnx")
    heard, judged = (
        [_window(spectrogram, speech(name), start) for start in range(0, stop, 3200)]
        for name, stop in (("beckett", 130_000), ("two_cities", 500_000))
    )
    path = place / "embedding_model.onnx"
    return Trained(
        name="wakeword",
        path=path,
        kind="embedding of audio",
        metric="cosine with float",
        labels="agreement with float",
        bound=0.05,
        calibration=heard,
        judged=judged,
        score=agree(path, judged, _cosine),
    )


def pitch() -> Trained:
    """Spotify's basic-pitch: which notes sound, of chords that are made up."""
    rng = np.random.default_rng(9)
    made = [_chord(rng) for _ in range(16 + 40)]
    samples: list[Sample] = [{"serving_default_input_2:0": sound} for sound, _ in made]
    return Trained(
        name="basic-pitch",
        path=package("basic-pitch==0.4.0") / "basic_pitch/saved_models/icassp_2022/nmp.onnx",
        kind="audio",
        metric="F1 of notes",
        labels="by construction",
        bound=0.05,
        calibration=samples[:16],
        judged=samples[16:],
        score=each(samples[16:], [notes for _, notes in made[16:]], _notes_f1),
    )


def _broken_up(sound: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Stretches of 16 frames and as many of noise, in turns: 1 where it is loud, 0 in noise, NaN where nobody knows.

    Nobody knows where the speaker may rest or breathe, and right after a stretch, when the model still waits.
    """
    sound = sound * 0.05 / np.sqrt((sound**2).mean())
    whole = sound[: len(sound) // FRAME * FRAME].reshape(-1, FRAME)
    parts, spoken = [], []
    for start in range(0, len(whole), 16):
        part = whole[start : start + 16]
        parts += [part, rng.normal(0, 0.002, part.shape)]
        loud = np.where(np.sqrt((part**2).mean(axis=1)) > 0.05, 1.0, np.nan)
        spoken += [loud, np.where(np.arange(len(part)) < 4, np.nan, 0.0)]
    return np.concatenate(parts).astype(np.float32), np.concatenate(spoken)


def _frames(parts: Any) -> list[Any]:
    """Each with the end of the one before it."""
    before = [np.zeros(CONTEXT, np.float32), *(part[-CONTEXT:] for part in parts[:-1])]
    return [np.concatenate([end, part])[None] for end, part in zip(before, parts, strict=True)]


def _followed(answer: Answer, frames: list[Any]) -> list[tuple[Sample, float]]:
    """Each frame with the state that the frames before it left, and what the model says of it."""
    state, found = np.zeros((2, 1, 128), np.float32), []
    for frame in frames:
        sample: Sample = {"input": frame, "state": state, "sr": np.array(RATE, np.int64)}
        said, state = answer(sample)
        found.append((sample, float(said[0, 0])))
    return found


def _noisy(sound: Any, rng: np.random.Generator, length: int) -> Any:
    start = int(rng.integers(0, len(sound) - length)) if len(sound) > length else 0
    part = sound[start : start + length]
    noise = rng.normal(0, 1, length) * np.sqrt((part**2).mean()) / 10 ** (rng.uniform(0, 40) / 20)
    return (part + noise).astype(np.float32)[None]


def _window(spectrogram: Answer, sound: Any, start: int) -> Sample:
    (found,) = spectrogram({"input": sound[None, start : start + 12640] * 32768})
    return {"input_1": (found.reshape(1, -1, 32, 1)[:, :76] / 10 + 2).astype(np.float32)}


def _cosine(found: Answers, wanted: Answers) -> float:
    one, other = found[0].ravel().astype(float), wanted[0].ravel().astype(float)
    return float(one @ other / max(float(np.linalg.norm(one) * np.linalg.norm(other)), 1e-12))


def _chord(rng: np.random.Generator) -> tuple[Any, set[int]]:
    """One to three notes with six overtones each, dying away; keys of a piano, 0 is the lowest."""
    keys = {int(key) for key in rng.choice(np.arange(24, 64), int(rng.integers(1, 4)), replace=False)}
    time = np.arange(WINDOW) / MUSIC_RATE
    sound = np.zeros(WINDOW)
    for key in keys:
        tones = [np.sin(2 * np.pi * 27.5 * 2 ** (key / 12) * n * time) / n**1.5 for n in range(1, 7)]
        sound += sum(tones) * np.exp(-time * rng.uniform(0.3, 1.5)) * rng.uniform(0.5, 1)
    sound = sound / np.abs(sound).max() * rng.uniform(0.2, 0.9) + rng.normal(0, 0.002, WINDOW)
    return sound.astype(np.float32)[None, :, None], keys


def _notes_f1(found: Answers, keys: set[int]) -> float:
    """Notes that sound for more than a third of the time."""
    heard = {int(key) for key in np.flatnonzero((found[1][0] > 0.3).mean(axis=0) > 1 / 3)}
    return 2 * len(heard & keys) / (len(heard) + len(keys))
