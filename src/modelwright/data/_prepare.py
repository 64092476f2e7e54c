"""Rows that hold texts, images or sounds become arrays: by the model's own processor, or as was said. In a child."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._lazy import lazy
from modelwright.data._feeds import TEXT, TakenInput, channels_last
from modelwright.data._media import picture, resized, sound
from modelwright.data._rows import UNNAMED, Row
from modelwright.errors import ExecutionError, InputError, WrightError
from modelwright.models import refuse_foreign
from modelwright.vocabulary import Data

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")
transformers = lazy("transformers")

_RAW = ("text", "tokens", "question", "image", "audio")
_SENSED = ("image", "audio")
_HIDDEN_SHARE = 0.15
_TEMPLATE = "This example is {}."
_CAPTION = "a photo of a {}"


def _is_ready(value: Any, spec: TakenInput) -> bool:
    """A model that takes texts reads them itself."""
    return isinstance(value, np.ndarray | np.generic) or (spec.dtype == TEXT and value is not None)


class Preparer:
    """Adds what is missing for the model's inputs. Rows that already hold all arrays pass as they are.

    `longest` is the most tokens of a text, where the inputs do not say it.
    """

    def __init__(
        self,
        inputs: Sequence[TakenInput],
        data: Data,
        names: Sequence[str] = (),
        shared: Row | None = None,
        *,
        task: str | None = None,
        longest: int | None = None,
    ) -> None:
        self._inputs = {spec.name: spec for spec in inputs}
        self._data = data
        self._longest = longest
        self._folder = data.processor
        self._task = task or ""
        self._names = names
        self._shared = shared or {}
        self._loaded: dict[str, Any] = {}

    def __call__(self, row: Row) -> Row:
        row = self._named(row)
        missing = [name for name, spec in self._inputs.items() if not _is_ready(row.get(name), spec)]
        missing = [name for name in missing if name not in self._shared]
        raw = self._raw(row)
        if not missing or raw is None:
            return row
        if raw == "image":
            return {**row, **self._image(row["image"], missing), **self._classes(missing)}
        return {**row, **(self._audio(row) if raw == "audio" else self._text(row))}

    def tried(self, row: Row) -> None:
        """The processor is applied to a row of which nobody knows yet where it goes."""
        raw = self._raw(row)
        if raw == "image":
            found = resized(picture(row["image"]), self._data.size)
            if self._folder is not None:
                self._processed(found)
        elif raw is not None:
            self._audio(row) if raw == "audio" else self._text(row)

    def _raw(self, row: Row) -> str | None:
        """What of the row becomes arrays; arrays of pixels and sounds do where there is a processor."""
        for name in _RAW:
            ready = isinstance(row.get(name), np.ndarray) and (self._folder is None or name not in _SENSED)
            if row.get(name) is not None and not ready:
                return name
        return None

    def _named(self, row: Row) -> Row:
        """The one array of a file without names is the one input of the model."""
        if UNNAMED not in row:
            return row
        if len(self._inputs) != 1:
            raise InputError(
                "an array without a name cannot be told apart",
                cause=f"the model takes {', '.join(self._inputs)}",
                fix="Write an .npz file, one array per input.",
            )
        rest = {name: value for name, value in row.items() if name != UNNAMED}
        return {**rest, next(iter(self._inputs)): row[UNNAMED]}

    def tokenizer(self) -> Any:
        return self._part("AutoTokenizer")

    def _part(self, auto: str) -> Any:
        if self._folder is None:
            raise InputError(
                "the rows hold no arrays, and there is no processor",
                cause=f"the model takes {', '.join(self._inputs)}; texts, images and sounds become that by a processor",
                fix="Give the folder of the model's own as `processor`, or data that is already arrays.",
            )
        if auto not in self._loaded:
            self._loaded[auto] = _load(auto, self._folder)
        return self._loaded[auto]

    def _length(self) -> int | None:
        """The tokens a fixed graph takes."""
        spec = self._inputs.get("input_ids")
        last = spec.shape[-1] if spec is not None and spec.shape else None
        return last if isinstance(last, int) else None

    def _encode(self, *texts: Any, **more: Any) -> dict[str, Any]:
        length = self._length()
        options = {"padding": "max_length", "max_length": length} if length else {}
        if self._longest is not None:
            options["max_length"] = self._longest
        found = self._part("AutoTokenizer")(*texts, **{"truncation": True, **options, **more})
        return {name: np.asarray(value) for name, value in found.items()}

    def _text(self, row: Row) -> dict[str, Any]:
        special = _TEXTS.get(self._task) or next((make for name, make in _FIELDS.items() if name in row), None)
        if special is not None:
            return special(self, row)
        pair = (row["text_pair"],) if row.get("text_pair") is not None else ()
        return self._encode(row["text"], *pair)

    def _image(self, image: Any, missing: Sequence[str]) -> dict[str, Any]:
        found = resized(picture(image), self._data.size)
        if self._folder is None:
            return self._plain_image(found, missing)
        return self._processed(found)

    def _processed(self, image: Any) -> dict[str, Any]:
        made = self._part("AutoImageProcessor")(images=image.convert("RGB"), return_tensors="np")
        return {name: value[0] for name, value in made.items()}

    def _plain_image(self, image: Any, missing: Sequence[str]) -> dict[str, Any]:
        """Pixels as they are, when the picture has the model's size."""
        specs = [self._inputs[name] for name in missing if len(self._inputs[name].shape or ()) == 4]
        if len(specs) != 1 or len(missing) != 1:
            self._part("AutoImageProcessor")
        last = channels_last(specs[0], self._data)
        _, *shape = specs[0].shape or ()
        channels, height, width = (shape[2], *shape[:2]) if last else shape
        if any(isinstance(want, int) and want != have for want, have in ((width, image.width), (height, image.height))):
            raise InputError(
                f"an image is {image.width}x{image.height}, and the model takes {width}x{height}",
                cause="how images are resized is part of the model, so it is never guessed",
                fix="Say the `size`, give the folder of the model's own `processor`, or images of that size.",
            )
        pixels = np.asarray(image.convert("L" if channels == 1 else "RGB"))
        pixels = pixels[..., None] if pixels.ndim == 2 else pixels
        return {specs[0].name: pixels if last else np.moveaxis(pixels, -1, 0)}

    def _audio(self, row: Row) -> dict[str, Any]:
        audio, rate = row["audio"], row.get("sampling_rate")
        wave, rate = sound(Path(audio)) if isinstance(audio, str | Path) else (audio, rate)
        extractor = self._part("AutoFeatureExtractor")
        if rate is not None and int(rate) != extractor.sampling_rate:
            raise InputError(
                f"the sound is sampled at {rate} Hz, and the model takes {extractor.sampling_rate} Hz",
                cause="it is not resampled here",
                fix="Resample the data.",
            )
        found = extractor(np.asarray(wave), sampling_rate=extractor.sampling_rate, return_tensors="np")
        return {name: value[0] for name, value in found.items()}

    def question(self, row: Row) -> dict[str, Any]:
        """The answer may lie in the context only; `offsets` lead from tokens back to its text."""
        length = self._length() or 384
        found = self._part("AutoTokenizer")(
            row["question"],
            row["context"],
            truncation="only_second",
            max_length=length,
            padding="max_length" if self._length() else False,
            return_offsets_mapping=True,
        )
        sides = found.sequence_ids(0)
        offsets = np.asarray(found.pop("offset_mapping"))
        arrays = {name: np.asarray(value) for name, value in found.items()}
        return {**arrays, "offsets": offsets, "context_mask": np.array([side == 1 for side in sides])}

    def words(self, row: Row) -> dict[str, Any]:
        """Labels of words become labels of their first tokens."""
        length = self._length()
        options = {"padding": "max_length", "max_length": length} if length else {}
        found = self._part("AutoTokenizer")(list(row["tokens"]), is_split_into_words=True, truncation=True, **options)
        labels, before = [], None
        for word in found.word_ids(0):
            labels.append(-100 if word is None or word == before or "label" not in row else int(row["label"][word]))
            before = word
        return {**{name: np.asarray(value) for name, value in found.items()}, "label": np.array(labels)}

    def pair(self, row: Row) -> dict[str, Any]:
        second = self._encode(row["text_pair"])
        return {**self._encode(row["text"]), **{f"{name}_pair": value for name, value in second.items()}}

    def masked(self, row: Row) -> dict[str, Any]:
        """Hide one token in seven; which ones depends on the text alone."""
        arrays = self._encode(row["text"])
        tokenizer = self._part("AutoTokenizer")
        ids = arrays["input_ids"]
        open_places = np.flatnonzero(~np.isin(ids, tokenizer.all_special_ids))
        if not len(open_places) or tokenizer.mask_token_id is None:
            raise InputError(
                "a text has no token to hide", cause="it is empty, or the tokenizer has no mask", fix="Leave it out."
            )
        rng = np.random.default_rng(zlib.crc32(str(row["text"]).encode()))
        hidden = rng.choice(open_places, size=max(1, round(_HIDDEN_SHARE * len(open_places))), replace=False)
        labels = np.full(len(ids), -100)
        labels[hidden] = ids[hidden]
        ids = ids.copy()
        ids[hidden] = tokenizer.mask_token_id
        return {**arrays, "input_ids": ids, "label": labels}

    def hypotheses(self, row: Row) -> dict[str, Any]:
        """The text with each class name, as an entailment model reads them."""
        return self._lines([(row["text"], _TEMPLATE.format(name)) for name in self._names])

    def _classes(self, missing: Sequence[str]) -> dict[str, Any]:
        """A line of text for each class, where the model takes texts beside the image."""
        if "input_ids" not in missing:
            return {}
        found = self._lines([(_CAPTION.format(name),) for name in self._names])
        return {name: value for name, value in found.items() if name in missing}

    def _lines(self, texts: Sequence[tuple[str, ...]]) -> dict[str, Any]:
        if not texts:
            raise InputError(
                "the names of the classes are unknown",
                cause="zero-shot classification asks the model about each name",
                fix="Put them into the data as label_names.",
            )
        lines = [self._encode(*words) for words in texts]
        widest = max(len(line["input_ids"]) for line in lines)
        return {name: np.stack([_padded(line[name], widest) for line in lines]) for name in lines[0]}


