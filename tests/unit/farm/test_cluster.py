"""The same plan on a cluster: machines with stores of their own, over TLS on loopback."""

import concurrent.futures
import hashlib
import queue
import threading
from dataclasses import replace

import pytest

from modelwright._json import plain
from modelwright.data import DataSource
from modelwright.errors import StoreError, UsageError, WrightError
from modelwright.farm.cluster import Cluster, ClusterWorker, DaskExecutor, _cluster, _hand, make_certificates
from modelwright.farm.cluster._cluster import SLOT
from modelwright.farm.cluster._freight import Unloading
from modelwright.farm.cluster._where import nearest
from modelwright.farm.cluster._wire import ShippedValue, WorkerFacts
from modelwright.models import HfSource
from modelwright.plans import Node, Plan, Ref, run_all
from modelwright.stages.compile import COMPILE, CompileParams
from modelwright.store import FileEntry, Store
from modelwright.testing import ExecutorSuite
from modelwright.testing import _executor_tasks as tasks
from modelwright.testing._executor_tasks import TextParams
from modelwright.vocabulary import Data
from support.cluster import Loopback


@pytest.fixture(scope="module")
def loopback(tmp_path_factory):
    with Loopback(tmp_path_factory.mktemp("cluster"), {"plain": (), "xelite": ("qnn-npu",)}) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def cluster(loopback):
    with loopback.connected() as found:
        yield found


class TestDaskExecutor(ExecutorSuite):
    @pytest.fixture
    def executor(self, loopback, cluster):
        loopback.forget()
        return DaskExecutor(cluster)


def node(text="x", before=None):
    inputs = {} if before is None else {"model": Ref(before)}
    return Node(tasks.WRITE, TextParams(text), inputs, "it")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "driver" / "store") as opened:
        yield opened


def run(cluster, store, *wanted):
    plan = Plan({str(number): (one,) for number, one in enumerate(wanted)})
    return {result.node.id: result for result in DaskExecutor(cluster, patience_s=1).run(plan, store)}


def test_digests_are_those_of_this_machine_alone(loopback, cluster, store, tmp_path):
    loopback.forget()
    last = node("b", node("a"))
    there = run(cluster, store, last)
    with Store(tmp_path / "alone" / "store") as alone:
        here = run_all(Plan({"it": (last,)}), alone)
    assert {one: there[one].done.artifact.files for one in there} == {
        one: here[one].done.artifact.files for one in here
    }
    assert {one: there[one].done.key for one in there} == {one: here[one].done.key for one in here}


def test_content_reaches_a_worker_once(loopback, cluster, store):
    loopback.forget()
    first = node("shared")
    run(cluster, store, *(node(word, first) for word in "abcd"))
    received = [
        sum(entry.key.stage == "received" and "content" in entry.roles for entry in hand.store.entries())
        for hand in loopback.hands.values()
    ]
    assert max(received) <= 1


def test_content_that_a_worker_lost_is_sent_again_when_it_asks(loopback, cluster, tmp_path):
    path = tmp_path / "content"
    path.write_bytes(b"content that may be lost")
    file = FileEntry("content", "content", hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size)
    for _ in range(2):
        loopback.forget()
        for worker in cluster.workers():
            cluster.send(worker.address, file, path)
        assert all(hand.store.blob(file.digest, file.size) for hand in loopback.hands.values())


def test_code_from_the_wire_runs_on_no_worker_and_not_here(cluster, tmp_path):
    mark = tmp_path / "ran"
    future = cluster.client.submit(mark.touch, pure=False)
    with pytest.raises(Exception, match="deserialization"):
        future.result(timeout=30)
    with pytest.raises(Exception, match="may not come over the wire"):
        cluster.client.run(mark.touch)
    assert not mark.exists()


def test_a_certificate_of_another_authority_is_let_in_nowhere(loopback, tmp_path, monkeypatch):
    monkeypatch.setattr(_cluster, "_CONNECT_S", 2.0)
    make_certificates(tmp_path / "other", ("stranger",))
    with pytest.raises(StoreError, match="cannot be reached"):
        Cluster(loopback.address, tls=tmp_path / "other" / "stranger")


def test_an_address_without_tls_is_refused(loopback):
    with pytest.raises(UsageError, match="no address of a cluster"):
        Cluster(loopback.address.replace("tls", "tcp"), tls=loopback.tls)


