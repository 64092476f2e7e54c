"""A review believes nothing: the honest are approved, and whatever a forger does is found, row and reason."""

import hashlib
import json
import secrets
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import onnx
import pytest

import modelwright as mw
from modelwright.api import _reviewing
from modelwright.api._afresh import AfreshJob, clean_environment, climb_afresh
from modelwright.errors import ExecutionError, InputError
from modelwright.support import ClaimedFile, _planted, _statement, judge_level, read_claim, write_claim
from support.contributions import RECIPE, SEEDS, contributed, outlier_model, rows_file
from support.forge import copied, forged, lines, resealed, rows_of

NONCE = "a" * 32


@pytest.fixture(scope="module", autouse=True)
def a_clean_commit():
    """These tests are about contributions, not about whether whoever runs them has committed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_statement, "_git", lambda *words: "f" * 40 if words[0] == "rev-parse" else "")
        patch.setattr(secrets, "token_hex", lambda _: NONCE)
        _statement.this_tool.cache_clear()
        yield
        _statement.this_tool.cache_clear()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("contribution")


@pytest.fixture(scope="module")
def honest(place):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MODELWRIGHT_HOME", str(place / "home"))
        patch.setenv("MODELWRIGHT_LOCKS", str(place))
        yield contributed(place)


@pytest.fixture(scope="module")
def climbed(honest, place):
    """What a climb of the same sources with the same nonce gives: made once, for every forgery of them."""
    out = place / "climbed"
    climb_afresh(
        AfreshJob(str(honest), str(out), NONCE, str(place / "net.onnx"), str(place / "rows.npz"), SEEDS), lambda _: None
    )
    return out


@pytest.fixture
def review(place, climbed):
    def known(job, tell):
        shutil.copytree(climbed, job.out)

    def call(folder, **said):
        asked = {"model": place / "net.onnx", "data": place / "rows.npz", "seeds": SEEDS, "climb": known, **said}
        return mw.support.review(folder, **asked)

    return call


def caught(found, verdict, rule, row, said):
    """The verdict, and the row and the reason for it."""
    assert found.verdict == verdict, found.reasons
    told = [(one.rule, one.row or "", one.reason) for one in found.findings]
    told += [("row", one.name, f"{one.word}, {one.reason}") for one in found.rows]
    assert any(rule == a and row in b and said in c for a, b, c in told), told


def test_an_honest_contribution_is_approved(review, honest):
    found = review(honest)
    assert (found.verdict, found.reasons, found.findings) == ("approve", (), ())
    assert [(row.name, row.word) for row in found.rows] == [
        ("L0 cpu w8a8", "reproduced"),
        ("L1 cpu w8a8", "reproduced"),
        ("L2 cpu w8a8", "reproduced"),
    ]
    assert found.gate == ("delta", "delta")
    assert (found.mode, found.nonce) == ("rerun", NONCE)


def test_a_review_draws_seeds_and_rows_of_its_own(honest, climbed):
    claim, own = read_claim(honest), read_claim(climbed)
    assert own.digest != claim.digest
    assert not set(own.seeds("data", 3)) & set(claim.seeds("data", 3))
    said, found = (rows_of(lines(folder), "L1")[0]["predicate"]["measured"] for folder in (honest, climbed))
    assert said["fed"] != found["fed"], "other rows are fed"
    same = rows_of(lines(climbed / "same"), "L1")[0]["predicate"]["measured"]
    assert said["fed"] == same["fed"], "and once those of the claim"


def test_a_review_starts_from_a_fresh_clone_and_an_empty_store(climbed, tmp_path, monkeypatch):
    """What lies in the reviewer's own store, shell and folder reaches nothing."""
    gates = [one["predicate"]["measured"]["hits"] for one in rows_of(lines(climbed), step="gate")]
    assert gates == [0] * len(gates) != []
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.setenv("WRIGHT_REVIEW", "1")
    found = clean_environment(tmp_path)
    assert set(found) <= {
        "PATH",
        "LANG",
        "LC_ALL",
        "TMPDIR",
        "MODELWRIGHT_LOCKS",
        "MODELWRIGHT_HOME",
        "HOME",
        "PYTHONUTF8",
    }
    assert found["MODELWRIGHT_HOME"] == found["HOME"] == str(tmp_path / "home")


