"""Many processes, one store."""

from __future__ import annotations

import pytest

from modelwright.store import Store


def test_eight_processes_produce_once_and_the_others_wait_and_reuse(root, script, result, tmp_path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    children = [script("ask_once", root, marks, 1.5) for _ in range(8)]
    answers = [result(child) for child in children]
    assert len(list(marks.iterdir())) == 1
    assert all(answer["right"] for answer in answers)
    (maker,) = [answer for answer in answers if answer["produced"]]
    waited_for = [pid for answer in answers for pid in answer["waited_for"]]
    assert len(waited_for) >= 2
    # Those who waited look one after the other, so one of them may be waited for too.
    assert maker["pid"] in waited_for
    assert set(waited_for) <= {answer["pid"] for answer in answers} | {None}
    assert max(answer["waited"] for answer in answers) > 0.3
    with Store(root) as store:
        assert store.verify().clean


@pytest.mark.slow
def test_random_puts_leases_links_and_collections_lose_no_live_entry(root, script, result) -> None:
    children = [script("churn", root, seed, 5) for seed in range(3)]
    answers = [result(child) for child in children]
    for action in ("make", "lease", "link", "collect"):
        assert sum(answer.get(action, 0) for answer in answers) > 10, answers
    with Store(root) as store:
        report = store.verify()
        assert report.clean
        store.gc(0, grace_s=0)
        assert store.entries() == ()
        assert list((root / "blobs").glob("*/*")) == []
        assert not list((root / "tmp").iterdir())
