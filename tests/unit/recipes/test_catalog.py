"""The catalogue: entries are read strictly, and lint finds what would make one a lie."""

import json
import shutil
import subprocess
import sys
from datetime import date, timedelta

import pytest

import modelwright as mw
from modelwright.errors import InputError, UsageError
from modelwright.recipes import find_entry, lint_catalog, matching_entry, own_folder, read_entries, write_index

TODAY = date(2026, 11, 17)
HUB = 'source = "acme/bert"\npin = "{pin}"\nlicence = "MIT"\ntask = "fill-mask"\nmodel_type = "bert"\n'
FILE = 'source = "net.onnx"\npin = "sha256:{pin}"\nlicence = "MIT"\norigin = "PyPI net 1.0"\n'


@pytest.fixture
def catalog(tmp_path):
    """One sound entry of each kind."""
    shutil.copytree(own_folder() / "tiny_bert", tmp_path / "tiny_bert")
    written(tmp_path, "acme_bert", HUB.format(pin="a" * 40), "[export]\nsequence_length = 32\n")
    written(tmp_path, "acme_net", FILE.format(pin="b" * 64), 'precision = "w8a8"\n[quantize]\nsamples = 128\n')
    return tmp_path


def written(catalog, name, entry, recipe=None):
    folder = catalog / name
    folder.mkdir(exist_ok=True)
    (folder / "entry.toml").write_text(entry, encoding="utf-8")
    if recipe is not None:
        (folder / "recipe.toml").write_text(recipe, encoding="utf-8")
    return folder


def problems(catalog):
    return [(one.entry, one.rule, one.problem) for one in lint_catalog(catalog, today=TODAY).problems]


def test_the_catalogue_that_is_shipped_is_sound_and_has_a_dozen_tiny_models():
    found = lint_catalog(own_folder(), today=date.today())
    assert found.problems == ()
    assert sum(one.kind == "folder" for one in read_entries(own_folder())) >= 12


def test_sound_entries_of_every_kind_pass(catalog):
    assert problems(catalog) == []
    assert {one.name: one.kind for one in read_entries(catalog)} == {
        "acme_bert": "hub",
        "acme_net": "brought",
        "tiny_bert": "folder",
    }


@pytest.mark.parametrize(
    ("file", "before", "after", "rule", "said"),
    [
        ("entry.toml", "licence", "license", "format", "unknown key 'license'"),
        ("entry.toml", 'source = "."', 'source = "."\nnote = "mine"', "format", "unknown key 'note'"),
        ("entry.toml", "pin", 'level = "L2"\npin', "evidence", "no evidence"),
        ("entry.toml", "Apache-2.0", "do what you like", "name", "no licence"),
        ("entry.toml", "pin", 'targets = ["qnn-nup"]\npin', "name", "qnn-npu"),
        ("entry.toml", "pin", "targets = []\npin", "name", "no target"),
        ("entry.toml", "pin", 'task = "fill-msk"\npin', "name", "fill-mask"),
        ("entry.toml", "pin", 'model_type = "bert"\npin', "inert", "model_type"),
        ("entry.toml", "sha256:62", "sha256:63", "pin", "the pin says"),
        ("entry.toml", "sha256:62", "62", "pin", "no digest"),
        ("config.json", '"vocab_size": 99', '"vocab_size": 98', "pin", "the pin says"),
        ("recipe.toml", "sequence_length", "sequence_lenght", "recipe", "sequence_length"),
        ("recipe.toml", "[export]", 'precision = "fp32"\n[export]', "inert", "precision"),
        ("recipe.toml", "= 16", '= 16\nattention = "eager"', "inert", "export.attention"),
        ("recipe.toml", "[export]", "[quantize]\nsamples = 64\n[export]", "inert", "quantize.samples"),
        ("recipe.toml", "[export]", 'target = "cpu"\n[export]', "recipe", "target is no part"),
        ("recipe.toml", "[export]", 'data = "mine.npz"\n[export]', "recipe", "somebody's machine"),
        ("recipe.toml", "[export]", 'precision = "fp61"\n[export]', "recipe", "fp61"),
        ("recipe.toml", "= 16", "= 16 # as in the paper\u202e", "hidden", "line 2 hides the character \\u202e"),
        ("recipe.toml", "= 16", "= 16 # \U000e0068\U000e0069", "hidden", "\\U000e0068"),
        ("config.json", '"bert"', '"be\u200brt"', "hidden", "\\u200b"),
    ],
)
def test_lint_names_what_is_wrong_with_an_entry(catalog, file, before, after, rule, said):
    path = catalog / "tiny_bert" / file
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")
    found = problems(catalog)
    assert any(name == "tiny_bert" and kind == rule and said in text for name, kind, text in found), found
    assert {name for name, _, _ in found} == {"tiny_bert"}, "one bad entry does not spoil the others"


@pytest.mark.parametrize(
    ("name", "entry", "said"),
    [
        ("acme_bert", HUB.format(pin="main"), "a branch or a tag can move"),
        ("acme_bert", HUB.format(pin="a" * 40).replace('task = "fill-mask"\n', ""), "model_type and task"),
        ("acme_bart", HUB.format(pin="a" * 40), "is called acme_bert"),
        ("acme_net", FILE.format(pin="b" * 64).replace("origin", "# origin"), "without its `origin`"),
        ("net", FILE.format(pin="b" * 64), "ORG_MODEL"),
        ("acme_net-fp16", FILE.format(pin="b" * 64), "called fp16, and builds w8a8"),
    ],
)
def test_names_and_pins_say_which_model_it_is(catalog, name, entry, said):
    written(catalog, name, entry, 'precision = "w8a8"\n[quantize]\nsamples = 128\n')
    assert any(one == name and said in text for one, _, text in problems(catalog))


