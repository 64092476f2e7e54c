"""A review looks at a commit, not at somebody's tree."""

import subprocess

import pytest

from modelwright.errors import InputError, UsageError
from modelwright.support._checkout import checked_out
from modelwright.support._scope import outside_effort, rules_touched


def git(place, *words):
    done = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(place), *words]
    return subprocess.run(done, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path):
    place = tmp_path / "repository"
    (place / "recipes/acme_net").mkdir(parents=True)
    (place / "tool.py").write_text("x = 1\n")
    git(place, "init", "-q", "-b", "main")
    git(place, "add", "tool.py")
    git(place, "commit", "-qm", "the tool")
    (place / "recipes/acme_net/recipe.toml").write_text('precision = "fp16"\n')
    git(place, "switch", "-qc", "mine")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "mine")
    return place


def test_the_commit_is_cloned_and_what_lies_around_in_the_tree_is_not_there(repository, tmp_path):
    folder = repository / "recipes/acme_net"
    (folder / "recipe.toml").write_text('precision = "w8a8"\n')
    (folder / "left.over").write_text("")
    found = checked_out(folder, "mine", None, tmp_path)
    assert found.name == "recipes/acme_net"
    assert found.changed == ("recipes/acme_net/recipe.toml",)
    assert (found.folder / "recipe.toml").read_text() == 'precision = "fp16"\n'
    assert not (found.folder / "left.over").exists()
    assert git(repository, "status", "--porcelain") != "", "the author's tree stays as it was"


def test_hooks_and_filters_of_the_repository_run_nothing(repository, tmp_path):
    trace = tmp_path / "ran"
    hook = repository / ".git/hooks/post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {trace}\n")
    hook.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(hook))
    checked_out(repository / "recipes/acme_net", "mine", None, tmp_path)
    assert not trace.exists()


def test_what_is_not_there_is_said(repository, tmp_path):
    with pytest.raises(UsageError, match="no commit 'nowhere'"):
        checked_out(repository / "recipes/acme_net", "nowhere", None, tmp_path)
    with pytest.raises(InputError, match="is not in"):
        checked_out(repository / "recipes/other", "mine", None, tmp_path / "a")
    with pytest.raises(UsageError, match="in no repository"):
        checked_out(tmp_path / "elsewhere", "mine", None, tmp_path / "b")
    with pytest.raises(InputError, match="not a folder"):
        checked_out(tmp_path / "elsewhere", None, None, tmp_path / "c")


def test_a_folder_without_a_commit_is_copied_without_its_builds_and_links_are_refused(tmp_path):
    folder = tmp_path / "acme_net"
    (folder / "builds/cpu").mkdir(parents=True)
    (folder / "recipe.toml").write_text("")
    found = checked_out(folder, None, None, tmp_path / "place")
    assert (found.commit, found.changed) == (None, None)
    assert sorted(path.name for path in found.folder.iterdir()) == ["recipe.toml"]
    (folder / "evidence.jsonl").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="is a link"):
        checked_out(folder, None, None, tmp_path / "other")


@pytest.mark.parametrize(
    ("effort", "changed", "outside"),
    [
        ("recipe", ["recipes/a/recipe.toml", "recipes/a/evidence.jsonl", "docs/support.md"], []),
        (
            "recipe",
            ["recipes/a/recipe.toml", "src/modelwright/pipeline/_build.py"],
            ["src/modelwright/pipeline/_build.py"],
        ),
        ("recipe", ["recipes/b/recipe.toml"], ["recipes/b/recipe.toml"]),
        ("none", ["recipes/a/recipe.toml"], ["recipes/a/recipe.toml"]),
        (
            "recipe",
            ["src/modelwright/stages/export/families/mine.py"],
            ["src/modelwright/stages/export/families/mine.py"],
        ),
        ("family", ["src/modelwright/stages/export/families/mine.py", "tests/ep/export/test_mine.py"], []),
        ("family", ["src/modelwright/stages/export/_run.py"], ["src/modelwright/stages/export/_run.py"]),
        ("shared", ["src/modelwright/stages/export/_run.py"], []),
    ],
)
def test_the_effort_says_which_files_may_be_touched(effort, changed, outside):
    assert list(outside_effort(changed, effort, "recipes/a")) == outside


def test_rules_are_known_whatever_the_effort():
    assert rules_touched(["src/modelwright/support/_levels.py", "docs/x.md", "src/modelwright/recipes/_lint.py"]) == (
        "src/modelwright/support/_levels.py",
        "src/modelwright/recipes/_lint.py",
    )
