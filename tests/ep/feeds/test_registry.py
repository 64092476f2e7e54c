"""A real OCI registry as a feed, and one that lies."""

import base64
import itertools
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from modelwright.farm.feeds import FeedError, Package, PackageQuery, publish, pull
from modelwright.farm.feeds._oci import OciFeed
from modelwright.models import check_build
from modelwright.store import Store
from modelwright.testing import FeedSuite
from modelwright.testing._feed import WEIGHTS, write_build
from support.lying import Lie, lying
from support.registry import PROGRAM, registry

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="docker-registry is not installed")
PREFIX = itertools.count()


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    with registry(tmp_path_factory.mktemp("registry")) as found:
        yield found


@pytest.fixture
def name():
    """Of an empty feed."""
    return f"team{next(PREFIX)}"


class TestOciFeed(FeedSuite):
    @pytest.fixture
    def feed(self, host, name):
        return OciFeed("oci", f"{host}/{name}")


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def build(tmp_path):
    return write_build(tmp_path / "build")


def before(host, name, *lies, stall_s=10.0):
    """A feed behind a liar."""
    return _Behind(host, name, lies, stall_s)


class _Behind:
    def __init__(self, host, name, lies, stall_s):
        self._lying, self._name, self._stall_s = lying(host, *lies), name, stall_s

    def __enter__(self):
        liar, self.seen = self._lying.__enter__()
        return OciFeed("oci", f"{liar}/{self._name}", stall_s=self._stall_s)

    def __exit__(self, *why):
        self._lying.__exit__(*why)


def is_there(host, name, build):
    return publish(OciFeed("oci", f"{host}/{name}"), build).already


def test_dead_credentials_are_told_before_and_while_publishing(host, name, build):
    with before(host, name, Lie(status=401)) as feed:
        for attempt in (feed.preflight, lambda: publish(feed, build)):
            with pytest.raises(FeedError) as caught:
                attempt()
            assert (caught.value.kind, caught.value.exit_code, caught.value.stops_all) == ("auth", 5, True)
    assert check_build(build).whole


def test_nobody_there_is_unavailable(name, build):
    with pytest.raises(FeedError) as caught:
        OciFeed("oci", f"127.0.0.1:9/{name}").preflight()
    assert (caught.value.kind, caught.value.exit_code) == ("unavailable", 5)


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT"])
def test_a_server_error_that_passes_changes_nothing(host, name, build, method):
    lie = Lie(method, times=1, status=500)
    with before(host, name, lie) as feed:
        sent = publish(feed, build)
    assert lie.told == 1
    assert set(sent.confirmed) == set(sent.files)


def test_a_server_error_that_stays_is_unavailable_and_nothing_has_the_name(host, name, build):
    with before(host, name, Lie("PUT", ".*/manifests/.*", status=503)) as feed, pytest.raises(FeedError) as caught:
        publish(feed, build)
    assert caught.value.kind == "unavailable"
    again = publish(OciFeed("oci", f"{host}/{name}"), build)
    assert (again.already, again.bytes_sent) == (False, 0)


def test_one_bad_package_does_not_stop_the_others(host, name, build):
    with before(host, name, Lie("PUT", ".*/manifests/.*", status=400)) as feed, pytest.raises(FeedError) as caught:
        publish(feed, build)
    assert (caught.value.kind, caught.value.stops_all) == ("refused", False)


def test_what_was_committed_before_the_answer_was_lost_is_found_and_counted(host, name, build):
    with before(host, name, Lie("PUT", ".*/manifests/cpu.*", hang=True), stall_s=1.5) as feed:
        sent = publish(feed, build)
    assert sent.recovered
    assert set(sent.confirmed) == set(sent.files)
    assert is_there(host, name, build)


def test_a_file_whose_answer_was_lost_is_not_sent_again(host, name, build):
    with before(host, name, Lie("PUT", ".*/blobs/uploads/.*", times=1, hang=True), stall_s=1.5) as feed:
        sent = publish(feed, build)
    assert sent.bytes_sent == sum(file.size for file in sent.files)


