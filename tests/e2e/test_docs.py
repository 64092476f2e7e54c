"""The docs tell the truth: the command page is what the code says, and every example runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from support.models import mlp, save

ROOT = Path(__file__).parents[2]
SKILLS = sorted((ROOT / "skills").glob("*/SKILL.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *SKILLS]


def _examples():
    """Every block of shell lines, as one story: later lines use what earlier ones made."""
    for page in PAGES:
        for block in re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            lines = [re.split(r"\s+#", line)[0] for line in block.splitlines() if line.startswith("wright ")]
            if lines:
                yield pytest.param(lines, id=f"{page.relative_to(ROOT)}: {lines[0]}")


def test_the_command_page_is_generated_from_the_code():
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs/generate_commands.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("lines", list(_examples()))
def test_examples_in_the_docs_run(wright, tmp_path, lines):
    save(mlp(), tmp_path)
    for line in lines:
        answer = wright(*shlex.split(line)[1:])
        assert answer.code == 0, f"{line}: {answer.err}"


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def _cells(page):
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("name", ["README.md", "docs/python.md", "docs/matrix.md", "docs/adding-a-model.md"])
def test_the_python_of_a_page_runs_from_its_first_cell_to_its_last(tmp_path, name):
    save(mlp(), tmp_path)
    np.savez(tmp_path / "samples.npz", x=np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32))
    story = "\n".join(_cells(ROOT / name))
    done = subprocess.run([sys.executable, "-c", story], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", SKILLS, ids=lambda page: page.parent.name)
def test_a_skill_says_what_it_is_for_and_when_not_to_use_it(page):
    text = page.read_text(encoding="utf-8")
    head = re.match(r"---\nname: (\S+)\ndescription: (.+)\n---\n", text)
    assert head is not None
    assert head[1] == page.parent.name
    assert 40 < len(head[2]) <= 1024
    assert "Use " in head[2]
    assert text.count("\n- ", text.index("## When not to use it")) >= 2
    for linked in re.findall(r"docs/\S+?\.md", text):
        assert (ROOT / linked).is_file(), linked
