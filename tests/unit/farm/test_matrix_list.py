"""Lists of models, and cells: no key is guessed at, and no two things share a name."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelwright.errors import InputError, UsageError
from modelwright.farm import EIGHT, CellChoices, MatrixCell, chosen_rows, group_cells, list_schema, read_rows
from modelwright.targets import parse_target, parse_targets
from modelwright.vocabulary import Data
from support.models import mlp, save


def write(folder, text, name="models.json"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_list_is_read_from_json_and_from_toml_alike(tmp_path):
    save(mlp(), tmp_path, "net.onnx")
    rows = ["org/model", "net.onnx", {"model": "org/other", "task": "image-classification", "data": "samples.npz"}]
    array = write(tmp_path, json.dumps(rows))
    table = write(tmp_path, json.dumps({"models": rows}), "table.json")
    toml = write(
        tmp_path,
        'models = ["org/model", "net.onnx", {model="org/other", task="image-classification", data="samples.npz"}]',
        "models.toml",
    )
    found = read_rows(array)
    assert found == read_rows(table) == read_rows(toml)
    assert [row.title for row in found] == ["org/model", "net", "org/other"]
    assert found[1].model == str(tmp_path / "net.onnx")
    assert found[0].model == "org/model"


def test_paths_are_seen_from_the_list_wherever_the_command_runs(tmp_path, monkeypatch):
    save(mlp(), tmp_path / "models", "net.onnx")
    (tmp_path / "models" / "calib.npz").write_bytes(b"")
    path = write(
        tmp_path, json.dumps([{"model": "models/net.onnx", "data": {"source": "models/calib.npz", "samples": 3}}])
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (row,) = read_rows(path)
    assert row.model == str(tmp_path / "models/net.onnx")
    assert row.data == Data(str(tmp_path / "models/calib.npz"), samples=3)
    assert row.title == "models/net"


def test_the_most_urgent_rows_come_first_and_can_be_chosen():
    rows = read_rows(
        [{"model": "a/x", "group": "old"}, {"model": "a/y", "priority": 0}, {"model": "a/z", "group": "new"}]
    )
    assert [row.title for row in rows] == ["a/y", "a/x", "a/z"]
    assert [row.title for row in chosen_rows(rows, ["new"])] == ["a/z"]
    assert [row.title for row in chosen_rows(rows, priorities=[0])] == ["a/y"]
    with pytest.raises(UsageError, match="group nwe"):
        chosen_rows(rows, ["nwe"])


def test_components_are_rows_of_their_own(tmp_path):
    for name in ("enc.onnx", "dec.onnx"):
        save(mlp(), tmp_path, name)
    path = write(
        tmp_path, json.dumps([{"model": "whisper", "components": {"encoder": "enc.onnx", "decoder": "dec.onnx"}}])
    )
    found = {row.title: row.model for row in read_rows(path)}
    assert found == {"whisper/encoder": str(tmp_path / "enc.onnx"), "whisper/decoder": str(tmp_path / "dec.onnx")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"model": "a", "precison": "w8a8"}]', "unknown key 'precison' of a"),
        ('[{"model": "a", "data": {"source": "x", "sample": 3}}]', "unknown key 'data.sample'"),
        ('[{"task": "ner"}]', "'model' is not right"),
        ('[{"model": 3}]', "'model' is not right"),
        ("[3]", "is not right"),
        ("[]", "has no rows"),
        ('{"model": ["a"]}', "unknown key 'model'"),
        ('{"models": "a"}', "is not a list"),
        ('"a"', "is not a list"),
        ("[", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ('["a", "a"]', "two rows are called a"),
        ('["a", "A"]', "two rows are called A"),
        ('[{"model": "a", "priority": 12}]', "12 is no priority"),
        ('[{"model": "a", "components": {}}]', "has no components"),
    ],
)
def test_what_is_no_list_is_refused_with_its_reason(tmp_path, text, words):
    with pytest.raises(InputError) as error:
        read_rows(write(tmp_path, text))
    assert words in error.value.problem


def test_a_list_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_rows(tmp_path / "none.json")


def test_the_schema_says_what_the_reader_takes():
    schema = list_schema()
    row = schema["$defs"]["MatrixRow"]
    assert row["required"] == ["model"]
    assert row["additionalProperties"] is False
    assert set(row["properties"]) >= {"task", "precision", "priority", "group", "data", "components"}
    json.dumps(schema, allow_nan=False)


def cells(rows, targets=EIGHT, **choices):
    groups = group_cells(read_rows(rows), parse_targets(list(targets)), CellChoices(**choices))
    return [cell for group in groups for cell in group.cells]


def test_one_model_in_two_precisions_is_two_rows_that_are_built_together(tmp_path):
    path = str(save(mlp(), tmp_path, "net.onnx"))
    rows = [{"model": path, "precision": precision} for precision in ("w8a8", "w8a16")]
    (group,) = group_cells(read_rows(rows), parse_targets(["qnn-npu", "vitisai-npu"]), CellChoices())
    assert len({cell.id for cell in group.cells}) == len({cell.slug for cell in group.cells}) == 4
    assert [cell.precision for cell in group.cells] == ["w8a8", None, "w8a16", None]
    assert "quantizes by itself" in group.cells[1].note


def test_a_cell_is_known_by_content_and_not_by_where_it_lies(tmp_path):
    here, there = save(mlp(), tmp_path / "here", "net.onnx"), save(mlp(), tmp_path / "there", "net.onnx")
    other = save(mlp(16), tmp_path / "other", "net.onnx")
    ids = [cells([{"model": str(path), "name": "net"}], ["cpu"])[0].id for path in (here, there, other)]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    "changed",
    [{"samples": 3}, {"seed": 4}, {"data": Data("random", seed=1)}],
)
def test_whatever_shapes_a_build_makes_another_cell(tmp_path, changed):
    rows = [str(save(mlp(), tmp_path, "net.onnx"))]
    assert cells(rows, ["cpu"])[0].id != cells(rows, ["cpu"], **changed)[0].id


def test_a_model_that_is_not_there_is_a_cell_with_a_reason(tmp_path):
    groups = group_cells(read_rows([str(tmp_path / "none.onnx")]), parse_targets(["cpu"]), CellChoices())
    assert groups[0].source is None
    assert isinstance(groups[0].error, InputError)


WORDS = st.text(string.ascii_letters + string.digits + "-_./+ ü", min_size=1, max_size=80)
CELLS = st.builds(
    lambda model, target, precision: MatrixCell("", model, target, asked=precision),
    WORDS,
    st.sampled_from([*EIGHT, "qnn-npu:soc=x-elite", "qnn-npu:htp_arch=73"]),
    st.sampled_from([None, "w8a8", "w8a16", "fp16"]),
)


@given(CELLS, CELLS)
def test_no_two_cells_share_a_slug_even_where_case_does_not_count(one, other):
    same = (one.model, one.target, one.asked) == (other.model, other.target, other.asked)
    assert (one.slug.casefold() == other.slug.casefold()) == same
    assert all(len(part) < 80 for part in one.slug.split("/"))
    assert ".." not in one.slug
    assert one.slug.count("/") == 1


@pytest.mark.parametrize(("one", "other"), [("a/b-c", "a-b/c"), ("x.1", "x-1"), ("X", "x"), ("net-w8a8", "net")])
def test_names_that_look_alike_have_slugs_of_their_own(one, other):
    first = MatrixCell("", one, "cpu")
    second = MatrixCell("", other, "cpu", asked="w8a8" if other == "net" else None)
    assert first.slug != second.slug


def test_the_default_targets_resolve_to_the_precisions_of_the_policy():
    """What a label means must not change between releases without a new policy version."""
    found = {name: parse_target(name).auto_precision for name in EIGHT}
    assert found == {**dict.fromkeys(EIGHT, "fp32"), "qnn-npu": "w8a16", "openvino-npu": "w8a16"}
