"""A family has no business outside the child of the export: what reaches out of it is told by line."""

from pathlib import Path

import pytest

from modelwright.stages.export import families
from modelwright.support._scan import foreign_to_a_family

HEAD = "from __future__ import annotations\nimport torch\nfrom modelwright.stages.export import ModelFamily\n"


@pytest.mark.parametrize("path", sorted(Path(families.__file__).parent.glob("*.py")), ids=lambda path: path.stem)
def test_our_own_families_reach_for_nothing(path):
    assert foreign_to_a_family(path) == ()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import os", "imports os"),
        ("import modelwright.support", "imports modelwright.support"),
        ("from modelwright.judge import as_allowance", "imports modelwright.judge"),
        ("from pathlib import Path", "imports pathlib"),
        ("import sys, torch", "imports sys"),
        ("from . import mine", "imports ."),
        ("exec('import os')", "names exec"),
        ("mine = __import__('os')", "names __import__"),
        ("setattr(torch, 'softmax', None)", "names setattr"),
        ("torch.softmax = None", "changes torch.softmax"),
        ("torch.nn.functional.softmax = lambda x: x", "changes torch.nn.functional.softmax"),
        ("f = torch.nn.functional\nf.softmax = None", "changes f.softmax"),
        ("def _p(loaded):\n    type(loaded.model).forward = None", "names type"),
        ("def _p(loaded):\n    loaded.model.__class__.forward = None", "reaches for .__class__"),
        ("def _p(loaded):\n    loaded.model.register_forward_hook(print)", "reaches for .register_forward_hook"),
        ("ModelFamily.parts = None", "changes ModelFamily.parts"),
        ("del torch.softmax", "changes torch.softmax"),
        ("x = torch.os.environ", "reaches for .environ"),
        ("x = torch.hub.load('a', 'b')", "reaches for .hub"),
        ("from modelwright._lazy import lazy\nos = lazy('os')", "imports os"),
        ("from modelwright._lazy import lazy\nos = lazy('o' + 's')", "imports what it computes"),
        ("open('x', 'w')", "names open"),
        ("def (", "cannot be read"),
    ],
)
def test_what_reaches_out_is_told_by_line(tmp_path, code, said):
    path = tmp_path / "mine.py"
    path.write_text(HEAD + code + "\n")
    assert any(said in one for one in foreign_to_a_family(path))


def test_patching_an_instance_for_tracing_is_what_a_family_is_for(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        HEAD + "def _parts(loaded, params):\n    loaded.model.config.use_cache = False\n    return (), ()\n"
    )
    assert foreign_to_a_family(path) == ()