@pytest.mark.parametrize(
    ("since", "until", "said"),
    [
        (TODAY - timedelta(30), TODAY - timedelta(1), "expired"),
        (TODAY - timedelta(30), TODAY + timedelta(200), "may hold for 180 days"),
        (TODAY + timedelta(1), TODAY + timedelta(2), "still to come"),
        (TODAY - timedelta(30), TODAY, None),
    ],
)
def test_what_is_known_to_be_bad_is_so_for_a_while(catalog, since, until, said):
    bad = f'[known_bad]\nreason = "it hangs"\nsince = {since}\nuntil = {until}\n'
    written(catalog, "acme_bert", HUB.format(pin="a" * 40) + bad)
    found = [text for _, rule, text in problems(catalog) if rule == "known-bad"]
    assert found == [] if said is None else said in found[0]


def test_only_text_that_belongs_to_an_entry_is_in_it(catalog):
    (catalog / "tiny_bert/model.safetensors").write_bytes(b"\0" * 100)
    (catalog / "tiny_bert/vocab.txt").write_text("word\n" * 10_000)
    (catalog / "tiny_bert/tokenizer.json").write_bytes(b"\xff\xfe")
    found = " ".join(text for _, rule, text in problems(catalog) if rule == "files")
    assert "model.safetensors is no part" in found
    assert "vocab.txt has 50000 bytes" in found
    assert "tokenizer.json is not text" in found


def test_an_index_is_written_from_the_entries_and_a_stale_one_is_said(catalog):
    assert write_index(catalog, check=True).state == "stale"
    assert write_index(catalog, check=False).state == "written"
    assert write_index(catalog, check=True).state == "as it was"
    rows = json.loads((catalog / "index.json").read_text())["rows"]
    assert [(row["entry"], row["family"], row["precision"]) for row in rows] == [
        ("acme_bert", "bert", "fp32"),
        ("acme_net", None, "w8a8"),
        ("tiny_bert", "bert", "fp32"),
    ]
    written(catalog, "acme_bert", HUB.format(pin="c" * 40))
    assert write_index(catalog, check=True).state == "stale"


def test_the_index_and_the_page_that_are_shipped_are_as_the_entries_give_them():
    assert write_index(own_folder(), check=True).state == "as it was"


def test_an_entry_is_found_by_its_name_or_by_the_very_content(catalog):
    entry = find_entry("tiny_bert", catalog)
    assert matching_entry(entry.local_source(), catalog).name == "tiny_bert"
    with pytest.raises(UsageError) as wrong:
        find_entry("tiny_brt", catalog)
    assert "tiny_bert" in wrong.value.fix
    config = json.loads((catalog / "tiny_bert/config.json").read_text())
    (catalog / "tiny_bert/config.json").write_text(json.dumps({**config, "vocab_size": 98}))
    with pytest.raises(InputError, match="no entry for tiny_bert"):
        matching_entry(entry.local_source(), catalog)


def test_an_entry_is_built_from_what_it_is_pinned_to_and_nothing_else(catalog):
    config = json.loads((catalog / "tiny_bert/config.json").read_text())
    (catalog / "tiny_bert/config.json").write_text(json.dumps({**config, "vocab_size": 98}))
    with pytest.raises(InputError, match="not what tiny_bert is about"):
        mw.catalog.build("tiny_bert", folder=catalog)
    with pytest.raises(UsageError, match="not in the catalogue"):
        mw.catalog.build("acme_net", folder=catalog)


def test_what_is_known_to_be_bad_is_not_built_unless_somebody_says_so(catalog):
    bad = f'[known_bad]\nreason = "it hangs"\nsince = {TODAY}\nuntil = {TODAY}\n'
    written(catalog, "acme_net", FILE.format(pin="b" * 64) + bad)
    with pytest.raises(InputError, match="known to be bad"):
        mw.catalog.build("acme_net", folder=catalog)
    with pytest.raises(UsageError, match="not in the catalogue"):
        mw.catalog.build("acme_net", folder=catalog, anyway=True)


def test_a_recipe_of_the_catalogue_is_used_by_name_and_by_content(catalog, caplog):
    own, other = own_folder() / "tiny_bert", own_folder() / "tiny_electra"
    keys = {
        word: [stage.key for stage in mw.plan(own, recipe=word, random_weights=True).plans[0].stages]
        for word in ("catalog:tiny_bert", "catalog", str(own / "recipe.toml"), None)
    }
    assert keys["catalog"] == keys["catalog:tiny_bert"] == keys[str(own / "recipe.toml")] != keys[None]
    assert "another model" not in caplog.text
    mw.plan(other, recipe="catalog:tiny_bert", random_weights=True)
    assert "catalog:tiny_bert is about another model" in caplog.text
    with pytest.raises(UsageError, match="no entry 'tiny_brt'"):
        mw.plan(own, recipe="catalog:tiny_brt", random_weights=True)


def test_a_build_that_looks_a_recipe_up_imports_nothing_that_judges_catalogues() -> None:
    """Half a hundred modules, in every command that builds."""
    code = (
        "import sys, modelwright.api.build; "
        "found = {'modelwright.support', 'modelwright.recipes._lint', 'numpy', 'onnx'} & set(sys.modules); "
        "sys.exit(f'imported {found}' if found else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
