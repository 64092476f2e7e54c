"""What may be done otherwise, and what that means for a session."""

import re

import pytest

from modelwright.errors import UsageError, WrightError
from modelwright.pipeline import Recipe
from modelwright.search._space import Surroundings, added, chosen, pinned, refuse_unknown, session_of, single_changes
from modelwright.search._variant import AxisChange, Variant
from modelwright.search._workshop import written
from modelwright.targets import parse_target

THREADS, LEVEL = Variant((AxisChange("threads", "1"),)), Variant((AxisChange("level", "basic"),))


def test_what_is_added_reaches_the_session_and_is_told_as_compare_takes_it():
    own = added(["opt.htp_performance_mode=burst", "config.session.use_env_allocators=1"])
    both = Variant((*own[0].changes, *own[1].changes, AxisChange("denormals", "off")))
    session = session_of(both.changes)
    assert session.options == {"htp_performance_mode": "burst"}
    assert session.config == {"session.use_env_allocators": "1", "session.set_denormal_as_zero": "1"}
    assert str(written(own[0], "m.onnx")) == ("opt.htp_performance_mode=burst=m.onnx@opt.htp_performance_mode=burst")


@pytest.mark.parametrize("word", ["burst", "opt.=1", "opt.x", "opt.x=", "threads=1", "options.x=1"])
def test_what_cannot_be_added_is_said(word):
    with pytest.raises(UsageError):
        added([word])


def test_only_what_is_named_is_tried_and_what_is_forbidden_is_not():
    assert chosen([THREADS, LEVEL], (), (), ["level=basic"]) == (LEVEL,)
    assert chosen([THREADS, LEVEL], (), ["level=basic"]) == (THREADS,)
    with pytest.raises(UsageError, match="levl=basic"):
        chosen([THREADS, LEVEL], (), (), ["levl=basic"])


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ({"axes": ["colour"]}, "colour"),
        ({"only": ["nosuch"]}, "nosuch"),
        ({"only": ["+gelu_fusoin"]}, "gelu_fusoin"),
        ({"only": ["levl=basic"]}, "levl=basic"),
        ({"only": ["precision=w9a9"]}, "w9a9"),
        ({"forbid": ["denormal"]}, "denormal"),
        ({"forbid": ["levl=basic"]}, "levl=basic"),
    ],
)
def test_what_no_model_has_is_refused_without_one(said, wrong):
    with pytest.raises(WrightError, match=wrong):
        refuse_unknown(**{"axes": (), "forbid": (), "only": ()} | said)


def test_what_some_model_may_have_is_not_refused():
    refuse_unknown(["pass", "level"], ["threads", "+gelu_fusion", "level=basic"], ["-gelu_fusion", "precision=w8a8"])


@pytest.mark.parametrize("word", ["precision=w8a8", "+gelu_fusion", "level=none", "spinning=on", "threads=0"])
def test_what_cannot_be_pinned_is_said(word):
    with pytest.raises(WrightError, match=re.escape(word)):
        pinned([word])


def test_what_is_pinned_holds_for_every_session_and_an_axis_stays_as_it_is():
    held = pinned(["threads=1", "spinning=off", "opt.key=a", "precision"])
    session = session_of((*held, *LEVEL.changes))
    assert (session.threads, session.level, session.options) == (1, "basic", {"key": "a"})
    assert str(written(LEVEL, "m.onnx", held)).endswith(
        "threads=1,level=basic,opt.key=a,config.session.intra_op.allow_spinning=0"
    )


@pytest.mark.parametrize(
    ("target", "labels"),
    [
        ("cpu", set()),
        (
            "qnn-npu",
            {
                "compile=on",
                "opt.htp_performance_mode=sustained_high_performance",
                "opt.htp_performance_mode=balanced",
                "opt.htp_graph_finalization_optimization_mode=1",
            },
        ),
        ("openvino-cpu", {"compile=on"}),
    ],
)
def test_compiling_and_options_are_axes_where_the_target_has_them(target, labels):
    recipe = Recipe(
        policy_version=1, target=target, precision="fp32", export=None, optimize=None, quantize=None, compile=None
    )
    found = single_changes(recipe, parse_target(target), Surroundings(17, (), 2))
    assert {one.label for one in chosen(found, ["compile", "option"], ())} == labels
    assert not chosen(found, ["compile", "option"], ["compile", "option"])