def test_reading_the_evidence_alone_never_approves(review, honest):
    found = review(honest, evidence_only=True)
    assert (found.verdict, found.mode) == ("changes", "evidence only")
    assert "only the evidence was read" in found.reasons[0]
    assert {row.word for row in found.rows} == {"unverified"}


@pytest.mark.parametrize("level", ["L0", "L1", "L2", "L3", "L4", "L5"])
def test_a_judge_that_lets_a_planted_defect_through_reviews_nothing(level):
    """Each level made blind alone: what was planted there survives, and that stops everything."""

    def blind(asked, measured):
        judged = judge_level(asked, measured)
        return judged._replace(word="pass") if asked == level else judged

    with pytest.raises(ExecutionError, match="blind to"):
        _planted.hunt(blind)
    with pytest.raises(ExecutionError, match="blind to"):
        _planted.hunt(lambda asked, measured: judge_level(asked, measured)._replace(word="fail"))


def test_nothing_is_reviewed_by_a_judge_that_is_blind(review, honest, monkeypatch):
    def blind():
        return _planted.hunt(lambda level, measured: judge_level(level, measured)._replace(word="pass"))

    monkeypatch.setattr(_reviewing, "hunt", blind)
    with pytest.raises(ExecutionError, match="nothing is reviewed"):
        review(honest)


# Forgers. Each changes the statements; with all ids hashed again nothing of the file tells.


def l2(documents):
    (one,) = [one for one in rows_of(documents, "L2") if one["predicate"]["asked"]["arm"] == "contribution"]
    return one["predicate"]


def consistent(predicate):
    """Word and reasons as the numbers now give them: what a careful forger writes."""
    judged = judge_level(predicate["asked"]["level"], predicate["measured"])
    predicate["verdict"]["word"], predicate["reasons"] = judged.word, list(judged.reasons)


def edited_number(documents):
    l2(documents)["measured"]["outputs"][0]["parity"]["cosine"] = 1.0


def edited_number_and_words(documents):
    edited_number(documents)
    consistent(l2(documents))


def edited_number_of_another_machine(documents):
    """Nobody can say that these bytes come of that CPU; so large a difference does not."""
    edited_number_and_words(documents)
    for one in documents:
        one["predicate"]["environment"]["host"]["cpu"]["model"] = "Abacus 9000"


def word_alone(documents):
    rows_of(documents, "L2")[0]["predicate"]["verdict"]["word"] = "fail"


def hand_written(documents):
    """A level that was never measured."""
    made = json.loads(json.dumps(rows_of(documents, "L2")[0]))
    made["predicate"]["asked"] |= {"level": "L3"}
    made["predicate"]["measured"] = {"verdict": "pass", "metric": "accuracy", "candidate": 0.99, "reference": 0.99}
    made["predicate"]["verdict"] = {"word": "pass", "by": "L3-1"}
    documents.insert(documents.index(rows_of(documents, "L2")[0]) + 1, made)


def without_measuring(documents):
    l2(documents)["measured"] = {"outputs": [], "samples": 24}


def another_checkpoint(documents):
    for one in documents:
        for subject in one["subject"]:
            if subject["name"].startswith("source:"):
                subject["digest"]["sha256"] = "0" * 64


def lucky_seed(documents):
    rows_of(documents, "L1")[0]["predicate"]["seeds"]["inputs"] = [1, 2, 3]


def lucky_seed_everywhere(documents):
    lucky_seed(documents)
    rows_of(documents, "L1")[0]["predicate"]["measured"]["seeds"] = [1, 2, 3]


def lucky_subset(documents):
    """The seed that failed is left out of the gate."""
    documents.remove(next(one for one in rows_of(documents, step="gate") if one["predicate"]["asked"]["arm"] == "with"))


def other_tool(documents):
    for one in documents:
        one["predicate"]["tool"] |= {"digest": "1" * 64, "commit": "2" * 40}


def other_libraries_for_one(documents):
    rows_of(documents, "L1")[0]["predicate"]["environment"]["packages"]["onnxruntime"] = "1.0.0"


