"""From a source and a recipe to a delivered build."""

from modelwright.pipeline._analyze import (
    Analysis,
    Suggestion,
    analyze,
    place,
)
from modelwright.pipeline._build import (
    BuildResult,
    Built,
    PlannedStage,
    build,
    plan,
)
from modelwright.pipeline._calls import (
    Subject,
    optimize_call,
    quantize_call,
)
from modelwright.pipeline._import import (
    import_model,
)
from modelwright.pipeline._manifest import (
    assemble,
    check_folder,
    deliver,
    manifest,
)
from modelwright.pipeline._recipe import (
    Reasons,
    Recipe,
    make_recipe,
    read_layer,
    recipe_file,
    toml_text,
)
from modelwright.pipeline._rehearsal import (
    rehearse,
)
from modelwright.pipeline._resolve import (
    Wishes,
    resolve_recipe,
)
from modelwright.pipeline._results import (
    Analyses,
    Builds,
    Plans,
    TargetPlan,
)

__all__ = [
    "Analyses",
    "Analysis",
    "BuildResult",
    "Builds",
    "Built",
    "PlannedStage",
    "Plans",
    "Reasons",
    "Recipe",
    "Subject",
    "Suggestion",
    "TargetPlan",
    "Wishes",
    "analyze",
    "assemble",
    "build",
    "check_folder",
    "deliver",
    "import_model",
    "make_recipe",
    "manifest",
    "optimize_call",
    "place",
    "plan",
    "quantize_call",
    "read_layer",
    "recipe_file",
    "rehearse",
    "resolve_recipe",
    "toml_text",
]
