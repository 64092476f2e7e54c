"""Every tiny entry of the catalogue is still what it was shown to be: built again, its gate asked, by this tree."""

import pytest

import modelwright as mw
from modelwright.plans import _executor
from modelwright.recipes import own_folder, read_entries
from modelwright.worker import Worker

pytest.importorskip("torch")
TINY = [entry for entry in read_entries(own_folder()) if entry.kind == "folder"]


@pytest.fixture(scope="module")
def warm():
    """One child for all of them: what an export costs most is to import what it needs."""
    with pytest.MonkeyPatch.context() as patch, Worker() as child:
        patch.setattr(child, "close", lambda: None)
        patch.setattr(_executor, "Worker", lambda: child)
        yield
        patch.undo()


def test_there_are_enough_of_them_to_say_something():
    assert len(TINY) >= 12
    assert len({entry.name for entry in TINY}) == len(TINY)


@pytest.mark.parametrize("entry", TINY, ids=lambda entry: entry.name)
def test_a_tiny_entry_is_built_again(entry, warm, tmp_path):
    with mw.Store(tmp_path / "store") as store:
        found = mw.catalog.build(entry.name, store=store, anyway=True)
    works = found.passed is not False and not found.failed
    assert works == (entry.said.known_bad is None), "what is known to be bad may have become good: say so"