def dirty_tool(documents):
    for one in documents:
        one["predicate"]["tool"]["dirty"] = True


def pass_above_fail(documents):
    predicate = rows_of(documents, "L1")[0]["predicate"]
    predicate["measured"]["not_finite"] = ["y"]
    consistent(predicate)


def false_blocked(documents):
    predicate = rows_of(documents, "L1")[0]["predicate"]
    predicate["measured"]["hindrance"] = {"by": "host", "said": "there is no such EP here", "tried": []}
    consistent(predicate)


def false_blocked_by_data(documents):
    predicate = l2(documents)
    predicate["measured"]["hindrance"] = {"by": "data", "said": "the data is gone", "tried": []}
    consistent(predicate)


def another_artifact(documents):
    """What was measured is not what was built."""
    for subject in rows_of(documents, "L2")[0]["subject"]:
        if subject["name"].startswith("file:"):
            subject["digest"]["sha256"] = "3" * 64


def artifact_of_another_recipe(documents):
    for one in documents:
        for subject in one["subject"]:
            if subject["name"].startswith("file:"):
                subject["digest"]["sha256"] = "3" * 64


def another_ep(documents):
    predicate = rows_of(documents, "L1")[0]["predicate"]
    predicate["measured"]["bound"] = "QNNExecutionProvider"


def another_recipe(documents):
    for one in documents:
        for subject in one["subject"]:
            if subject["name"].startswith("recipe:"):
                subject["digest"]["sha256"] = "4" * 64


def other_data(documents):
    for one in documents:
        for subject in one["subject"]:
            if subject["name"].startswith("data:"):
                subject["digest"]["sha256"] = "5" * 64


def nothing_left(documents):
    return []


FORGERIES = [
    (edited_number, "reject", "verdict", "L2", "reasons are not those"),
    (edited_number_and_words, "reject", "number", "L2", "cosine is said to be 1.0"),
    (edited_number_of_another_machine, "changes", "number", "L2", "with the same seeds on another machine"),
    (word_alone, "reject", "verdict", "L2", "it says fail, and its numbers say pass"),
    (hand_written, "reject", "verdict", "L3", "reasons are not those"),
    (without_measuring, "reject", "verdict", "L2", "its numbers say inconclusive"),
    (another_checkpoint, "reject", "source", "L0", "about another source"),
    (lucky_seed, "reject", "seed", "L1", "does not follow from the claim"),
    (lucky_seed_everywhere, "reject", "seed", "L1", "does not follow from the claim"),
    (lucky_subset, "reject", "gate", "gate", "1 of its 2 seeds"),
    (other_tool, "changes", "tool", "L0", "another modelwright made it (commit 222222222222"),
    (other_tool, "changes", "row", "L2", "stale, another modelwright made it"),
    (other_libraries_for_one, "changes", "tool", "", "2 sets of libraries"),
    (dirty_tool, "changes", "tool", "L0", "a tool that is no commit"),
    (pass_above_fail, "reject", "order", "L2", "above L1, which failed"),
    (false_blocked, "reject", "blocked", "L1", "nothing was tried"),
    (false_blocked_by_data, "reject", "row", "L2", "contradicted, pass here"),
    (another_artifact, "reject", "artifact", "L2", "is not the one that was built"),
    (artifact_of_another_recipe, "reject", "artifact", "build", "another file when it is built here"),
    (another_ep, "reject", "verdict", "L1", "its numbers say fail"),
    (another_recipe, "reject", "recipe", "L0", "another recipe"),
    (other_data, "reject", "data", "L0", "other data"),
    (nothing_left, "changes", "evidence", "", "there is no evidence"),
]


@pytest.mark.parametrize(
    ("change", "verdict", "rule", "row", "said"), FORGERIES, ids=lambda one: getattr(one, "__name__", "")
)
def test_a_forger_who_hashes_everything_again_is_caught(review, honest, tmp_path, change, verdict, rule, row, said):
    folder = forged(copied(honest, tmp_path), change)
    (folder / "report.md").unlink()
    caught(review(folder), verdict, rule, row, said)


