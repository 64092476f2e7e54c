"""A key says what made a result: the order of things does not matter, anything else does."""

from __future__ import annotations

import hashlib
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwright.store import Key, stage_key

words = st.text(string.ascii_letters + "é 名-", min_size=1, max_size=8)
digests = st.binary(max_size=4).map(lambda data: hashlib.sha256(data).hexdigest())
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
parts = st.fixed_dictionaries(
    {
        "stage": words,
        "version": words,
        "libraries": st.dictionaries(words, words, max_size=4),
        "inputs": st.dictionaries(words, digests, max_size=4),
        "params": st.dictionaries(words, values, max_size=4),
    }
)


def backwards(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: backwards(item) for key, item in reversed(value.items())}
    return [backwards(item) for item in value] if isinstance(value, list) else value


@given(parts)
def test_the_order_of_keys_does_not_matter(given_parts: dict[str, Any]) -> None:
    assert stage_key(**given_parts) == stage_key(**backwards(given_parts))


@given(parts, parts)
def test_different_parts_make_different_keys(one: dict[str, Any], other: dict[str, Any]) -> None:
    same = repr(sort(one)) == repr(sort(other))
    assert (stage_key(**one) == stage_key(**other)) == same


@given(parts, st.sampled_from(["stage", "version", "libraries", "inputs", "params"]), st.data())
def test_changing_any_part_changes_the_key(base: dict[str, Any], name: str, data: st.DataObject) -> None:
    fresh = hashlib.sha256(b"new content").hexdigest()
    changed = base[name] + "x" if isinstance(base[name], str) else {**base[name], "added entry": fresh}
    assert stage_key(**{**base, name: changed}) != stage_key(**base)
    if isinstance(base[name], dict) and base[name]:
        gone = data.draw(st.sampled_from(sorted(base[name])))
        fewer = {key: item for key, item in base[name].items() if key != gone}
        assert stage_key(**{**base, name: fewer}) != stage_key(**base)


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), (1, True), (1, "1"), (None, False), ([], {}), ([1, 2], [2, 1])])
def test_values_that_python_or_a_reader_could_confuse_differ(one: object, other: object) -> None:
    keys = {stage_key(stage="s", version="1", libraries={}, inputs={}, params={"p": value}) for value in (one, other)}
    assert len(keys) == 2


def test_a_path_is_not_accepted_as_an_input() -> None:
    with pytest.raises(ValueError, match=r"model\.onnx"):
        stage_key(stage="s", version="1", libraries={}, inputs={"model": "model.onnx"}, params={})


def test_a_key_reads_as_stage_and_short_digest() -> None:
    assert str(Key("ab" * 32, "export")) == "export:abababababab"


def sort(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: sort(value[key]) for key in sorted(value)}
    return [sort(item) for item in value] if isinstance(value, list) else value
