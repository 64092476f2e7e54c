"""Which passes a build runs: those of the names and presets that were said, without those that were left out or are
known to hurt on its target."""

from __future__ import annotations

from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
from modelwright.errors import InputError
from modelwright.home import findings_file
from modelwright.models import HfSource, OnnxSource
from modelwright.stages.optimize import PRESETS, find_pass, resolve_passes
from modelwright.store import Store
from modelwright.targets import Target

if TYPE_CHECKING:
    from modelwright import knowledge
    from modelwright.knowledge import Insight
else:
    knowledge = lazy("modelwright.knowledge")

DEFAULT_PASSES = ("portable",)
LEAVE_OUT = "-"
"""Before the name of a pass, as `tune` writes the same change."""
# What every build does. No finding that comes with the package is against any of it, as a test holds: a warm build need
# not read them.
QUIET = frozenset(PRESETS["portable"])


def chosen_passes(
    words: Sequence[str], source: OnnxSource | HfSource, target: Target
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The passes of these names and presets, and why some of a preset are left out.

    One that is named is done, `-NAME` is not; where no other word is said, the default goes without it.
    """
    unwanted = {find_pass(word.removeprefix(LEAVE_OUT)).name for word in words if word.startswith(LEAVE_OUT)}
    said = [word for word in words if not word.startswith(LEAVE_OUT)] or (DEFAULT_PASSES if unwanted else ())
    named = [word for word in said if word not in PRESETS]
    preset = list(dict.fromkeys(name for word in said for name in PRESETS.get(word, ())))
    for name in sorted(unwanted):
        _require_a_choice(name, named, preset)
    picked = _without(unwanted, preset)
    needing = {name: _needed(name, unwanted) for name in preset if name not in picked and name not in unwanted}
    known = _known([name for name in picked if name not in named], source, target)
    reasons = [f"{name} is left out: it needs {other}" for name, other in needing.items()]
    reasons += [_words(name, one) for name, one in known.items()]
    return resolve_passes([*named, *_without(known.keys(), picked)]), tuple(reasons)


def _without(unwanted: Set[str], names: Sequence[str]) -> list[str]:
    """Nor any that would bring one of them back."""
    return [name for name in names if unwanted.isdisjoint(resolve_passes([name]))] if unwanted else list(names)


def _needed(name: str, unwanted: Set[str]) -> str:
    return next(other for other in resolve_passes([name]) if other in unwanted)


def _require_a_choice(unwanted: str, named: Sequence[str], preset: Sequence[str]) -> None:
    """Only what a preset brings can be left out: what is named is there because somebody wants it."""
    wanted = next((name for name in named if unwanted in resolve_passes([name])), None)
    if wanted is not None:
        raise InputError(f"{unwanted} is asked for and left out", cause=f"{wanted} runs it", fix="drop one of the two")
    if unwanted not in preset:
        raise InputError(
            f"{LEAVE_OUT}{unwanted} leaves nothing out",
            cause=f"{unwanted} is not among the passes that were asked for",
            fix="`wright optimize --list` prints what each preset has",
        )


def _known(names: Sequence[str], source: OnnxSource | HfSource, target: Target) -> dict[str, Insight]:
    """What a pass can add stands for what it would: nothing is tried here."""
    own = findings_file().is_file()
    if not own and QUIET.issuperset(names):
        return {}
    adds = {name: find_pass(name).produces for name in names}
    operators = knowledge.operators_of(Path(source.path)) if isinstance(source, OnnxSource) else {}
    graph = knowledge.GraphFacts(operators, knowledge.family_of(operators), adds)
    if not own:
        return knowledge.harmful(knowledge.KnowledgeBase(), graph, target, names)
    with Store() as store:
        return knowledge.harmful(knowledge.KnowledgeBase(store), graph, target, names)


def _words(name: str, one: Insight) -> str:
    return f"{name} is left out: {one.why} (finding {one.finding})"
