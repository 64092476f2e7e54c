"""`wright show`: every answer is kept, and shown again as it was."""

import csv
import io
import json
import subprocess
import sys

import pytest

from support.models import mlp, save

PERF = ("perf", "model.onnx", "--iterations", 20, "--warmup", 3)


@pytest.fixture
def measured(tmp_path, wright):
    """A record of perf: its id, and what the command printed."""
    save(mlp(), tmp_path)
    answer = wright(*PERF)
    assert answer.code == 0, answer.err
    return answer.err.splitlines()[-1].removeprefix("record "), answer.out


def test_a_record_is_shown_as_its_command_showed_it(wright, measured):
    record, printed = measured
    shown = wright("show", record)
    assert (shown.code, shown.out) == (0, printed)
    assert "by wright perf model.onnx" in shown.err
    document = wright("show", record, "--json").json
    assert document["record_id"].startswith(record)
    assert document["record"]["environment"]["packages"]["onnxruntime"]
    assert document["record"]["parameters"]["iterations"] == 20


def test_records_are_listed_and_exported(wright, measured, tmp_path):
    record, _ = measured
    lines = wright("show", "--list", "--json").json["records"]
    assert [(line["kind"], line["models"], line["targets"]) for line in lines] == [("perf", ["model.onnx"], ["cpu"])]
    (tmp_path / "model.onnx").rename(tmp_path / "renamed.onnx")
    assert record in wright("show", "--list", "--model", "renamed.onnx", "--target", "cpu").out
    assert "no such record" in wright("show", "--list", "--kind", "eval").out
    assert wright("show", "--list", "--since", "2999-01-01", "--json").json["records"] == []
    assert wright("show", record, "--csv", "samples.csv").code == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "samples.csv").read_text())))
    assert len([row for row in rows if row["phase"] == "measured"]) == 20
    assert wright("show", record, "--csv", "samples.csv").code == 2
    assert wright("show", record, "--markdown").out.startswith("| session | phase | run | ns |")
    assert wright("show", "--list", "--csv", "-").out.startswith("record,kind,when")


def test_what_cannot_be_shown_is_refused_in_words(wright, measured, tmp_path):
    assert wright("show").code == 2
    assert wright("show", "0123456789").code == 2
    (tmp_path / "r.json").write_text("{}")
    damaged = wright("show", "r.json")
    assert damaged.code == 3
    assert "wright did not write it" in damaged.err


def test_a_saved_file_is_the_record(wright, tmp_path):
    save(mlp(), tmp_path)
    answer = wright(*PERF, "--save", "r.json", "--json", "-q")
    assert answer.err == ""
    saved = json.loads((tmp_path / "r.json").read_text())
    assert saved["record_id"] == answer.json["record_id"]
    assert wright("show", "r.json", "--json").json == {k: v for k, v in saved.items() if k != "seal"}
    # Read by a process that made no answer of its own, it can be drawn, and saved again it is the same record.
    read = "import modelwright as mw; found = mw.read('r.json').payload; found.save('again.json')"
    drawn = "assert 'p50' in found._repr_html_(); found.save_page('page.html')"
    subprocess.run([sys.executable, "-c", f"{read}; {drawn}"], cwd=tmp_path, check=True)
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "r.json").read_bytes()
    assert "<html" in (tmp_path / "page.html").read_text()


def test_a_store_that_cannot_be_written_costs_the_record_and_not_the_answer(wright, tmp_path):
    save(mlp(), tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "store").write_text("in the way")
    answer = wright(*PERF, "--save", "r.json")
    assert answer.code == 0
    assert "Latency" in answer.out
    assert answer.err.count("not kept as a record") == 1
    (tmp_path / "home" / "store").unlink()
    assert wright("show", "r.json").out == answer.out


def test_builds_and_analyses_are_kept_too(wright, tmp_path):
    save(mlp(), tmp_path)
    build = wright("build", "model.onnx", "-o", "out")
    analysis = wright("analyze", "out")
    for answer, kind in ((build, "build"), (analysis, "analyze")):
        record = answer.err.splitlines()[-1].removeprefix("record ")
        assert wright("show", record).out == answer.out, kind
        assert wright("show", record, "--csv", "-").code == 0
    kinds = {line["kind"] for line in wright("show", "--list", "--model", "out", "--json").json["records"]}
    assert kinds == {"build", "analyze"}


def test_nothing_is_proven_across_times(wright, measured):
    record, _ = measured
    words = ("compare", "model.onnx", "--against", record, "--budget", 3)
    answer = wright(*words, "--json")
    assert answer.code == 0, answer.err
    document = answer.json["against"]
    assert document["proven"] is False
    assert "the machine" in document["same"]
    assert document["then"][0]["sessions"] == 1
    now = document["now"][0]
    assert (now["low_ms"] is None) == (now["sessions"] == 1)
    assert now["p50_ms"] > 0
    gate = wright(*words, "--max-slowdown", "50%")
    assert gate.code == 6
    assert "nothing about speed is proven" in gate.out
