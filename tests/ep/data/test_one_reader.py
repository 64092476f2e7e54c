"""The same data means the same arrays, whoever asks for it."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from modelwright.data import DataSource, samples
from modelwright.evaluation import EvalOptions, evaluate
from modelwright.graph import load
from modelwright.measure import InputChoice, make_subject
from modelwright.vocabulary import Data
from support.models import FLOAT, model, save, value

COUNT = 5
DUMP = """
from pathlib import Path
import numpy as np
def score(outputs, row):
    place = Path(__file__).parent / "seen"
    place.mkdir(exist_ok=True)
    np.save(place / f"{len(list(place.iterdir())):03}.npy", outputs["y"])
    return 1.0
"""


@pytest.fixture
def echo(tmp_path):
    """What goes in comes out."""
    io = [value("x", FLOAT, ["batch", 3])], [value("y", FLOAT, ["batch", 3])]
    return save(model([helper.make_node("Identity", ["x"], ["y"])], *io, []), tmp_path)


def pixels():
    return np.random.default_rng(0).integers(0, 256, (COUNT, 3), dtype=np.uint8)


def as_npz(folder: Path) -> str:
    np.savez(folder / "d.npz", x=pixels(), label=np.arange(COUNT))
    return str(folder / "d.npz")


def as_npy(folder: Path) -> str:
    np.save(folder / "d.npy", pixels())
    return str(folder / "d.npy")


def as_folder(folder: Path) -> str:
    (folder / "d").mkdir()
    for index, row in enumerate(pixels()):
        np.savez(folder / "d" / f"{index}.npz", x=row[None], label=index)
    return str(folder / "d")


def as_function(folder: Path) -> str:
    as_npz(folder)
    text = "import numpy as np\nfrom pathlib import Path\ndef rows():\n    for row in np.load(Path(__file__).parent / "
    (folder / "mine.py").write_text(text + "'d.npz')['x']:\n        yield {'x': row}\n")
    return f"{folder / 'mine.py'}:rows"


@pytest.mark.parametrize("write", [as_npz, as_npy, as_folder, as_function])
def test_build_measure_and_eval_are_fed_the_same_arrays(tmp_path, echo, write):
    data = Data(write(tmp_path), scale=1 / 255)
    wanted = (pixels().astype(np.float64) / 255).astype(np.float32)
    calibrated = [inputs["x"] for inputs in samples(DataSource(data), load(echo), 32)]
    assert np.array_equal(np.concatenate(calibrated), wanted)
    assert np.array_equal(make_subject(echo, InputChoice(data, batch=COUNT)).feeds["x"], wanted)
    (tmp_path / "score.py").write_text(DUMP)
    evaluate(echo, echo, data, options=EvalOptions(metric=f"{tmp_path / 'score.py'}:score"))
    seen = [np.load(path) for path in sorted((tmp_path / "seen").iterdir())]
    assert np.array_equal(np.stack(seen[::2]), wanted)


def test_the_same_seed_draws_the_same_rows_for_everybody(tmp_path, echo):
    data = Data(as_npz(tmp_path), scale=1 / 255, samples=2, seed=3)
    fed = samples(DataSource(data), load(echo), 32)
    measured = make_subject(echo, InputChoice(Data(data.source, scale=1 / 255, seed=3), batch=2)).feeds["x"]
    assert np.array_equal(measured, np.concatenate([inputs["x"] for inputs in fed]))
    found = evaluate(echo, echo, data, "feature-extraction", EvalOptions(settings={"k": "1"}))
    assert [score.index for score in found.scores] == [sample.label for sample in fed.labelled()]
