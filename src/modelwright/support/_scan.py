"""A family runs in the child of the export, where nothing judges it. Still it has no business outside: what it may name
is a short list, and what is not on it is told by line. A metric scores rows, and has even less."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

_MODULES = (
    "__future__",
    "collections",
    "dataclasses",
    "functools",
    "itertools",
    "math",
    "modelwright._lazy",
    "modelwright.errors",
    "modelwright.stages.export",
    "torch",
    "transformers",
    "typing",
)
_SCORING = ("__future__", "collections", "functools", "itertools", "math", "numpy", "scipy", "sklearn", "typing")
_LAZY = "lazy"
_NAMES = frozenset(
    {
        "__builtins__",
        "__import__",
        "breakpoint",
        "compile",
        "delattr",
        "eval",
        "exec",
        "exit",
        "getattr",
        "globals",
        "input",
        "locals",
        "memoryview",
        "open",
        "quit",
        "setattr",
        "type",
        "vars",
    }
)
# What tells a run under review from another one, or leads from one object to all others.
_ATTRIBUTES = frozenset(
    {
        "__bases__",
        "__builtins__",
        "__class__",
        "__closure__",
        "__code__",
        "__dict__",
        "__getattribute__",
        "__globals__",
        "__loader__",
        "__mro__",
        "__self__",
        "__setattr__",
        "__spec__",
        "__subclasses__",
        "__wrapped__",
        "environ",
        "f_back",
        "f_globals",
        "gi_frame",
        "modules",
        "register_forward_hook",
        "register_forward_pre_hook",
        "save",
        "load",
        "from_pretrained",
        "hub",
        "compile",
        "library",
    }
)


def foreign_to_a_family(path: Path) -> tuple[str, ...]:
    """Every line that does what a family has no need of; a file that cannot be read is one too."""
    return _foreign(path, _MODULES)


def foreign_to_a_metric(path: Path) -> tuple[str, ...]:
    return _foreign(path, _SCORING)


def _foreign(path: Path, known: tuple[str, ...]) -> tuple[str, ...]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"), path.name)
    except (OSError, SyntaxError, ValueError, RecursionError) as error:
        return (f"{path.name} cannot be read: {error}",)
    imported = _imported(tree)
    found = dict.fromkeys(
        f"{path.name}:{getattr(node, 'lineno', 0)} {what}"
        for node in ast.walk(tree)
        for what in _wrong(node, imported, known)
    )
    return tuple(found)


def _imported(tree: ast.AST) -> frozenset[str]:
    """Names that stand for something of others, also by another name: `f = torch.nn.functional`."""
    names = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    before = -1
    while len(names) != before:
        before = len(names)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                if _is_lazy(node.value) or _stands_for(node.value, names):
                    names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(names)


def _stands_for(value: ast.AST, names: set[str]) -> bool:
    """A thing of others itself, not what one of its functions made."""
    return isinstance(value, ast.Name | ast.Attribute) and _root(value) in names


def _is_lazy(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == _LAZY


def _wrong(node: ast.AST, imported: frozenset[str], known: tuple[str, ...]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (f"imports {one.name}" for one in node.names if not _known(one.name, known))
    elif isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        if not _known(module, known):
            yield f"imports {module}"
    elif isinstance(node, ast.Call) and _is_lazy(node):
        words = [word.value for word in node.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
        if len(words) != 1 or not _known(words[0], known):
            yield f"imports {', '.join(words) or 'what it computes'}"
    elif isinstance(node, ast.Name) and node.id in _NAMES:
        yield f"names {node.id}"
    elif isinstance(node, ast.Attribute) and node.attr in _ATTRIBUTES:
        yield f"reaches for .{node.attr}"
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
        yield from _patched(node, imported)


def _known(module: str, modules: tuple[str, ...]) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in modules)


def _patched(node: ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete, imported: frozenset[str]) -> Iterator[str]:
    """Something of others is given another value: `torch.softmax = mine`."""
    targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
    for target in targets:
        for part in ast.walk(target):
            if isinstance(part, ast.Attribute | ast.Subscript) and _root(part) in imported:
                yield f"changes {ast.unparse(part)}, which is not its own"


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