@pytest.mark.parametrize("change", [one[0] for one in FORGERIES[:-1]], ids=lambda one: one.__name__)
def test_a_forger_who_does_not_is_caught_by_the_ids(review, honest, tmp_path, change):
    found = review(forged(copied(honest, tmp_path), change, rehash=False))
    caught(found, "reject", "evidence", "", "")


def test_a_digit_of_the_report_that_was_edited_is_found_by_its_line(review, honest, tmp_path):
    folder = copied(honest, tmp_path)
    text = (folder / "report.md").read_text()
    number = 1 + text[: text.index("cosine 0.")].count("\n")
    resealed(folder / "report.md", "cosine 0.9", "cosine 0.8")
    caught(review(folder), "reject", "report", "", f"from line {number} on")


def test_a_claim_that_was_edited_is_refused_also_under_a_new_seal(review, honest, tmp_path):
    folder = copied(honest, tmp_path / "a")
    path = folder / "claim.toml"
    path.write_text(path.read_text().replace('"L2"', '"L1"'))
    caught(review(folder), "reject", "claim", "", f"{path} was changed since it was frozen")
    folder = copied(honest, tmp_path / "b")
    resealed(folder / "claim.toml", 'ceiling = "L2"', 'ceiling = "L1"')
    caught(review(folder), "reject", "claim", "L0", "made for another claim")


def reclaimed(folder, **changes):
    """Everything made again around another claim: digests, seeds, ids."""
    claim = replace(read_claim(folder), **changes)
    before = read_claim(folder)
    (folder / "claim.toml").unlink()
    write_claim(claim, folder)
    drawn = {
        before.seed(use, number): claim.seed(use, number)
        for use in ("weights", "inputs", "data")
        for number in range(9)
    }

    def swap(value):
        if isinstance(value, dict):
            return {key: swap(item) for key, item in value.items()}
        if isinstance(value, list):
            return [swap(item) for item in value]
        return drawn.get(value, value) if isinstance(value, int) and not isinstance(value, bool) else value

    def change(documents):
        found = []
        for one in documents:
            one = swap(one)
            one["predicate"]["claim"] = claim.digest
            for subject in one["subject"]:
                if subject["name"].startswith("source:"):
                    subject["digest"]["sha256"] = claim.source.digest.removeprefix("sha256:")
            found.append(one)
        return found

    forged(folder, change)
    (folder / "report.md").unlink()
    return folder


def test_evidence_of_another_checkpoint_does_not_hold_for_this_one(honest, place, tmp_path):
    """Every digest and seed is made to fit; what is built from the other model is not what was measured."""
    other = outlier_model(tmp_path / "other.onnx", scale=1.0)
    from modelwright.models import resolve

    source = replace(read_claim(honest).source, digest=resolve(str(other)).identity())
    folder = reclaimed(copied(honest, tmp_path), source=source)
    found = mw.support.review(folder, model=other, data=place / "rows.npz", seeds=SEEDS)
    assert found.verdict == "reject"
    assert any(one.rule in ("artifact", "number", "gate") for one in found.findings), found.findings


def test_a_lucky_claim_does_not_help_where_the_reviewer_draws(review, honest, tmp_path):
    """A claim that was made again until its seeds fit has a nonce, or is another claim: both are seen."""
    folder = reclaimed(copied(honest, tmp_path), nonce="lucky")
    caught(review(folder), "reject", "seed", "", "only a reviewer draws")


@pytest.mark.parametrize("change", [None, "data", "model"])
def test_what_is_not_the_claimed_content_is_not_reviewed(honest, place, tmp_path, change):
    model = outlier_model(tmp_path / "net.onnx", 5.0) if change == "model" else place / "net.onnx"
    data = rows_file(tmp_path / "rows.npz", 1) if change == "data" else place / "rows.npz"
    if change is None:
        model = tmp_path / "gone.onnx"
    found = mw.support.review(honest, model=model, data=data, seeds=SEEDS)
    assert found.verdict == "changes"
    caught(found, "changes", "rerun", "", "it cannot be built again here")


