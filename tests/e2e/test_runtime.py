"""`wright runtime` without a network: a runtime whose package cannot be installed is reported, not fatal."""


def test_there_are_no_runtimes_at_first(wright):
    answer = wright("runtime", "list")
    assert answer.code == 0
    assert "no runtimes yet" in answer.out


def test_a_package_that_does_not_exist_is_an_error_and_leaves_a_broken_runtime_that_can_be_removed(wright):
    env = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}
    answer = wright("runtime", "create", "acme", "no-such-package-anywhere", env=env)
    assert answer.code == 4
    assert wright("runtime", "list", "--json").json["runtimes"][0]["status"] == "broken"
    assert wright("sys", "--json").json["runtimes"][0]["status"] == "broken"
    assert wright("runtime", "remove", "acme").code == 0


def test_an_unknown_runtime_is_a_usage_error(wright):
    assert wright("runtime", "remove", "nothing").code == 2