def test_a_broken_upload_goes_on_where_it_broke(host, name, build, monkeypatch):
    monkeypatch.setattr("modelwright.farm.feeds._oci._PIECE", len(WEIGHTS) // 4)
    with before(host, name, Lie("PATCH", times=1, drop=True)) as feed:
        sent = publish(feed, build)
    whole = sum(file.size for file in sent.files)
    assert whole < sent.bytes_sent <= whole + len(WEIGHTS) // 4
    assert is_there(host, name, build)


def test_a_conflict_is_one_only_if_the_content_is_another(host, name, build, tmp_path):
    version = Package("org/model", "cpu", "fp32", "1")
    publish(OciFeed("oci", f"{host}/{name}"), build, version)
    other = write_build(tmp_path / "other", model=b"other")
    taken = [Lie("GET", ".*/manifests/cpu.*", times=1, status=404), Lie("PUT", ".*/manifests/.*", status=409)]
    with before(host, name, *taken) as feed, pytest.raises(FeedError) as caught:
        publish(feed, other, version)
    assert (caught.value.kind, caught.value.exit_code, caught.value.stops_all) == ("conflict", 3, False)
    assert check_build(other).whole
    taken[0].left = 1
    with before(host, name, *taken) as feed:
        assert publish(feed, build, version).recovered


def test_a_listing_that_is_cut_short_loses_nothing(host, name, build, tmp_path, store):
    feed = OciFeed("oci", f"{host}/{name}")
    publish(feed, build)
    short = Lie("GET", ".*/tags/list.*", edit=lambda data: json.dumps({"name": "x", "tags": []}).encode())
    with before(host, name, short) as liar:
        publish(liar, write_build(tmp_path / "b", target="qnn-npu"))
        assert not publish(liar, build).bytes_sent
        assert {offer.package.target for offer in liar.offers("org/model")} == {"cpu", "qnn-npu"}
    assert short.told


def test_listings_are_read_to_their_last_page(host, name, tmp_path):
    feed = OciFeed("oci", f"{host}/{name}")
    for place in range(3):
        publish(feed, write_build(tmp_path / str(place), model=b"%d" % place))
    # Only pages: two tags each, and no index.
    gone = Lie("GET", ".*/manifests/index", status=404)
    with before(host, name, gone) as liar:
        url = liar._url("org/model")
        assert len(liar._tags(url)) == 3
        assert len(liar.offers("org/model")) == 3


def test_wrong_bytes_are_never_written(host, name, build, tmp_path, store):
    publish(OciFeed("oci", f"{host}/{name}"), build)
    with before(host, name, Lie("GET", ".*/blobs/.*", wrong=True)) as feed, pytest.raises(FeedError) as caught:
        pull(feed, PackageQuery("org/model", "cpu"), tmp_path / "back", store=store)
    assert (caught.value.kind, caught.value.exit_code) == ("corrupt", 5)
    assert not (tmp_path / "back").exists()


def test_a_broken_download_goes_on_where_it_broke(host, name, build, tmp_path, store):
    sent = publish(OciFeed("oci", f"{host}/{name}"), build)
    with before(host, name, Lie("GET", ".*/blobs/.*", times=1, cut=True)) as feed:
        back = pull(feed, PackageQuery("org/model", "cpu"), tmp_path / "back", store=store)
    assert check_build(back.folder).whole
    assert back.bytes_received == sum(file.size for file in sent.files)


def test_slow_is_not_silent(host, name, build, tmp_path, store):
    with before(host, name, Lie("PUT|GET", ".*/blobs/.*", slow=True), stall_s=1.5) as feed:
        publish(feed, build)
        back = pull(feed, PackageQuery("org/model", "cpu"), tmp_path / "back", store=store)
    assert check_build(back.folder).whole


def test_a_description_that_lies_about_its_files_is_corrupt(host, name, build, tmp_path, store):
    publish(OciFeed("oci", f"{host}/{name}"), build)
    out = Lie("GET", ".*/manifests/cpu.*", edit=lambda data: data.replace(b'"model.onnx"', b'"../../x.onnx"'))
    with before(host, name, out) as feed, pytest.raises(FeedError) as caught:
        pull(feed, PackageQuery("org/model", "cpu"), tmp_path / "back", store=store)
    assert caught.value.kind == "corrupt"
    assert not (tmp_path / "back").exists()


def test_the_index_tells_packages_apart_without_opening_them(host, name, build, tmp_path):
    feed = OciFeed("oci", f"{host}/{name}")
    publish(feed, build, licence="apache-2.0")
    publish(feed, write_build(tmp_path / "b", target="qnn-npu", precision="w8a16"))
    index = json.loads(feed._manifest(f"{feed._url('org/model')}/manifests/index"))
    notes = [entry["annotations"] for entry in index["manifests"]]
    told = [
        (note["org.modelwright.ep"], note["org.modelwright.device"], note["org.modelwright.precision"])
        for note in notes
    ]
    assert told == [("cpu", "cpu", "fp32"), ("qnn", "npu", "w8a16")]
    assert notes[0]["org.opencontainers.image.licenses"] == "apache-2.0"


def test_many_at_once_are_all_in_the_index(host, name, tmp_path):
    targets = ["cpu", "qnn-npu", "qnn-gpu", "openvino-cpu", "openvino-npu", "dml-gpu"]
    builds = [write_build(tmp_path / target, target=target) for target in targets]
    with ThreadPoolExecutor(len(targets)) as pool:
        list(pool.map(lambda build: publish(OciFeed("oci", f"{host}/{name}"), build), builds))
    feed = OciFeed("oci", f"{host}/{name}")
    index = json.loads(feed._manifest(f"{feed._url('org/model')}/manifests/index"))
    assert {entry["annotations"]["org.modelwright.target"] for entry in index["manifests"]} == set(targets)


def test_other_tools_pull_it_too(host, name, build, tmp_path):
    client = pytest.importorskip("oras.client")
    sent = publish(OciFeed("oci", f"{host}/{name}"), build)
    client.OrasClient(insecure=True).pull(target=sent.reference, outdir=str(tmp_path / "back"))
    assert check_build(tmp_path / "back").whole


def test_credentials_of_docker_login_are_used(tmp_path, build, monkeypatch):
    users = tmp_path / "users"
    users.write_text("me:$2b$04$6.YXWgFUyJdyQ4wdgU2vnOZIh49l4.t2SyA1Wyi3xr5uCmMGOp60S\n")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    with registry(tmp_path / "closed", f"auth: {{htpasswd: {{realm: closed, path: {users}}}}}") as host:
        feed = OciFeed("oci", f"{host}/team")
        with pytest.raises(FeedError) as caught:
            feed.preflight()
        assert caught.value.kind == "auth"
        noted = base64.b64encode(b"me:secret").decode()
        (tmp_path / "config.json").write_text(json.dumps({"auths": {host: {"auth": noted}}}))
        feed.preflight()
        assert publish(feed, build).confirmed
