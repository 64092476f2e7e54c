"""`wright` as a user types it, with a home of its own."""

import importlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

from support.promised import computed_on_its_target, delivered_as_computed

# A busy machine makes examples slow, not wrong.
slow = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile("any machine", deadline=None, suppress_health_check=slow)
hypothesis.settings.load_profile("any machine")

# What a shell starts in the background is deaf to ctrl-C, and what nohup starts to SIGHUP; children inherit that.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    """Nothing a test does reaches the store, the runtimes or the logs of the person who runs it, and no test waits
    for a measurement of another."""
    monkeypatch.setenv("MODELWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MODELWRIGHT_LOCKS", str(tmp_path))


@pytest.fixture(autouse=True)
def numbers_do_not_depend_on_the_tests_before(request):
    """Where a module draws from one generator, each of its tests begins anew: several processes share the tests. Not as
    the module itself began, which may have drawn what the tests add to."""
    generator = getattr(request.module, "RNG", None)
    if generator is not None:
        generator.bit_generator.state = type(generator.bit_generator)(1).state


@pytest.fixture(scope="session", autouse=True)
def what_passes_for_an_npu_was_computed_there(request):
    """Held against every build that any test makes in this process."""
    if all("unit" in item.path.parts for item in request.session.items):
        yield
        return
    room, own = (importlib.import_module(name) for name in ("modelwright.pipeline", "modelwright.pipeline._building"))
    made = own.build_all

    def watched(*args, **kwargs):
        found = made(*args, **kwargs)
        for built in found:
            if isinstance(built, own.BuildResult):
                computed_on_its_target(built)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "build_all", watched)
        patch.setattr(own, "build_all", watched)
        yield


@pytest.fixture
def wright(tmp_path):
    """Runs `wright …` in a child and gives back exit code, stdout and stderr."""

    def call(*words, cwd=tmp_path, env=None, timeout=600) -> Answer:
        environment = {**os.environ, **(env or {})}
        script = Path(sys.executable).with_name("wright")
        done = subprocess.run(
            [script, *map(str, words)],
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    yield call
    delivered_as_computed(tmp_path)


@pytest.fixture
def small_disk(tmp_path):
    """A real disk of 6 MB; needs the right to mount."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    if os.name == "nt" or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this user cannot mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
