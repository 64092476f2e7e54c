"""What `passed` promises of a build for an NPU, held against every build that the tests make."""

import json


def computed_on_its_target(built):
    """A build of the library: where it passed and the target was to be asked, the target opened and computed it."""
    if built.passed is True and built.recipe.check is not None:
        for component in built.components:
            _require(f"{built.source} for {built.target}", vars(component.check))


def delivered_as_computed(folder):
    """The same of every build folder below this one; what is none of ours or was damaged on purpose says nothing."""
    for path in folder.rglob("wright.json"):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            asked = found["passed"] is True and found["recipe"]["check"] is not None
            stages = [component["stages"] for component in found["components"]]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        for each in stages if asked else ():
            (check,) = [stage["outcome"] for stage in each if stage["stage"] == "check"]
            _require(str(path), check)


def _require(whose, check):
    assert check["passed"] is True, f"{whose} passed, and its target did not"
    assert check["opened"], f"{whose} passed unopened"
    assert check["samples"] > 0, f"{whose} passed, and its target computed nothing"
    assert check["on_target"] > 0, f"{whose} passed, and its target has no node of it"