def test_a_recipe_that_is_what_the_tool_does_anyway_contributes_nothing(place, tmp_path, honest):
    """Planted: the same as by itself (no-delta), and a field that changes nothing (inert)."""
    for name, recipe, word in (
        ("same", 'precision = "fp32"\n', "no-delta"),
        ("inert", "[validation]\nsamples = 16\n", "inert"),
    ):
        folder = contributed(tmp_path / name, recipe, precisions=["fp32"], ceiling="L0")
        found = mw.support.review(folder, evidence_only=True)
        assert found.verdict == "reject"
        assert found.gate[0] == word
        caught(found, "reject", "gate", "gate", "delta is claimed, and the gate says")


def test_graphs_that_were_forged_to_differ_make_no_contribution(tmp_path, honest):
    """Every id says that the field changes the graph: then it owes a gain, and nothing shows one."""
    folder = contributed(tmp_path / "inert", "[validation]\nsamples = 16\n", precisions=["fp32"], ceiling="L0")

    def differ(documents):
        for one in rows_of(documents, step="gate"):
            if one["predicate"]["asked"]["arm"] == "with":
                one["predicate"]["measured"] |= {name: {"model": "6" * 64} for name in ("contents", "graphs")}
                for subject in one["subject"]:
                    if subject["name"].startswith("graph:"):
                        subject["digest"]["sha256"] = "6" * 64

    found = mw.support.review(forged(folder, differ), seeds=SEEDS)
    caught(found, "reject", "gate", "gate", "owes a gain that is shown")


def test_a_model_with_nan_inside_that_is_said_to_run_is_contradicted(tmp_path):
    folder = tmp_path / "acme_nan"
    folder.mkdir()
    net = onnx.load(outlier_model(tmp_path / "net.onnx"))
    weights = onnx.numpy_helper.to_array(net.graph.initializer[1]).copy()
    weights[3, 3] = np.nan
    net.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(weights, "v"))
    onnx.save(net, tmp_path / "net.onnx")
    mw.support.run(tmp_path / "net.onnx", folder, seeds=SEEDS, ceiling="L1")

    def sound(documents):
        for one in rows_of(documents, "L1"):
            one["predicate"]["measured"] |= {"not_finite": [], "failure": None}
            consistent(one["predicate"])

    found = mw.support.review(forged(folder, sound), model=tmp_path / "net.onnx", seeds=SEEDS)
    caught(found, "reject", "row", "L1", "contradicted, fail here")


