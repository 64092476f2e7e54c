"""QNN's CSV: blocks, columns by name, and cycles that add up."""

import json

import pytest

from modelwright.targets import TraceProblem
from modelwright.targets.eps import qnn
from modelwright.targets.eps.qnn import parse_blocks, read_csv
from unit.trace.recordings import CSV_HEADER, block, csv_text

OPS = (("Input OpId_2", 100, ""), ("conv:OpId_22", 700, "conv;relu"), ("Output OpId_3", 200, ""))


def blocks(text: str):
    return list(parse_blocks(text.splitlines()))


def reason(text: str, tmp_path) -> str:
    path = tmp_path / "qnn.csv"
    path.write_text(text)
    with pytest.raises(TraceProblem) as caught:
        read_csv(path, tmp_path / "none.json")
    return caught.value.reason


def test_every_execution_is_a_block_and_compile_rows_are_none():
    found = blocks(csv_text(block(50, 1000, *OPS), block(80, 1000, *OPS)))
    assert [one.accelerator_us for one in found] == [50, 80]
    assert [(op.name, op.key, op.cycles, op.sources) for op in found[0].ops][1] == (
        "conv",
        "OpId_22",
        700,
        ("conv", "relu"),
    )


def test_inputs_and_outputs_are_kept_and_told_apart():
    found = blocks(csv_text(block(50, 1000, *OPS)))[0]
    assert [op.is_io for op in found.ops] == [True, False, True]


def test_time_is_shared_out_by_the_blocks_own_cycles():
    """A ratio from the first block would make the second one 20 % too long."""
    slow, fast = blocks(csv_text(block(100, 1000, *OPS), block(50, 1000, *OPS)))
    for one in (slow, fast):
        assert sum(one.op_us(op) for op in one.ops) == pytest.approx(one.accelerator_us)
    assert slow.op_us(slow.ops[1]) == 2 * fast.op_us(fast.ops[1])


def test_an_operator_without_cycles_stays():
    found = blocks(csv_text(block(50, 1000, ("a:OpId_1", 1000, "a"), ("b:OpId_2", 0, "b"))))[0]
    assert [found.op_us(op) for op in found.ops] == [50, 0]


def test_names_may_hold_colons_and_spaces():
    found = blocks(csv_text(block(50, 10, ("/a b:c/Conv:OpId_7", 10, ""))))[0]
    assert (found.ops[0].name, found.ops[0].key) == ("/a b:c/Conv", "OpId_7")


def test_seven_columns_are_enough():
    rows = [row.rpartition(",")[0] for row in csv_text(block(50, 1000, *OPS)).splitlines()]
    assert blocks("\n".join(rows))[0].ops[1].sources == ()


def test_columns_are_found_by_name():
    text = csv_text(block(50, 1000, *OPS)).splitlines()
    reordered = "\n".join(",".join(reversed(row.split(","))) for row in text)
    assert blocks(reordered) == blocks("\n".join(text))


@pytest.mark.parametrize("column", ["Time", "Message", "Event Identifier"])
def test_a_missing_column_is_damage(column, tmp_path):
    header = CSV_HEADER.replace(column, "Something else")
    assert reason(csv_text(block(50, 1000, *OPS), header=header), tmp_path) is qnn.CSV_DAMAGED


def test_cycles_that_do_not_add_up_are_not_believed(tmp_path):
    text = csv_text(block(50, 2000, *OPS))
    assert reason(text, tmp_path) is qnn.CYCLES_NOT_CONSERVED


def test_totals_without_operators_say_so(tmp_path):
    assert reason(csv_text(block(50, 0)), tmp_path) is qnn.NO_OPERATORS


@pytest.mark.parametrize("time", ["UNKNOWN", "", "12 apples"])
def test_an_operator_whose_cycles_are_no_number_is_damage(time, tmp_path):
    text = csv_text(block(50, 1000, *OPS)).replace("NODE,700", f"NODE,{time}")
    assert reason(text, tmp_path) is qnn.CSV_DAMAGED


def test_fractions_of_microseconds_are_read():
    text = csv_text(block(50, 1000, *OPS)).replace("BACKEND,50,US", "BACKEND,50.5,US")
    assert blocks(text)[0].accelerator_us == 50.5


def test_a_missing_file_is_told_apart(tmp_path):
    with pytest.raises(TraceProblem) as caught:
        read_csv(tmp_path / "none.csv", tmp_path / "none.json")
    assert caught.value.reason is qnn.CSV_MISSING


def test_operator_types_come_from_the_mapping_of_each_partition(tmp_path):
    (tmp_path / "qnn.csv").write_text(csv_text(block(50, 1000, *OPS)))
    mapping = [{"graph_name": "p0", "op_mappings": [{"dst_name": "conv", "dst_qnn_op_type": "Conv2d"}]}]
    (tmp_path / "map.json").write_text(json.dumps({"subgraph_traces": mapping}))
    assert read_csv(tmp_path / "qnn.csv", tmp_path / "map.json").op_types == {("p0", "conv"): "Conv2d"}


def test_a_mapping_that_cannot_be_read_is_damage(tmp_path):
    (tmp_path / "qnn.csv").write_text(csv_text(block(50, 1000, *OPS)))
    (tmp_path / "map.json").write_text("{}")
    with pytest.raises(TraceProblem):
        read_csv(tmp_path / "qnn.csv", tmp_path / "map.json")
