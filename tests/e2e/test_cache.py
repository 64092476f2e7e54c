"""`wright cache` on a store that holds something."""

import pytest

from modelwright.store import Store, stage_key


@pytest.fixture
def artifact(tmp_path):
    source = tmp_path / "weights.bin"
    source.write_bytes(b"w" * 5000)
    key = stage_key(stage="export", version="1", libraries={}, inputs={}, params={})
    with Store(tmp_path / "home/store") as store:
        return store.put({"weights.bin": source}, key=key, roles={"weights.bin": "weights"}, label="demo")


def test_an_entry_is_listed_described_and_verified(wright, artifact):
    assert [entry["label"] for entry in wright("cache", "ls", "--json").json["entries"]] == ["demo"]
    info = wright("cache", "info", artifact.key.digest[:8], "--json").json
    assert [file["name"] for file in info["files"]] == ["weights.bin"]
    assert "all good" in wright("cache", "verify").out


def test_damage_is_exit_1_and_is_set_aside(wright, artifact):
    blob = artifact.path("weights")
    blob.chmod(0o644)
    blob.write_bytes(b"w" * 4999 + b"x")
    answer = wright("cache", "verify")
    assert answer.code == 1
    assert "damaged" in answer.out
    assert wright("cache", "ls", "--json").json["entries"] == []


def test_prune_removes_only_what_it_says(wright, artifact):
    dry = wright("cache", "prune", "--older-than", "0s", "--dry-run", "--json").json
    assert [entry["label"] for entry in dry["removed"]] == ["demo"]
    assert len(wright("cache", "ls", "--json").json["entries"]) == 1
    wright("cache", "prune", "--older-than", "0s")
    assert wright("cache", "ls", "--json").json["entries"] == []


def test_an_unknown_key_is_a_usage_error_that_names_the_nearest(wright, artifact):
    near = artifact.key.digest[:7] + ("0" if artifact.key.digest[7] != "0" else "1")
    answer = wright("cache", "info", near)
    assert answer.code == 2
    assert artifact.key.digest[:8] in answer.err


def test_everything_lives_under_one_variable(wright, tmp_path):
    assert wright("cache", "path").out.strip() == str(tmp_path / "home")


def test_of_many_entries_the_last_hundred_are_shown_and_the_others_counted(wright, tmp_path):
    source = tmp_path / "made.bin"
    source.write_bytes(b"made")
    with Store(tmp_path / "home/store") as store:
        for number in range(103):
            key = stage_key(stage="made", version="1", libraries={}, inputs={}, params={"n": number})
            store.put({"made.bin": source}, key=key, roles={"made.bin": "weights"}, label=f"number-{number}")
    listed = wright("cache", "ls").out
    assert "3 that were used before these; --all shows them" in listed
    assert "103 entries" in listed
    assert listed.count("number-") == 100
    assert wright("cache", "ls", "--all").out.count("number-") == 103
    planned = wright("cache", "prune", "--older-than", "0s", "--dry-run").out
    assert "3 that were used before these; --json names all" in planned
    assert planned.count("number-") == 100
    assert "would remove 103 entries" in planned
