"""`wright find`: numbers are those of the evidence, empty is an answer, and the Hub is asked or said not to be."""

import contextlib
import json
import shlex
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from modelwright import recipes
from support.models import mlp, save

ENTRY = recipes.own_folder() / "modelwright_fashion-cnn"
DEMO = Path(__file__).parents[2] / "demo"


@contextlib.contextmanager
def a_hub(rows):
    asked = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(rows)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def _statement(level):
    lines = (ENTRY / "evidence.jsonl").read_text().splitlines()
    return next(one for one in map(json.loads, lines) if one["predicate"]["asked"]["level"] == level)


def test_every_number_is_that_of_its_evidence(wright):
    answer = wright("find", "--task", "image-classification", "--target", "cpu", "--no-hub", "--json")
    assert answer.code == 0
    first = answer.json["rows"][0]
    shown, placed = _statement("L3"), _statement("L1")
    assert (first["model"], first["level"], first["licence"]) == ("modelwright_fashion-cnn", "L3", "Apache-2.0")
    assert first["accuracy"]["value"] == shown["predicate"]["measured"]["candidate"]
    assert first["accuracy"]["record"] == shown["predicate"]["records"][0]
    assert (first["placed"]["value"], first["placed"]["record"]) == (44, placed["id"])
    assert first["latency"]["value"] is None, "nothing is shown of its speed"
    assert first["latency"]["reason"]
    levels = [row["level"] for row in answer.json["rows"]]
    assert levels == sorted(levels, key=lambda level: level or "", reverse=True)


def test_the_command_builds_it_and_then_the_size_is_known(wright, tmp_path):
    words = ("find", "--task", "image-classification", "--no-hub", "--min-level", "L3", "--json")
    small = wright(*words, "--max-size", "1MB")
    assert small.code == 1
    assert any("size is not known" in one["why"] for one in small.json["left_out"])
    (row,) = wright(*words).json["rows"]
    (tmp_path / "fashion_cnn.onnx").write_bytes((DEMO / "fashion_cnn.onnx").read_bytes())
    built = wright(*shlex.split(row["command"])[1:], "--data", DEMO / "fashion_test.npz", "--scale", "1/255")
    assert built.code in (0, 6), built.err
    (row,) = wright(*words, "--max-size", "1MB").json["rows"]
    folder = tmp_path / "modelwright_fashion-cnn" / "cpu"
    assert row["size"]["value"] == sum(path.stat().st_size for path in folder.glob("model.onnx*"))
    assert wright(*words, "--max-size", "1KB").code == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--task", "depth-estimation"), 1),
        (("--task", "image-classification", "--min-level", "L5"), 1),
        (("--task", "image-classification", "--min-level", "best"), 2),
        (("--task", "no-such-task"), 2),
        (("--task", "image-classification", "--target", "no-such"), 2),
    ],
)
def test_empty_is_an_answer_and_nonsense_is_none(wright, words, code):
    answer = wright("find", "--no-hub", "--json", *words)
    assert answer.code == code, answer.err
    if code == 1:
        assert answer.json["rows"] == []


def test_what_is_known_to_be_bad_is_left_out_with_the_reason(wright, tmp_path):
    entry = tmp_path / "catalogue" / "acme_net"
    entry.mkdir(parents=True)
    save(mlp(), entry, "net.onnx")
    head = 'source = "net.onnx"\npin = "sha256:' + "0" * 64 + '"\nlicence = "MIT"\ntask = "text-classification"\n'
    bad = '[known_bad]\nreason = "it hangs"\nsince = 2026-11-01\nuntil = 2027-01-01\n'
    (entry / "entry.toml").write_text(head + bad)
    answer = wright("find", "--task", "text-classification", "--recipes", tmp_path / "catalogue", "--no-hub", "--json")
    assert answer.code == 1
    assert "it hangs" in answer.json["left_out"][0]["why"]


def test_the_hub_is_asked_and_shows_nothing_of_how_a_model_runs(wright):
    rows = [{"id": "acme/net", "tags": ["license:mit"]}, {"id": "acme/other", "tags": []}]
    words = ("find", "--task", "depth-estimation", "--target", "qnn-npu", "--json")
    with a_hub(json.dumps(rows).encode()) as (address, asked):
        answer = wright(*words, env={"HF_ENDPOINT": address})
        again = wright(*words, "--min-level", "L0", env={"HF_ENDPOINT": address})
    assert "pipeline_tag=depth-estimation" in asked[0]
    found = answer.json["rows"]
    assert [(row["model"], row["licence"], row["level"], row["accuracy"]["value"]) for row in found] == [
        ("acme/net", "mit", None, None),
        ("acme/other", None, None, None),
    ]
    assert found[0]["command"] == "wright build acme/net --target qnn-npu -o acme_net"
    assert again.code == 1
    assert len(again.json["left_out"]) == 2


@pytest.mark.parametrize("said", [b"<html>", b"[1]", b'{"a": 1}'])
def test_a_hub_that_talks_nonsense_costs_nothing_but_itself(wright, said):
    with a_hub(said) as (address, _):
        answer = wright("find", "--task", "image-classification", "--json", env={"HF_ENDPOINT": address})
    assert answer.code == 0
    assert "could not be asked" in answer.json["hub"]
