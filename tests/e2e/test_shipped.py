"""What somebody has who installs the package: the files of the repository, and nothing else."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "src/modelwright"
# Nothing reaches a network, neither here nor in a child: whatever is asked for must have come along.
CODE = """
import socket, sys

def refused(*_):
    raise AssertionError("something asked the network")

socket.socket.connect = socket.getaddrinfo = refused
sys.path.insert(0, sys.argv[1])
import modelwright as mw

assert mw.__file__.startswith(sys.argv[1]), mw.__file__
model = sys.argv[2]
mw.inspect(model)
print(mw.analyze(model, ["cpu", "qnn-npu"]).to_dict())
"""


@pytest.fixture
def installed(tmp_path):
    """As hatchling packs it: every file of the package that git knows, and none that it ignores."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no working tree: the files are what was shipped")
    listed = subprocess.run(["git", "ls-files", "-z", PACKAGE], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():
            place = tmp_path / "site" / Path(name).relative_to("src")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, place)
    return tmp_path / "site"


def test_the_wheel_takes_the_whole_package():
    """What the test below copies is what is packed: nothing is left out, nothing is put in from elsewhere."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert said == {"wheel": {"packages": [PACKAGE]}}


def test_rules_and_data_come_with_the_package_and_nothing_is_fetched(installed, tmp_path):
    model = ROOT / "demo" / "fashion_cnn.onnx"
    words = [sys.executable, "-c", CODE, str(installed), str(model)]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "qnn-npu" in done.stdout
    shipped = {path.relative_to(installed).as_posix() for path in installed.rglob("*") if path.is_file()}
    there = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / PACKAGE).rglob("*") if path.is_file()}
    here = {name for name in there if "__pycache__" not in name}
    assert here - shipped == set(), "these lie here and are not packed"
