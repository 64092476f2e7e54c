"""Where rows come from: one .npz, a folder, or a `datasets` id. Runs in a child."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright._json import loads
from modelwright._lazy import lazy
from modelwright.data import read_array, read_npz
from modelwright.errors import InputError, WrightError
from modelwright.evaluation.tasks import Row
from modelwright.vocabulary import Data

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")
datasets = lazy("datasets")
huggingface_hub = lazy("huggingface_hub")

SHARED = "shared."
NAMES = "label_names"
_HUB_S = 10.0
_IMAGES = frozenset({".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff"})


@dataclass(frozen=True, eq=False)
class Dataset:
    """`row(i)` reads one row. `shared` arrays belong to all of them."""

    kind: str
    count: int
    row: Callable[[int], Row]
    label_names: tuple[str, ...] = ()
    shared: Mapping[str, Any] = field(default_factory=dict)


def open_dataset(choice: Data) -> Dataset:
    """Recognise what the user pointed at. No rows at all is an error."""
    path = Path(choice.source).expanduser()
    if path.is_dir():
        found = _folder(path)
    elif path.is_file() or path.suffix == ".npz":
        found = _npz(path)
    else:
        found = _hub(choice.source)
    if found.count == 0:
        raise InputError(
            f"{choice.source} is empty",
            cause="it holds no sample",
            fix="Give at least one sample; a few hundred decide.",
        )
    return _renamed(found, choice.columns)


def selected(count: int, samples: int | None, seed: int) -> list[int]:
    """All rows, or this many of them drawn without replacement; the same for the same seed."""
    if samples is None or samples >= count:
        return list(range(count))
    drawn = np.random.default_rng([seed, count]).permutation(count)[:samples]
    return sorted(int(index) for index in drawn)


def _renamed(data: Dataset, columns: Mapping[str, str]) -> Dataset:
    if not columns:
        return data
    absent = [column for column in columns.values() if column not in data.row(0)]
    if absent:
        raise InputError(
            f"the data has no column '{absent[0]}'",
            cause=f"its columns are {', '.join(sorted(data.row(0)))}",
            fix="Name one of them in `columns` FIELD=COLUMN.",
        )

    def row(index: int) -> Row:
        found = data.row(index)
        return {**found, **{name: found[column] for name, column in columns.items()}}

    return Dataset(data.kind, data.count, row, data.label_names, data.shared)


def _folder(path: Path) -> Dataset:
    for name, reader in (("data.npz", _npz), ("data.jsonl", _jsonl)):
        if (path / name).is_file():
            return reader(path / name)
    classes = sorted(item.name for item in path.iterdir() if item.is_dir())
    if classes:
        return _class_folders(path, classes)
    raise InputError(
        f"{path} is not a dataset",
        cause="it has neither data.npz, nor data.jsonl, nor folders of images named after their class",
        fix="See docs/eval.md for the three layouts.",
    )


def _npz(path: Path) -> Dataset:
    arrays = read_npz(path, fix="Write it with numpy.savez(path, name=array, label=labels), samples along axis 0.")
    shared = {name.removeprefix(SHARED): array for name, array in arrays.items() if name.startswith(SHARED)}
    names = tuple(str(name) for name in arrays.get(NAMES, ()))
    columns = {name: array for name, array in arrays.items() if not name.startswith(SHARED) and name != NAMES}
    sizes = {name: len(array) if array.ndim else -1 for name, array in columns.items()}
    if len(set(sizes.values())) > 1 or -1 in sizes.values():
        raise InputError(
            f"the arrays of {path.name} hold different numbers of samples",
            cause=", ".join(f"{name} {size if size >= 0 else 'none'}" for name, size in sizes.items()),
            fix=f"Every array has the samples along axis 0; one that all samples share is called {SHARED}NAME.",
        )

    def row(index: int) -> Row:
        return {name: _scalar(array[index]) for name, array in columns.items()}

    return Dataset("npz", next(iter(sizes.values()), 0), row, names, shared)


def _scalar(value: Any) -> Any:
    return str(value) if isinstance(value, np.str_) else value


def _jsonl(path: Path) -> Dataset:
    lines = [line for line in _text(path).splitlines() if line.strip()]
    shared_path = path.with_name("shared.npz")
    shared: dict[str, Any] = {}
    if shared_path.is_file():
        shared = dict(read_npz(shared_path))
    names = tuple(str(name) for name in shared.pop(NAMES, ()))

    def row(index: int) -> Row:
        try:
            found = loads(lines[index])
            if not isinstance(found, dict):
                raise ValueError("the line is no JSON object")
            return {str(name): _value(value, path.parent) for name, value in found.items()}
        except (ValueError, OSError) as error:
            raise InputError(
                f"line {index + 1} of {path.name} cannot be read",
                cause=str(error),
                fix="Write one JSON object per line.",
            ) from error

    return Dataset("jsonl", len(lines), row, names, shared)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{path.name} cannot be read", cause=str(error), fix="Write it as text in UTF-8.") from error


def _value(value: Any, folder: Path) -> Any:
    """Lists of numbers are arrays; names of .npy and image files are what is in them."""
    if isinstance(value, str) and Path(value).suffix == ".npy":
        return read_array(folder / value)
    if isinstance(value, str) and Path(value).suffix.lower() in _IMAGES:
        return folder / value
    if isinstance(value, list) and value and not isinstance(value[0], str | dict):
        return np.asarray(value)
    return value


def _class_folders(path: Path, classes: list[str]) -> Dataset:
    """`labels.txt`, one name per line, gives the order of the head; without it the order is alphabetical."""
    listing = path / "labels.txt"
    names = _text(listing).split("\n") if listing.is_file() else classes
    names = [name.strip() for name in names if name.strip()]
    unknown = sorted(set(classes) - set(names))
    if unknown:
        raise InputError(
            f"labels.txt does not name the folder {unknown[0]}",
            cause="every folder of images is a class",
            fix=f"Add {unknown[0]} to labels.txt at the place it has in the head.",
        )
    files = [
        (file, names.index(name))
        for name in classes
        for file in sorted((path / name).iterdir())
        if file.suffix.lower() in _IMAGES
    ]
    return Dataset(
        "images", len(files), lambda index: {"image": files[index][0], "label": files[index][1]}, tuple(names)
    )


def _hub_answers(name: str) -> bool:
    """Asked once. That there is no such dataset is an answer too."""
    try:
        huggingface_hub.HfApi().dataset_info(name, timeout=_HUB_S)
    except (OSError, huggingface_hub.errors.OfflineModeIsEnabled) as error:
        return isinstance(error, huggingface_hub.errors.HfHubHTTPError)
    except Exception as error:  # noqa: BLE001 - its transport raises its own family of errors
        return not type(error).__module__.startswith("httpx")
    return True


def _hub(text: str) -> Dataset:
    """`name`, `name:config`, `name@split` or `name:config@split`; the split is `validation` unless it is said."""
    name, _, split = text.partition("@")
    name, _, config = name.partition(":")
    try:
        # Looked up before the Hub is asked: without the package there is nothing to ask with.
        load_dataset = datasets.load_dataset
        answered = _hub_answers(name)
        if not answered:
            # Its client would try again for half a minute; what was loaded before is found offline too.
            datasets.config.HF_HUB_OFFLINE = True
        table = load_dataset(name, config or None, split=split or "validation")
    except ModuleNotFoundError as error:
        if error.name != "datasets":
            raise
        raise InputError(
            f"{text} does not exist",
            cause="it is no path here, and without the package datasets it cannot be looked up by name",
            fix="Check the path, or pip install 'modelwright[datasets]' for data sets by name.",
        ) from error
    except WrightError:
        raise
    # The library raises its own and its network's errors, in many families.
    except Exception as error:
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        raise InputError(
            f"{text} cannot be loaded",
            cause=why if answered else f"it is no path here, and the Hub did not answer ({why})",
            fix="Check the path or the name of the dataset, its config and its split (name:config@split).",
        ) from error
    feature = table.features.get("label")
    names = tuple(getattr(feature, "names", None) or ())
    return Dataset("datasets", len(table), lambda index: dict(table[index]), names)
