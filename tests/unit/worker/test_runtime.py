from __future__ import annotations

import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from modelwright.errors import ExecutionError, UsageError
from modelwright.worker import (
    Runtime,
    create_runtime,
    find_runtime,
    list_runtimes,
    remove_runtime,
    run,
)
from modelwright.worker._inspect import import_module, installed_versions
from modelwright.worker._runtimes import RuntimeStatus, write_record
from unit.worker import tasks

MODULE = '__version__ = "9.9"\n'


def make_wheel(folder: Path) -> Path:
    """A distribution `tiny-ort` whose only module is called onnxruntime."""
    path = folder / "tiny_ort-9.9-py3-none-any.whl"
    info = "tiny_ort-9.9.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("onnxruntime.py", MODULE)
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-ort\nVersion: 9.9\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


class Made:
    """One runtime for all tests here, made by two threads at once over the remains of an earlier attempt."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.wheel = make_wheel(folder)
        self.remains = self.home / "runtimes" / "tiny" / "remains.txt"
        self.remains.parent.mkdir(parents=True)
        self.remains.write_text("of an installation that was killed")
        self.before = list_runtimes()
        self.heard: list[list[str]] = [[], []]
        with ThreadPoolExecutor(2) as pool:
            self.first, self.second = pool.map(self._create, self.heard)

    def _create(self, heard: list[str]) -> Runtime:
        return create_runtime("tiny", [str(self.wheel)], on_progress=lambda progress: heard.append(progress.message))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("runtimes")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODELWRIGHT_HOME", str(folder / "home"))
        patch.setenv("PIP_NO_INDEX", "1")
        yield Made(folder)


@pytest.fixture
def in_made_home(made: Made, monkeypatch: pytest.MonkeyPatch) -> Made:
    monkeypatch.setenv("MODELWRIGHT_HOME", str(made.home))
    return made


def test_an_installation_that_did_not_finish_is_broken_and_is_replaced(made: Made) -> None:
    assert made.before == (RuntimeStatus("tiny", "broken", "its installation did not finish"),)
    assert not made.remains.exists()


def test_two_creators_install_once(made: Made) -> None:
    assert made.first == made.second
    assert sorted(bool(heard) for heard in made.heard) == [False, True]
    assert any("Successfully installed tiny-ort" in text for heard in made.heard for text in heard)


def test_a_runtime_is_listed_as_ready_and_found(in_made_home: Made) -> None:
    assert list_runtimes() == (RuntimeStatus("tiny", "ready", None, in_made_home.first),)
    found = find_runtime("tiny")
    assert found == in_made_home.first
    assert found.version("tiny-ort") == "9.9"
    assert found.version("modelwright") is None
    assert found.packages == (str(in_made_home.wheel),)
    assert found.created.endswith("+00:00")


def test_an_interpreter_without_modelwright_runs_our_tasks_and_only_those(in_made_home: Made) -> None:
    runtime = in_made_home.first
    installed = dict(run(installed_versions.call(), runtime=runtime, timeout=60).unwrap())
    assert "tiny-ort" in installed
    assert not {"modelwright", "numpy", "filelock", "platformdirs"} & set(installed)
    assert run(import_module.call("onnxruntime"), runtime=runtime, timeout=60).unwrap() == "9.9"
    for absent in ("numpy", "platformdirs"):
        failure = run(import_module.call(absent), runtime=runtime, timeout=60).failure
        assert failure is not None
        assert failure.kind == "import_error"
    outsider = run(tasks.pid.call(), runtime=runtime, timeout=60).failure
    assert outsider is not None
    assert outsider.kind == "import_error"


def test_a_package_that_does_not_import_makes_the_runtime_broken_not_fatal(in_made_home: Made) -> None:
    module = next(in_made_home.first.python.parents[1].rglob("site-packages/onnxruntime.py"))
    module.write_text("raise ImportError('libtiny.so.1: cannot open shared object file')\n# changed\n")
    try:
        (status,) = list_runtimes()
    finally:
        module.write_text(MODULE)
    assert status.status == "broken"
    assert status.reason is not None
    assert "libtiny.so.1" in status.reason


def test_a_runtime_whose_interpreter_is_gone_is_broken_not_fatal(home: Path) -> None:
    (home / "runtimes" / "gone").mkdir(parents=True)
    write_record(Runtime("gone", Path("python"), ("onnxruntime",), (), "2026-01-01T00:00:00+00:00"))
    (status,) = list_runtimes()
    assert status.status == "broken"
    assert "could not be started" in str(status.reason)


def test_other_packages_under_a_taken_name_are_refused(in_made_home: Made) -> None:
    with pytest.raises(UsageError) as raised:
        create_runtime("tiny", ["something-else"])
    assert "wright runtime remove tiny" in raised.value.fix


def test_an_unknown_name_gets_a_suggestion(in_made_home: Made) -> None:
    with pytest.raises(UsageError) as raised:
        find_runtime("tinny")
    assert raised.value.fix == "Did you mean 'tiny'?"
    with pytest.raises(UsageError):
        remove_runtime("tinny")


@pytest.mark.parametrize("name", ["", "Open", "a b", "../up", "-x", "x-", "a--b", ".hidden", "a/b"])
def test_a_name_that_could_leave_its_folder_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        create_runtime(name, ["onnxruntime"])


@pytest.mark.parametrize("packages", [[], [""], ["--index-url=https://example.invalid"]])
def test_only_packages_are_installed(packages: list[str]) -> None:
    with pytest.raises(UsageError):
        create_runtime("tiny", packages)


def test_a_failed_installation_says_why_and_leaves_a_broken_runtime_that_can_be_removed(
    home: Path, tmp_path: Path
) -> None:
    with pytest.raises(ExecutionError) as raised:
        create_runtime("bad", [str(tmp_path / "missing-1.0-py3-none-any.whl")])
    assert "missing" in raised.value.cause
    with pytest.raises(ExecutionError):
        find_runtime("bad")
    remove_runtime("bad")
    assert list_runtimes() == ()
    assert not (home / "runtimes" / "bad").exists()
