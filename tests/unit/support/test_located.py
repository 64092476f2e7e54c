"""Where the parts of a contribution lie for a reviewer."""

import hashlib
import shutil

from modelwright.stages.export import family_place
from modelwright.support import Claim, ClaimedCase, ClaimedFile, ClaimedSource, contribution_in


def claimed(path):
    family = ClaimedFile(path.name, hashlib.sha256(path.read_bytes()).hexdigest())
    source = ClaimedSource(name="tiny", digest="ab" * 32)
    cases = (ClaimedCase("cpu", "fp32"),)
    return Claim(effort="family", ceiling="L0", outcome="needed", source=source, cases=cases, family=family)


def test_the_copy_of_a_family_of_this_tool_is_what_the_tool_is_asked_to_do_without(tmp_path):
    """Else a reviewer would build the same twice, and call a family inert that is needed."""
    copy = shutil.copyfile(family_place("vilt"), tmp_path / "vilt.py")
    found = contribution_in(claimed(copy), tmp_path)
    assert (found.family, found.inside) == (str(copy), True)
    assert found.layer("base")["export"]["family"] != str(copy)
    assert found.layer("with") == {}
    copy.write_text(copy.read_text() + "# another one\n")
    assert contribution_in(claimed(copy), tmp_path).inside is False
