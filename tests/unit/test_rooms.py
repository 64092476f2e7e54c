"""A room is used through its front door."""

import ast
from collections import defaultdict
from pathlib import Path

import modelwright

ROOT = Path(modelwright.__file__).parent
# Not rooms: single modules that every room may use.
COMMON = {path.stem for path in ROOT.glob("_*.py")}


def room_of(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Every stage is a room of its own."""
    return parts[:2] if parts[0] == "stages" else parts[:1]


def test_no_room_imports_a_private_module_of_another():
    wrong = []
    for path in sorted(ROOT.rglob("*.py")):
        here = room_of(path.relative_to(ROOT).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("modelwright."):
                continue
            parts = tuple(str(node.module).split(".")[1:])
            if parts[0] not in COMMON and room_of(parts) != here and any(part.startswith("_") for part in parts):
                wrong.append(f"{path.relative_to(ROOT)} imports {node.module}")
    assert not wrong


def test_a_class_name_stands_for_one_thing():
    places = defaultdict(list)
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path.relative_to(ROOT).as_posix())
    assert not {name: found for name, found in places.items() if len(found) > 1}
