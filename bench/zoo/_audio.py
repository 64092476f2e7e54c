"""Models of sound."""

from __future__ import annotations

import wave
from typing import Any

import numpy as np

from bench.zoo._fetch import package
from bench.zoo._trained import Answer, Sample, Scores, Trained, answers

FRAME, CONTEXT = 512, 64


def speech() -> Any:
    """Ten seconds of somebody reading, 16 kHz, between -1 and 1."""
    path = package("useful-moonshine-onnx==20251121") / "moonshine_onnx/assets/beckett.wav"
    with wave.open(str(path)) as opened:
        return np.frombuffer(opened.readframes(opened.getnframes()), np.int16).astype(np.float32) / 32768


def silero() -> Trained:
    """Is somebody speaking? The speech is real; pauses of noise are put between its parts, so they are known."""
    path = package("silero-vad==6.2.3") / "silero_vad/data/silero_vad_16k_op15.onnx"
    rng = np.random.default_rng(4)
    first, rest = (_broken_up(part, rng) for part in np.array_split(speech(), 2))
    heard = _frames(rest[0])
    spoken = rest[1]

    def score(answer: Answer) -> Scores:
        loud = np.array([found[0] > 0.5 for found in _listened(answer, heard)])
        return np.asarray(loud == spoken, float)

    return Trained(
        name="silero-vad",
        path=path,
        kind="speech",
        metric="frames told right",
        labels="by construction",
        bound=0.03,
        calibration=[sample for sample, _ in _followed(answers(path), _frames(first[0]))][:160],
        judged=[sample for sample, _ in _followed(answers(path), heard)],
        score=score,
    )


def _broken_up(sound: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    """Stretches of 16 frames and as many of noise, in turns; where the speaker rests, a frame counts as a pause."""
    whole = sound[: len(sound) // FRAME * FRAME].reshape(-1, FRAME)
    parts, spoken = [], []
    for start in range(0, len(whole), 16):
        part = whole[start : start + 16]
        quiet = rng.normal(0, 0.004, part.shape)
        parts += [part, quiet]
        spoken += [np.sqrt((part**2).mean(axis=1)) > 0.01, np.zeros(len(part), bool)]
    return np.concatenate(parts).astype(np.float32), np.concatenate(spoken)


def _frames(parts: Any) -> list[Any]:
    before = np.zeros(CONTEXT, np.float32)
    found = []
    for part in parts:
        found.append(np.concatenate([before, part])[None])
        before = part[-CONTEXT:]
    return found


def _followed(answer: Answer, frames: list[Any]) -> list[tuple[Sample, float]]:
    """Each frame with the state that the frames before it left."""
    state, found = np.zeros((2, 1, 128), np.float32), []
    for frame in frames:
        sample: Sample = {"input": frame, "state": state, "sr": np.array(16000, np.int64)}
        said, state = answer(sample)
        found.append((sample, float(said[0, 0])))
    return found


def _listened(answer: Answer, frames: list[Any]) -> list[tuple[float]]:
    return [(said,) for _, said in _followed(answer, frames)]