_TEXTS: Mapping[str, Callable[[Preparer, Row], dict[str, Any]]] = {
    "question-answering": Preparer.question,
    "token-classification": Preparer.words,
    "sentence-similarity": Preparer.pair,
    "fill-mask": Preparer.masked,
    "zero-shot-classification": Preparer.hypotheses,
}


# Without a task, the fields of a row say what it is.
_FIELDS: Mapping[str, Callable[[Preparer, Row], dict[str, Any]]] = {
    "question": Preparer.question,
    "tokens": Preparer.words,
}


def _padded(line: NDArray[Any], width: int) -> NDArray[Any]:
    return np.pad(line, (0, width - len(line)))


def _load(auto: str, folder: str) -> Any:
    if not Path(folder).is_dir():
        raise InputError(f"{folder} is not a folder", cause="`processor` names one", fix="Check the path.")
    refuse_foreign(Path(folder))
    try:
        return getattr(transformers, auto).from_pretrained(folder, local_files_only=True)
    except ModuleNotFoundError as error:
        raise ExecutionError(
            "a processor needs transformers",
            cause=f"the package {error.name} is not installed",
            fix="pip install 'modelwright[hf]'",
        ) from error
    except WrightError:
        raise
    # transformers raises OSError, ValueError, KeyError, ImportError and more for folders it cannot use.
    except Exception as error:
        kind = auto.removeprefix("Auto")
        raise InputError(
            f"{Path(folder).name} has no {kind} that transformers can load",
            cause=f"{type(error).__name__}: {' '.join(str(error).split())[:200]}",
            fix="Let `processor` be the folder that holds the model's processor files.",
        ) from error
