"""Pictures of text, the same on every machine: what is written, and where, is known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont

LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZabcdefghjkmnopqrstuvwxyz23456789"
WORDS = (
    "time year people way day man thing woman life child world school state family student group country problem hand"
)
WORDS += " part place case week company system program question work government number night point home water room"
Picture = NDArray[np.uint8]


def phrase(rng: np.random.Generator, words: int = 2) -> str:
    """Some words and a number."""
    chosen = [str(word) for word in rng.choice(WORDS.split(), words)]
    return " ".join([*chosen, str(rng.integers(10, 9999))])


def line(text: str, rng: np.random.Generator, height: int = 48, width: int = 320) -> Picture:
    """One line of dark text on a light ground, a little blurred and noisy, as high as the picture."""
    ink, ground = rng.integers(0, 90, 3), rng.integers(150, 256, 3)
    font = ImageFont.load_default(size=int(rng.integers(26, 36)))
    across = int(font.getlength(text)) + 24
    image = Image.new("RGB", (across, height), tuple(int(part) for part in ground))
    ImageDraw.Draw(image).text((12, int(rng.integers(2, 9))), text, fill=tuple(int(part) for part in ink), font=font)
    image = image.filter(ImageFilter.GaussianBlur(float(rng.uniform(0, 1.2))))
    pixels = np.asarray(image, float) + rng.normal(0, rng.uniform(0, 14), (height, across, 1))
    image = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    return np.asarray(image.resize((min(across, width), height)))


def page(rng: np.random.Generator, side: int, lines: int) -> tuple[Picture, list[tuple[int, int, int, int]]]:
    """Lines of text one below the other, and the box (left, top, right, bottom) of each."""
    image = Image.new("RGB", (side, side), tuple(int(part) for part in rng.integers(170, 256, 3)))
    draw, boxes, step = ImageDraw.Draw(image), [], side // (lines + 1)
    for index in range(lines):
        font = ImageFont.load_default(size=int(rng.integers(step // 3, step * 2 // 3)))
        text = phrase(rng, 1)
        at = (int(rng.integers(8, side // 3)), step // 2 + index * step)
        draw.text(at, text, fill=tuple(int(part) for part in rng.integers(0, 90, 3)), font=font)
        left, top, right, bottom = (int(edge) for edge in draw.textbbox(at, text, font=font))
        boxes.append((left, top, min(right, side), bottom))
    pixels = np.asarray(image, float) + rng.normal(0, 6, (side, side, 1))
    return pixels.clip(0, 255).astype(np.uint8), boxes