@pytest.mark.parametrize(
    ("field", "forged"),
    [
        ("key", lambda answer: replace(answer, key="0" * 64)),
        ("files", lambda answer: replace(answer, files=(replace(answer.files[0], name="../../evil"),))),
        ("digest", lambda answer: replace(answer, files=(replace(answer.files[0], digest="0" * 64),))),
        ("outcome", lambda answer: replace(answer, meta={**answer.meta, "outcome": {"passed": "yes"}})),
    ],
)
def test_a_forged_result_changes_nothing(loopback, cluster, store, monkeypatch, field, forged):
    loopback.forget()
    honest = _hand._answered
    monkeypatch.setattr(_hand, "_answered", lambda done: forged(honest(done)))
    wanted = node(f"forged {field}")
    result = run(cluster, store, wanted)[wanted.id]
    assert result.done is None
    assert isinstance(result.error, WrightError)
    assert store.entries() == ()


@pytest.mark.parametrize("along", [True, False])
def test_a_tampered_file_changes_nothing(loopback, cluster, store, monkeypatch, along):
    """Whether it comes with the answer or is fetched."""
    loopback.forget()
    honest = _hand.Hand.contents
    lies = lambda hand, reply: {name: b"z" * len(data) for name, data in honest(hand, reply).items()}  # noqa: E731
    monkeypatch.setattr(_hand.Hand, "contents", lies if along else lambda hand, reply: {})
    monkeypatch.setattr(_hand.Inbox, "get", lambda self, file, offset: b"z" * file.size)
    wanted = node("tampered")
    result = run(cluster, store, wanted)[wanted.id]
    assert "not what its digest says" in str(result.error)
    assert store.entries() == ()


def test_a_node_that_no_worker_can_do_says_what_is_missing(cluster, store):
    wanted = Node(COMPILE, CompileParams("openvino-npu"), {}, "it")
    result = run(cluster, store, wanted)[wanted.id]
    assert "ep:openvino-npu" in result.error.cause


def test_data_that_names_a_file_of_the_worker_is_refused():
    item = ShippedValue("data", plain(DataSource(Data("/etc/passwd"))))
    with pytest.raises(WrightError, match="did not come along"):
        Unloading(None, {}, None, trusts=False).data("data", item)


def test_code_of_a_model_needs_a_worker_that_trusts():
    item = ShippedValue("source", plain(HfSource("m", "t", "bert", None, trust_remote_code=True)))
    with pytest.raises(WrightError, match="runs none"):
        Unloading(None, {}, None, trusts=False)._source("source", item)


def test_a_worker_that_dies_loses_only_its_lease(tmp_path, store, monkeypatch):
    begun, released, first = queue.Queue(), threading.Event(), threading.Lock()
    honest = _hand.Hand._run

    def held(self, job, tell, here):
        if first.acquire(blocking=False):
            begun.put(self.options.name)
            released.wait(60)
            raise _hand.StoppedError
        return honest(self, job, tell, here)

    monkeypatch.setattr(_hand.Hand, "_run", held)
    wanted = [node(word) for word in "abc"]
    with Loopback(tmp_path / "cluster", {"left": (), "right": ()}) as there, there.connected() as found:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            done = pool.submit(run, found, store, *wanted)
            lost = begun.get(timeout=60)
            there.lose(lost)
            results = done.result(timeout=120)
            released.set()
        survivor = there.hands["right" if lost == "left" else "left"].store
        made = [entry.key for entry in survivor.entries() if entry.key.stage == "write"]
    assert [results[one.id].done.produced for one in wanted] == [True] * 3
    assert len(store.entries()) == 3
    assert len(made) == len(set(made))


def machine(name, slots=1):
    return ClusterWorker(
        f"tls://{name}", {SLOT: float(slots)}, WorkerFacts(name, "Linux", {}, "cpu", slots, False, "0")
    )


def test_a_job_goes_to_the_free_machine_that_has_what_it_reads_and_anywhere_where_that_saves_little():
    both, much = [machine("a"), machine("b")], 50 << 20
    everywhere = ["tls://a", "tls://b"]
    assert nearest(both, {"tls://a": much, "tls://b": 0}, {}) == ["tls://b"]
    assert nearest(both, {"tls://a": much, "tls://b": much}, {}) == everywhere
    assert nearest(both, {"tls://a": 1000, "tls://b": 0}, {}) == everywhere
    # One that has it and is busy is not waited for.
    assert nearest(both, {"tls://a": much, "tls://b": 0}, {"tls://b": 1}) == everywhere
    assert nearest([machine("a"), machine("b", 2)], {"tls://a": much, "tls://b": 0}, {"tls://b": 1}) == ["tls://b"]
    assert nearest([], {}, {}) == []


def test_what_a_machine_made_or_was_sent_is_known_to_be_there(loopback, cluster, store):
    loopback.forget()
    wanted = node("held")
    done = run(cluster, store, wanted)[wanted.id].done
    size = sum(file.size for file in done.artifact.files)
    lacking = {one.name: cluster.lacking(one.address, done.artifact.files) for one in cluster.workers()}
    assert lacking == {name: 0 if name == done.machine else size for name in lacking}
