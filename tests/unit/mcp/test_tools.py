"""Every parameter of every tool is typed and guarded, and answers are cut without losing what was cut."""

import contextlib
import json

import pytest

from modelwright._json import canonical
from modelwright.errors import UsageError, WrightError
from modelwright.mcp import read_choices
from modelwright.mcp._bounded import bounded, part_of
from modelwright.mcp._guard import Guard
from modelwright.mcp._schema import described, input_schema
from modelwright.mcp._tools import TOOLS

HEAD = {"schema_version": 1, "command": "x", "tool_version": "0", "record_id": "a" * 64}
EXAMPLES = {"string": "random", "array": [], "object": {}, "integer": 1, "number": 0.5, "boolean": False}


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_no_parameter_takes_just_anything(tool, tmp_path):
    guard = Guard(read_choices([tmp_path]))
    schema = input_schema(tool)
    assert described(tool)
    for name, form in schema["properties"].items():
        assert form.keys() & {"type", "anyOf", "enum"}, f"{name} has no type"
        if name in ("save", "at", "start", "recipe", "models", "inputs", "record", "data"):
            continue
        kind = form.get("type") or form.get("anyOf", [{}])[0].get("type", "string")
        with contextlib.suppress(WrightError):
            guard.given(tool, {name: EXAMPLES[kind]})
            continue
        with pytest.raises(WrightError) as refused:
            guard.given(tool, {name: EXAMPLES[kind]})
        assert "takes no" not in refused.value.problem, f"nobody says what {name} may be"


def test_a_parameter_that_nobody_classified_is_refused(tmp_path):
    with pytest.raises(UsageError, match="takes no new_path"):
        Guard(read_choices([tmp_path])).given(TOOLS[0], {"new_path": "/etc/passwd"})


def test_roots_are_folders_that_exist(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    assert read_choices([tmp_path, tmp_path / "link"]).roots == (str(tmp_path.resolve()),)
    for wrong in ([], [tmp_path / "none"]):
        with pytest.raises(UsageError):
            read_choices(wrong)


def test_what_fits_is_not_touched():
    document = {**HEAD, "rows": [1, 2, 3]}
    assert bounded(document) == document


@pytest.mark.parametrize(
    "rest",
    [
        {"rows": [{"name": f"node {number}", "more": "x" * 50} for number in range(5000)]},
        {"text": "y" * 100_000},
        {"table": {f"key {number}": "z" * 30 for number in range(5000)}},
        {"deep": [[[["w" * 400 for _ in range(9)] for _ in range(9)] for _ in range(9)] for _ in range(9)]},
        {f"field {number}": "v" * 3000 for number in range(60)},
    ],
    ids=["a list", "a text", "a table", "deep lists", "many fields"],
)
def test_a_long_answer_is_cut_to_its_size_and_every_cut_can_be_followed(rest):
    document = {**HEAD, **rest}
    found = bounded(document)
    assert len(canonical(found)) <= 24_000
    assert found["record_id"] == HEAD["record_id"], "the way to the rest is never cut"
    assert found["whole"].startswith("read(")
    for cut in found["cut"]:
        if cut["at"]:
            left = part_of(document, cut["at"], cut["kept"])["part"]
            assert len(left) == cut["had"] - cut["kept"]


def test_a_place_that_is_not_there_is_said():
    with pytest.raises(UsageError, match=r"there is no rows\.9"):
        part_of({**HEAD, "rows": [1]}, "rows.9", 0)
    assert json.loads(canonical(part_of({**HEAD, "rows": [1, 2]}, "rows", 1)))["part"] == [2]
