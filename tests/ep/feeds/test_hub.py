"""The Hugging Face Hub as a feed, on a local server that speaks like it; and one that lies."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from modelwright.farm.feeds import FeedError, Package, PackageQuery, open_feed, publish, pull
from modelwright.farm.feeds._hub import HubFeed
from modelwright.models import check_build
from modelwright.store import Store
from modelwright.testing import FeedSuite
from modelwright.testing._feed import WEIGHTS, write_build
from support.hub import hub
from support.lying import Lie, lying

REPOSITORY = "team/org_model"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_me")
    with hub() as (host, state):
        state.host = host
        yield state


def feed_at(host, stall_s=10.0, owner="team", more=""):
    return HubFeed("hf", f"{owner}?endpoint=http://{host}{more}", stall_s)


class TestHubFeed(FeedSuite):
    @pytest.fixture
    def feed(self, server):
        return feed_at(server.host)


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store") as opened:
        yield opened


@pytest.fixture
def build(tmp_path):
    return write_build(tmp_path / "build")


def fault(attempt):
    with pytest.raises(FeedError) as caught:
        attempt()
    return caught.value


def commits(server, name=REPOSITORY):
    return [commit["title"] for commit in server.repositories[name].commits]


def text(server, path, name=REPOSITORY):
    return server.repositories[name].at("main")["files"][path][1].decode()


def test_a_package_is_one_commit_and_its_files_are_kept_by_digest(server, build):
    publish(feed_at(server.host), write_build(build, companions={"config.json": b"{}", "empty.txt": b""}))
    assert [title.split()[0] for title in commits(server)] == ["initial", "Begin", "Publish"]
    files = server.repositories[REPOSITORY].at("main")["files"]
    inside = {path.partition("/")[2]: kind for path, (kind, _) in files.items() if "/" in path}
    assert inside == {
        **dict.fromkeys(("wright.json", "model.onnx", "model.onnx.data", "config.json"), "lfs"),
        "empty.txt": "text",
    }


def test_what_is_pulled_is_of_the_commit_that_brought_it(server, build, tmp_path, store):
    feed = feed_at(server.host)
    sent = publish(feed, build)
    brought = server.repositories[REPOSITORY].at("main")["sha"]
    publish(feed, write_build(tmp_path / "b", target="qnn-npu"))
    assert brought in sent.reference
    with lying(server.host) as (between, seen):
        back = pull(feed_at(between), PackageQuery("org/model", "cpu"), tmp_path / "back", store=store)
    assert back.reference.replace(between, server.host) == sent.reference
    fetched = [path for _, path in seen if "/resolve/" in path and "/cpu_" in path]
    assert fetched
    assert all(f"/resolve/{brought}/" in path for path in fetched)


def test_the_real_client_reads_what_was_published(server, build, tmp_path, monkeypatch):
    real, constants = pytest.importorskip("huggingface_hub"), pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    publish(feed_at(server.host), build, licence="apache-2.0")
    api = real.HfApi(endpoint=f"http://{server.host}", token="hf_me")
    tag = next(path for path in api.list_repo_files(REPOSITORY) if "/" in path).partition("/")[0]
    got = api.snapshot_download(REPOSITORY, allow_patterns=f"{tag}/*", local_dir=tmp_path / "got")
    assert check_build(tmp_path / "got" / tag).whole
    info = api.get_paths_info(REPOSITORY, [f"{tag}/model.onnx.data"], expand=True)[0]
    assert (info.lfs.size, len(info.last_commit.oid)) == (len(WEIGHTS), 40)
    assert got


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_stand_in_takes_what_the_real_client_sends(server, monkeypatch):
    """It is what we are held to, so it is held to the real client: each request of ours it makes too."""
    real, constants = pytest.importorskip("huggingface_hub"), pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    api = real.HfApi(endpoint=f"http://{server.host}", token="hf_me")
    assert api.whoami()["name"] == "me"
    api.create_repo("team/real", private=True)
    made = api.repo_info("team/real")
    add = [real.CommitOperationAdd(name, data) for name, data in {"a.onnx": b"\0graph", "x.txt": b"text"}.items()]
    api.create_commit("team/real", add, commit_message="real", parent_commit=made.sha)
    kept = server.repositories["team/real"].at("main")["files"]
    assert (kept["a.onnx"][0], kept["x.txt"]) == ("lfs", ("text", b"text"))
    again = [real.CommitOperationAdd("y.txt", b"late")]
    with pytest.raises(real.errors.HfHubHTTPError) as caught:
        api.create_commit("team/real", again, commit_message="real", parent_commit=made.sha)
    assert caught.value.response.status_code == 412


def test_new_repositories_are_private_unless_said(server, build):
    publish(feed_at(server.host), build)
    publish(feed_at(server.host, more="&visibility=public"), build, Package("open", "cpu", "fp32"))
    assert server.repositories[REPOSITORY].private
    assert not server.repositories["team/open"].private


def test_a_hub_that_shows_to_all_what_should_be_private_gets_nothing(build, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_me")
    with hub(makes_public=True) as (host, state):
        assert fault(lambda: publish(feed_at(host), build)).kind == "refused"
        assert not state.repositories[REPOSITORY].objects


def test_the_card_has_the_licence_and_a_line_for_each_package(server, build, tmp_path):
    feed = feed_at(server.host)
    publish(feed, build, licence="Apache-2.0")
    publish(feed, write_build(tmp_path / "b", target="qnn-npu"), licence="apache-2.0")
    card = text(server, "README.md")
    assert card.startswith("---\nlicense: apache-2.0\n")
    assert [line.split(" | ")[1] for line in card.splitlines() if line.startswith("| [")] == ["cpu", "qnn-npu"]


def test_a_licence_that_the_hub_has_no_word_for_is_named(server, build):
    publish(feed_at(server.host), build, licence='Ours: "v1"')
    assert text(server, "README.md").startswith('---\nlicense: other\nlicense_name: "Ours: \\"v1\\""\n')


def test_what_others_wrote_in_a_repository_stays(server, build):
    feed = feed_at(server.host)
    publish(feed, build)
    found = server.repositories[REPOSITORY]
    found.add({"README.md": ("text", b"# My own words\n")}, "mine")
    publish(feed, build, Package("org/model", "cpu", "fp32", "2"))
    assert text(server, "README.md") == "# My own words\n"


def test_a_repository_that_is_something_else_is_left_alone(server, build):
    feed = feed_at(server.host)
    feed._wire.create("team/theirs", private=True)
    found = server.repositories["team/theirs"]
    found.add({"index.json": ("text", b'{"weight_map": {}}'), "model.safetensors": ("text", b"x")}, "theirs")
    before = found.at("main")["sha"]
    caught = fault(lambda: publish(feed, build, Package("theirs", "cpu", "fp32")))
    assert (caught.kind, caught.stops_all, found.at("main")["sha"]) == ("refused", False, before)


def test_many_at_once_are_all_in_the_index(server, tmp_path):
    targets = ["cpu", "qnn-npu", "qnn-gpu", "openvino-cpu"]
    builds = [write_build(tmp_path / target, target=target) for target in targets]
    with ThreadPoolExecutor(len(targets)) as pool:
        list(pool.map(lambda build: publish(feed_at(server.host), build), builds))
    index = json.loads(text(server, "index.json"))
    assert {entry["annotations"]["org.modelwright.target"] for entry in index["manifests"]} == set(targets)
    assert len(feed_at(server.host).offers("org/model")) == len(targets)


def test_large_files_go_in_parts(build, monkeypatch, tmp_path, store):
    monkeypatch.setenv("HF_TOKEN", "hf_me")
    with hub(part=10_000) as (host, _):
        sent = publish(feed_at(host), build)
        assert sent.bytes_sent == sum(file.size for file in sent.files)
        assert check_build(
            pull(feed_at(host), PackageQuery("org/model", "cpu"), tmp_path / "b", store=store).folder
        ).whole


def test_listings_are_read_to_their_last_page(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_me")
    with hub(page=1) as (host, state):
        for place in range(3):
            publish(feed_at(host), write_build(tmp_path / str(place), model=b"%d" % place))
        state.repositories[REPOSITORY].add({"index.json": ("text", b"{}")}, "a damaged index")
        assert len(feed_at(host).offers("org/model")) == 3


@pytest.mark.parametrize(
    ("token", "owner"),
    [("", "team"), ("hf_dead", "team"), ("hf_reader", "team"), ("hf_me", "closed"), ("hf_other", "team")],
)
def test_who_may_not_write_is_told_before_and_while_publishing(server, build, monkeypatch, tmp_path, token, owner):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setenv("HF_TOKEN", token)
    feed = feed_at(server.host, owner=owner)
    for attempt in (feed.preflight, lambda: publish(feed, build)):
        caught = fault(attempt)
        assert (caught.kind, caught.exit_code, caught.stops_all) == ("auth", 5, True)
    assert check_build(build).whole


def test_the_token_of_hf_auth_login_is_used(server, build, monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.delenv("HF_TOKEN_PATH", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    (tmp_path / "token").write_text("hf_me\n")
    feed_at(server.host).preflight()


def test_what_is_public_is_pulled_by_anybody(server, build, monkeypatch, tmp_path, store):
    publish(feed_at(server.host, more="&visibility=public"), build)
    monkeypatch.setenv("HF_TOKEN", "")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    back = pull(feed_at(server.host), PackageQuery("org/model", "cpu"), tmp_path / "back", store=store)
    assert check_build(back.folder).whole


@pytest.mark.parametrize(("status", "kind"), [(401, "auth"), (403, "auth"), (503, "unavailable"), (400, "refused")])
def test_failures_are_told_by_their_status(server, build, status, kind):
    with lying(server.host, Lie(status=status)) as (liar, _):
        assert fault(lambda: publish(feed_at(liar), build)).kind == kind
    assert check_build(build).whole


@pytest.mark.parametrize(
    "path", [".*/commit/main", ".*/storage/.*", ".*/objects/batch", ".*/paths-info/.*", ".*create"]
)
def test_a_server_error_that_passes_changes_nothing(server, build, path):
    lie = Lie("POST|PUT", path, times=1, status=500)
    with lying(server.host, lie) as (liar, _):
        sent = publish(feed_at(liar), build)
    assert (lie.told, set(sent.confirmed)) == (1, set(sent.files))


def test_what_was_committed_before_the_answer_was_lost_is_found_and_counted(server, build):
    feed_at(server.host)._prepare(REPOSITORY)
    with lying(server.host, Lie("POST", ".*/commit/main", hang=True)) as (liar, _):
        sent = publish(feed_at(liar, stall_s=1.5), build)
    assert sent.recovered
    assert set(sent.confirmed) == set(sent.files)
    assert len(commits(server)) == 3


def test_a_file_whose_answer_was_lost_is_not_sent_again(server, build):
    with lying(server.host, Lie("PUT", ".*/storage/.*", times=1, hang=True)) as (liar, _):
        sent = publish(feed_at(liar, stall_s=1.5), build)
    assert sent.bytes_sent == sum(file.size for file in sent.files)


def test_a_conflict_is_one_only_if_the_content_is_another(server, build, tmp_path):
    version = Package("org/model", "cpu", "fp32", "1")
    publish(feed_at(server.host), build, version)
    other = write_build(tmp_path / "other", model=b"other")
    unseen = Lie("POST", ".*/paths-info/.*", times=1, edit=lambda data: b"[]")
    with lying(server.host, unseen) as (liar, _):
        caught = fault(lambda: publish(feed_at(liar), other, version))
    assert (caught.kind, caught.exit_code, caught.stops_all) == ("conflict", 3, False)
    unseen.left = 1
    with lying(server.host, unseen) as (liar, _):
        assert publish(feed_at(liar), build, version).recovered


def test_a_listing_that_is_cut_short_replaces_nothing(server, build, tmp_path):
    version = Package("org/model", "cpu", "fp32", "1")
    publish(feed_at(server.host), build, version)
    before = commits(server)
    cut = [Lie("POST", ".*/paths-info/.*", edit=lambda data: b"[]"), Lie("GET", ".*/tree/.*", edit=lambda data: b"[]")]
    with lying(server.host, *cut) as (liar, _):
        assert (
            fault(lambda: publish(feed_at(liar), write_build(tmp_path / "o", model=b"o"), version)).kind == "conflict"
        )
        assert {offer.package for offer in feed_at(liar).offers("org/model")} == {version}
    assert commits(server) == before


def test_an_answer_that_cannot_be_read_is_not_an_empty_one(server, build):
    with lying(server.host, Lie("POST", ".*/paths-info/.*", edit=lambda data: b"<html>")) as (liar, _):
        assert fault(lambda: publish(feed_at(liar), build)).kind == "unavailable"


def test_wrong_bytes_are_never_written(server, build, tmp_path, store):
    publish(feed_at(server.host), build)
    with lying(server.host, Lie("GET", ".*/cdn/.*", wrong=True)) as (liar, _):
        query = PackageQuery("org/model", "cpu")
        assert fault(lambda: pull(feed_at(liar), query, tmp_path / "back", store=store)).kind == "corrupt"
    assert not (tmp_path / "back").exists()


def test_a_broken_download_goes_on_where_it_broke(server, build, tmp_path, store):
    sent = publish(feed_at(server.host), build)
    with lying(server.host, Lie("GET", ".*/cdn/.*", times=1, cut=True)) as (liar, _):
        back = pull(feed_at(liar), PackageQuery("org/model", "cpu"), tmp_path / "back", store=store)
    assert check_build(back.folder).whole
    assert back.bytes_received == sum(file.size for file in sent.files)


def test_slow_is_not_silent(server, build, tmp_path, store):
    with lying(server.host, Lie("PUT|GET", ".*/(storage|cdn)/.*", slow=True)) as (liar, _):
        publish(feed_at(liar, stall_s=1.5), build)
        back = pull(feed_at(liar, stall_s=1.5), PackageQuery("org/model", "cpu"), tmp_path / "back", store=store)
    assert check_build(back.folder).whole


@pytest.mark.parametrize(
    "address", ["hf://", "hf://a/b", "hf://a?x=1", "hf://a?visibility=some", "hf://-a", "hf://a b"]
)
def test_addresses_that_are_none_are_refused(address):
    with pytest.raises(Exception, match="no place on the Hub"):
        open_feed(address)
