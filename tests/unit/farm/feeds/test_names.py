"""Two things never get one name, and every name is taken everywhere."""

import re

from hypothesis import given
from hypothesis import strategies as st

from modelwright.farm.feeds._names import path_name, word_name

# What OCI allows, which is the least: https://github.com/opencontainers/distribution-spec
PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
REPOSITORY = re.compile(rf"{PART}(/{PART})*")
TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
NAMES = st.one_of(st.text(max_size=300), st.text("abAB-_./0", max_size=12), st.from_regex(r"[a-z]{1,2}-[0-9a-f]{12}"))


@given(st.lists(NAMES, min_size=2, max_size=2, unique=True))
def test_two_models_never_share_a_repository(pair):
    assert len({path_name(name) for name in pair}) == 2


@given(st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=2, max_size=2, unique=True))
def test_two_packages_never_share_a_tag(pair):
    assert len({word_name(*words) for words in pair}) == 2


@given(NAMES, NAMES)
def test_every_name_is_allowed_everywhere(name, other):
    assert REPOSITORY.fullmatch(path_name(name))
    assert len(path_name(name)) <= 200
    assert TAG.fullmatch(word_name(name, other))


def test_plain_names_stay_as_they_are():
    assert path_name("org/some-model.v2") == "org/some-model.v2"
    assert word_name("qnn-npu", "w8a16", "1.0") == "qnn-npu_w8a16_1.0"


def test_names_that_differ_by_case_alone_differ_without_it():
    assert path_name("Org/Model").startswith("org/model-")
    assert path_name("Org/Model") != path_name("org/model")