def git(place, *words):
    done = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(place), *words]
    return subprocess.run(done, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(honest, tmp_path):
    root = tmp_path / "repository"
    (root / "src/modelwright").mkdir(parents=True)
    (root / "src/modelwright/tool.py").write_text("x = 1\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "the tool")
    git(root, "switch", "-qc", "mine")
    copied(honest, root / "recipes")
    shutil.rmtree(root / "recipes/acme_net/builds")
    return root


def committed(root):
    git(root, "add", "-A")
    git(root, "commit", "-qm", "mine")
    return root / "recipes/acme_net"


def test_a_commit_is_reviewed_from_a_clone(review, repository):
    folder = committed(repository)
    (folder / "recipe.toml").write_text("what lies around in the tree is nothing to a review")
    found = review(folder, ref="mine")
    assert (found.verdict, found.commit) == ("approve", git(repository, "rev-parse", "mine"))


def test_a_recipe_that_touches_the_source_is_rejected(review, repository):
    (repository / "src/modelwright/tool.py").write_text("x = 2\n")
    caught(review(committed(repository), ref="mine"), "reject", "scope", "", "src/modelwright/tool.py is touched")


def test_code_beside_a_recipe_is_rejected(review, honest, tmp_path):
    folder = copied(honest, tmp_path)
    (folder / "conftest.py").write_text("import os\n")
    caught(review(folder), "reject", "scope", "", "conftest.py is code that the claim does not name")


def test_a_recipe_that_is_not_the_claimed_one_is_rejected(review, honest, tmp_path):
    folder = copied(honest, tmp_path)
    (folder / "recipe.toml").write_text(RECIPE.replace("second", "first"))
    caught(review(folder), "reject", "recipe", "", "not the file that the claim was made with")


def test_a_climb_that_changes_the_tool_is_rejected(review, honest, climbed, monkeypatch):
    tools = iter(["a", "b"])

    class Tool:
        digest = "a"

        @staticmethod
        def __wrapped__():
            return Tool(next(tools))

        def __init__(self, digest):
            self.digest = digest

    monkeypatch.setattr(
        _reviewing,
        "this_tool",
        type(
            "T", (), {"__wrapped__": staticmethod(Tool.__wrapped__), "__call__": lambda self: _statement.this_tool()}
        )(),
    )
    caught(review(honest), "reject", "tool", "", "changed while it was built")


def test_torn_and_damaged_evidence_is_no_crash(review, honest, tmp_path):
    folder = copied(honest, tmp_path)
    data = (folder / "evidence.jsonl").read_bytes()
    for damaged in (data[:-40], b"\xff" * 100 + b"\n" + data, data + b"{}\n", b"\n" * 9):
        (folder / "evidence.jsonl").write_bytes(damaged)
        assert review(folder, evidence_only=True).verdict in ("reject", "changes")
    with (folder / "evidence.jsonl").open("ab") as file:
        file.truncate(1 << 30)
    with pytest.raises(InputError, match="too large to be evidence") as found:
        review(folder)
    assert found.value.problem.startswith(str(folder)), "the copy is nothing to whoever asked"


def test_the_command_answers_with_the_exit_code_and_the_row(wright, honest, place, tmp_path):
    folder = forged(copied(honest, tmp_path), word_alone)
    (folder / "report.md").unlink()
    found = wright("support", "review", folder, "--evidence-only")
    assert found.code == 1
    assert "it says fail, and its numbers say pass" in found.out
    said = wright("support", "review", folder, "--evidence-only", "--json")
    assert (said.code, said.json["verdict"]) == (1, "reject")
    assert wright("support", "report", honest).out.startswith("# acme_net: pass, L2 of L2")
    with pytest.raises(InputError, match="not a folder"):
        mw.support.review(tmp_path / "nowhere")


SCORE = "def right(outputs, row):\n    return 1.0\n"


@pytest.fixture
def scored(honest, tmp_path):
    """As if its rows were scored by a script: any answer can come of that."""

    def made(code):
        folder = copied(honest, tmp_path)
        (folder / "score.py").write_text(code)
        digest = hashlib.sha256(code.encode()).hexdigest()
        return reclaimed(folder, metric="score.py:right", script=ClaimedFile("score.py", digest))

    return made


def test_a_metric_that_is_a_script_is_approved_by_nobody_who_has_not_read_it(review, scored, tmp_path):
    folder, other = scored(SCORE), tmp_path / "other.py"
    caught(review(folder, evidence_only=True), "changes", "metric", "", "read the claim's file, and name it")
    found = review(folder, metric=folder / "score.py", evidence_only=True)
    assert not [one for one in found.findings if one.rule == "metric"]
    other.write_text("def right(outputs, row):\n    return 0.5\n")
    found = review(folder, metric=other, evidence_only=True)
    caught(found, "changes", "metric", "", "is not the claim's score.py")
    (folder / "score.py").write_text(SCORE + "\n")
    caught(review(folder), "reject", "metric", "", "not the file that the claim was made with")


def test_a_metric_that_reaches_out_is_rejected_by_its_line_and_never_run(review, scored):
    def never(job, tell):
        raise AssertionError("it was run")

    folder = scored("import os\n" + SCORE)
    caught(review(folder, metric=folder / "score.py", climb=never), "reject", "metric", "", "score.py:1 imports os")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import torch\ntorch.nn.functional.softmax = None\n", "mine.py:2 changes torch.nn.functional.softmax"),
        ("import modelwright.support\n", "mine.py:1 imports modelwright.support"),
        ("import os\nIN_REVIEW = 'own' in os.getcwd()\n", "mine.py:1 imports os"),
    ],
    ids=["patches the reference", "patches modelwright", "sniffs for a review"],
)
def test_family_code_that_reaches_out_is_rejected_by_its_line_and_never_run(review, honest, tmp_path, code, said):
    folder = copied(honest, tmp_path)
    (folder / "mine.py").write_text(code)
    digest = hashlib.sha256(code.encode()).hexdigest()
    reclaimed(folder, effort="family", outcome="needed", family=ClaimedFile("mine.py", digest))

    def never(job, tell):
        raise AssertionError("it was run")

    caught(review(folder, climb=never), "reject", "family", "", said)
