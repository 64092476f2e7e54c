"""Passes that a build picks by itself, without those that are known to hurt on its target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright._lazy import lazy
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

# What every build does. No finding that comes with the package is against any of it, as a test holds: a warm build need
# not read them.
QUIET = frozenset(PRESETS["portable"])


def chosen_passes(
    words: Sequence[str], source: OnnxSource | HfSource, target: Target
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The passes of these names and presets, and why some of a preset are left out. One that is named is done."""
    named = [word for word in words if word not in PRESETS]
    picked = [name for word in words for name in PRESETS.get(word, ())]
    known = _known([name for name in dict.fromkeys(picked) if name not in named], source, target)
    if not known:
        return resolve_passes([*named, *picked]), ()
    hurtful = set(known)
    kept = [name for name in picked if name not in hurtful and not hurtful & set(resolve_passes([name]))]
    return resolve_passes([*named, *kept]), tuple(_words(name, one) for name, one in known.items())


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
