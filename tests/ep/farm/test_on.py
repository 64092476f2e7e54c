"""`on`: the same call on another machine of the cluster, a real worker process with a home of its own."""

import concurrent.futures
import itertools

import numpy as np
import pytest

import modelwright as mw
from modelwright.errors import ExecutionError, UsageError
from support.lab import Lab
from support.models import conv_net, mlp, save


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """`friend` is there when a test begins it."""
    machines = {"plain": (), "xelite": ("qnn-npu",)}
    with Lab(tmp_path_factory.mktemp("lab"), machines) as found:
        machines["friend"] = ()
        yield found


@pytest.fixture
def xelite(lab):
    return mw.On("xelite", lab.address, lab.tls)


@pytest.fixture
def model(tmp_path):
    return save(mlp(), tmp_path, "net.onnx")


def test_a_measurement_elsewhere_is_a_record_here_that_names_the_machine_and_none_of_its_paths(lab, xelite, model):
    result = mw.perf(model, "cpu", iterations=20, warmup=2, on=xelite)
    assert result.latency.p50_ms > 0
    assert result.model == str(model)
    record = mw.read(result.record_id)
    assert (result.measured_on, record.on, result.to_dict()["measured_on"]) == ("xelite", "xelite", "xelite")
    assert [one.name for one in record.models] == [str(model)]
    assert str(lab.folder / "homes") not in record.text
    assert "received" not in record.text
    with mw.Store(lab.home("xelite") / "store", read_only=True) as there:
        assert len(there.records("perf")) == 1


def test_two_comparisons_at_once_do_not_overlap_on_a_machine(xelite, model, tmp_path):
    other = save(mlp(64), tmp_path, "other.onnx")

    def compare():
        asked = {"allow_different": True, "operators": False, "budget_s": 4.0, "min_effect": 0.5}
        return mw.compare([model, other], **asked, on=xelite)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        both = [future.result() for future in [pool.submit(compare), pool.submit(compare)]]
    spans = [
        (min(unit.began_at for unit in one.units), max(unit.began_at + unit.total_s for unit in one.units))
        for one in both
    ]
    first, second = sorted(spans)
    assert first[1] <= second[0]
    assert {one.measured_on for one in both} == {"xelite"}
    every = sorted((unit.began_at, unit.began_at + unit.total_s) for one in both for unit in one.units)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(every))
    assert [arm.model for arm in both[0].arms] == [str(model), str(other)]


def test_the_target_is_asked_where_it_is_and_data_goes_there_as_files(xelite, tmp_path):
    model = save(conv_net(), tmp_path, "net.onnx")
    rows = np.random.default_rng(0).standard_normal((6, 3, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "rows.npz", x=rows)
    data = mw.Data(str(tmp_path / "rows.npz"))
    found = mw.evaluate(model, model, data=data, outputs=True, target="qnn-npu", on=xelite)
    assert found.candidate.target == "qnn-npu"
    assert found.measured_on == "xelite"
    looked = mw.debug(model, target="qnn-npu", data=data, on=mw.On("qnn-npu", xelite.scheduler, xelite.tls))
    assert looked.measured_on == "xelite"
    assert looked.float_model == "net.onnx"


def test_what_a_machine_cannot_do_is_said_and_nothing_is_measured(xelite, model, tmp_path, lab):
    with pytest.raises(UsageError, match="no machine of the cluster is called nobody"):
        mw.perf(model, on=mw.On("nobody", xelite.scheduler, xelite.tls))
    with pytest.raises(UsageError, match="xelite has no openvino-npu"):
        mw.perf(model, "openvino-npu", on=xelite)
    with pytest.raises(UsageError, match="nobody said where xelite is"):
        mw.perf(model, on="xelite")
    with pytest.raises(UsageError, match="`trace_chrome`"):
        mw.perf(model, trace_chrome=tmp_path / "t.json", on=xelite)


def test_code_of_the_user_runs_on_no_machine_that_was_not_told_to_trust(xelite, model, tmp_path, lab):
    metric, witness = tmp_path / "score.py", tmp_path / "ran"
    metric.write_text(f"open({str(witness)!r}, 'w')\ndef score(outputs, row):\n    return 1.0\n")
    np.savez(tmp_path / "rows.npz", x=np.zeros((4, 4), np.float32))
    asked = {"data": str(tmp_path / "rows.npz"), "metric": f"{metric}:score"}
    with pytest.raises(UsageError, match=r"score\.py is Python code, and xelite runs none"):
        mw.evaluate(model, model, **asked, on=xelite)
    with pytest.raises(UsageError, match=r"score\.py is Python code, and xelite runs none"):
        mw.perf(model, data=f"{metric}:score", on=xelite)
    assert not witness.exists()


def test_a_function_that_gives_samples_goes_as_a_file_to_a_machine_that_was_told_to_trust(lab, model, tmp_path):
    code = tmp_path / "rows.py"
    code.write_text(
        "import numpy as np\ndef rows():\n    for n in range(6):\n        yield {'x': np.full((4,), n, 'f4')}\n"
    )
    lab.begin("friend", "--trust")
    friend = mw.On("friend", lab.address, lab.tls)
    found = mw.evaluate(model, model, data=f"{code}:rows", outputs=True, on=friend)
    assert (found.measured_on, found.data.selected) == ("friend", 6)
    assert found.data.source == f"{code}:rows"
    assert "received" not in mw.read(found.record_id).text


def test_an_error_there_is_the_same_error_here(xelite, model):
    with pytest.raises(ExecutionError, match="takes no node of the model"):
        mw.evaluate(model, model, outputs=True, target="qnn-npu", on=xelite)


@pytest.mark.proof
def test_a_search_is_done_there(xelite, model):
    found = mw.tune(model, "cpu", axes=["level"], budget_s=20, on=xelite)
    assert found.measured_on == "xelite"
    assert found.champion


def test_the_speed_of_what_is_shipped_is_asked_of_the_worker_that_has_the_device(xelite, model, tmp_path):
    """This worker has a simulator, which it says itself: no time of it is a verdict."""
    said = []
    found = mw.ship(
        model, ["cpu", "qnn-npu:soc=x-elite"], output=tmp_path / "package", data="random", budget_s=2, speed_on=xelite,
        on_progress=lambda one: said.append(one.message),
    )  # fmt: skip
    timed = [words for words in said if words and words.startswith("timing qnn-npu")]
    assert [words.endswith("beside cpu on another machine") for words in timed] == [True]
    (row,) = (row for row in found.gates if row.gate == "speed")
    assert (row.passed, "is simulated" in row.reason) == (None, True)
