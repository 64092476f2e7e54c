"""Folders of images and sounds, and what is in such a file. Decoders are native code: only in a child."""

from __future__ import annotations

import wave
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.data._rows import LABEL, Rows, by_number
from modelwright.errors import ExecutionError, InputError
from modelwright.models import require_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
pil = lazy("PIL")

IMAGES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff"})
AUDIO = frozenset({".wav"})
_WIDTHS = {1: "u1", 2: "<i2", 4: "<i4"}


def media_files(folder: Path) -> tuple[Path, ...]:
    """The images or else the sounds of a folder, in the order of their names."""
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGES | AUDIO)
    images = tuple(path for path in found if path.suffix.lower() in IMAGES)
    return images or tuple(found)


def media_rows(files: Sequence[Path]) -> Rows:
    """Files without labels."""
    return by_number(_kind(files), len(files), lambda index: {_field(files[index]): files[index]})


def class_rows(path: Path, classes: Sequence[str], read_text: Callable[[Path], str]) -> Rows:
    """`labels.txt`, one name per line, gives the order of the head; without it the order is alphabetical."""
    listing = path / "labels.txt"
    names = [line.strip() for line in read_text(listing).split("\n")] if listing.is_file() else list(classes)
    names = [name for name in names if name]
    unknown = sorted(set(classes) - set(names))
    if unknown:
        raise InputError(
            f"labels.txt does not name the folder {unknown[0]}",
            cause="every folder of images is a class",
            fix=f"Add {unknown[0]} to labels.txt at the place it has in the head.",
        )
    files = [(file, names.index(name)) for name in classes for file in media_files(path / name)]

    def row(index: int) -> dict[str, Any]:
        file, label = files[index]
        return {_field(file): file, LABEL: label}

    return by_number(_kind([file for file, _ in files]), len(files), row, names)


def picture(image: Any) -> Any:
    """The image itself: from its file, or from an array."""
    try:
        library = pil.Image
    except ModuleNotFoundError as error:
        raise ExecutionError(
            "images need pillow", cause="the package pillow is not installed", fix="pip install 'modelwright[eval]'"
        ) from error
    if not isinstance(image, str | Path):
        return library.fromarray(np.asarray(image)) if isinstance(image, np.ndarray) else image
    require_file(Path(image))
    try:
        with library.open(image) as opened:
            opened.load()
            return opened.copy()
    except (OSError, ValueError, SyntaxError, library.DecompressionBombError) as error:
        raise InputError(f"{image} cannot be read", cause=str(error), fix="Leave it out, or repair it.") from error


def resized(image: Any, size: tuple[int, int] | None) -> Any:
    """To (height, width), bilinear."""
    if size is None or (image.height, image.width) == size:
        return image
    return image.resize((size[1], size[0]), pil.Image.Resampling.BILINEAR)


def sound(path: Path) -> tuple[NDArray[Any], int]:
    """A wave file as numbers from -1 to 1, channels mixed, and its sampling rate."""
    require_file(path)
    try:
        with wave.open(str(path), "rb") as file:
            width, channels, rate = file.getsampwidth(), file.getnchannels(), file.getframerate()
            if width not in _WIDTHS:
                raise wave.Error(f"{8 * width} bits a sample")
            numbers = np.frombuffer(file.readframes(file.getnframes()), _WIDTHS[width]).reshape(-1, channels)
    except (OSError, EOFError, ValueError, wave.Error) as error:
        cause = str(error) or type(error).__name__
        raise InputError(
            f"{path} cannot be read", cause=cause, fix="Write it as WAV with 8, 16 or 32 bits (PCM)."
        ) from error
    zero, full = (128.0, 128.0) if width == 1 else (0.0, 2.0 ** (8 * width - 1))
    return np.asarray((numbers.mean(axis=1) - zero) / full, np.float32), rate


def _field(path: Path) -> str:
    return "audio" if path.suffix.lower() in AUDIO else "image"


def _kind(files: Sequence[Path]) -> str:
    return "audio" if files and _field(files[0]) == "audio" else "images"
