"""A bucket as a feed, on a local server that speaks like S3; and one that lies."""

import itertools
import time

import pytest

from modelwright.farm.feeds import FeedError, PackageQuery, publish, pull
from modelwright.farm.feeds._s3 import BucketFeed
from modelwright.models import check_build
from modelwright.store import Store
from modelwright.testing import FeedSuite
from modelwright.testing._feed import write_build
from support.lying import Lie, lying

moto_server = pytest.importorskip("moto.server")
boto3 = pytest.importorskip("boto3")
PREFIX = itertools.count()
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def host():
    server = moto_server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    place, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in known().items():
            patch.setenv(name, value)
        boto3.client("s3", endpoint_url=f"http://{place}:{port}").create_bucket(Bucket="models")
        yield f"{place}:{port}"
    server.stop()


def known():
    return {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}


def bucket(host, name, stall_s=10.0):
    return BucketFeed("s3", f"models/{name}?endpoint=http://{host}", stall_s)


@pytest.fixture
def name():
    return f"team{next(PREFIX)}"


class TestBucketFeed(FeedSuite):
    @pytest.fixture
    def feed(self, host, name):
        return bucket(host, name)

    def tick(self):
        time.sleep(1.1)  # times in a listing are whole seconds


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def build(tmp_path):
    return write_build(tmp_path / "build")


@pytest.mark.parametrize(("status", "kind"), [(401, "auth"), (403, "auth"), (503, "unavailable"), (400, "refused")])
def test_failures_are_told_by_their_status(host, name, build, status, kind):
    with lying(host, Lie(status=status, body=b"")) as (liar, _), pytest.raises(FeedError) as caught:
        publish(bucket(liar, name), build)
    assert caught.value.kind == kind
    assert check_build(build).whole


def test_a_server_error_that_passes_changes_nothing(host, name, build):
    with lying(host, Lie("PUT", times=1, status=500, body=b"")) as (liar, _):
        assert publish(bucket(liar, name), build).confirmed


def test_what_was_committed_before_the_answer_was_lost_is_found_and_counted(host, name, build):
    with lying(host, Lie("PUT", ".*/models/.*json.*", hang=True)) as (liar, _):
        sent = publish(bucket(liar, name, stall_s=1.5), build)
    assert sent.recovered
    assert set(sent.confirmed) == set(sent.files)


def test_wrong_bytes_are_never_written(host, name, build, tmp_path, store):
    publish(bucket(host, name), build)
    with lying(host, Lie("GET", ".*/blobs/.*", wrong=True)) as (liar, _), pytest.raises(FeedError) as caught:
        pull(bucket(liar, name), PackageQuery("org/model", "cpu"), tmp_path / "back", store=store)
    assert caught.value.kind == "corrupt"
    assert not (tmp_path / "back").exists()


def test_a_listing_that_is_cut_short_never_means_that_nothing_was_published(host, name, build):
    publish(bucket(host, name), build)
    with lying(host, Lie("GET", ".*list-type.*", edit=lambda data: b"<ListBucketResult/>")) as (liar, _):
        assert publish(bucket(liar, name), build).already


def test_slow_is_not_silent(host, name, build, tmp_path, store):
    with lying(host, Lie("PUT|GET", ".*/blobs/.*", slow=True)) as (liar, _):
        publish(bucket(liar, name, stall_s=1.5), build)
        back = pull(bucket(liar, name, stall_s=1.5), PackageQuery("org/model", "cpu"), tmp_path / "back", store=store)
    assert check_build(back.folder).whole
