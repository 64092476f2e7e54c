"""Two models for the eight targets into a real registry, and all of it back into an empty store, where it runs."""

import numpy as np
import onnxruntime as ort
import pytest

import modelwright as mw
from modelwright.farm import EIGHT
from modelwright.models import check_build, read_build
from modelwright.store import Store
from support.models import conv_net, mlp, save
from support.registry import PROGRAM, registry

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="docker-registry is not installed: make registry")


def rows(folder):
    rng = np.random.default_rng(0)
    for name, model, shape in (("net", conv_net(), (3, 8, 8)), ("mlp", mlp(), (4,))):
        np.savez(folder / f"{name}.npz", x=rng.standard_normal((40, *shape)).astype(np.float32))
        yield {"model": str(save(model, folder, f"{name}.onnx")), "data": str(folder / f"{name}.npz")}


def test_two_models_for_eight_targets_go_to_a_real_registry_and_come_back_to_an_empty_store(tmp_path):
    listed = list(rows(tmp_path))
    with registry(tmp_path / "registry") as host, Store(tmp_path / "here/store") as store:
        feed = f"oci://{host}/team"
        done = mw.matrix(listed, to=feed, store=store)
        assert {one.words for one in done} == {"published"}, [one.failure for one in done]
        assert (len(done), done.targets) == (16, EIGHT)
        with Store(tmp_path / "there/store") as empty:
            for number, one in enumerate(done):
                place = tmp_path / f"back/{number}"
                words = {"target": one.cell.target, "precision": one.facts.precision, "output": place}
                mw.pull(feed, one.cell.model, **words, store=empty)
                assert check_build(place).whole
                assert runs(place)


def runs(folder):
    """On the CPU: no chip is here."""
    for part in read_build(folder).parts:
        session = ort.InferenceSession(str(folder / part.model), providers=["CPUExecutionProvider"])
        (taken,) = session.get_inputs()
        shape = [size if isinstance(size, int) else 1 for size in taken.shape]
        kind = np.float16 if "float16" in taken.type else np.float32
        if not all(np.isfinite(found).all() for found in session.run(None, {taken.name: np.ones(shape, kind)})):
            return False
    return True
