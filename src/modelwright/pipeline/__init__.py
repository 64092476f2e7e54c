"""From a source and a recipe to a delivered build."""

from modelwright.pipeline._analyze import (
    Analysis,
    Suggestion,
    TriedChange,
    analyze,
    analyze_all,
)
from modelwright.pipeline._build import (
    BuildFailure,
    BuildResult,
    Built,
    KeptAccuracy,
)
from modelwright.pipeline._building import (
    Building,
    build,
    build_all,
)
from modelwright.pipeline._import import (
    ImportOutcome,
    import_model,
)
from modelwright.pipeline._manifest import (
    assemble,
    check_folder,
    deliver,
    manifest,
)
from modelwright.pipeline._memory import (
    MemoryNeed,
    peak_of,
)
from modelwright.pipeline._nodes import (
    BuildSubject,
    judged_rows,
    optimize_node,
    quantize_node,
)
from modelwright.pipeline._plan import (
    PlannedStage,
    plan,
    plan_all,
)
from modelwright.pipeline._recipe import (
    Layer,
    Reasons,
    Recipe,
    TuneTable,
    make_recipe,
    read_layer,
    recipe_file,
    require_layer,
    toml_text,
    toml_value,
)
from modelwright.pipeline._rehearsal import (
    rehearse,
)
from modelwright.pipeline._resolve import (
    RecipeChoices,
    resolve_recipe,
)
from modelwright.pipeline._results import (
    Analyses,
    Builds,
    Plans,
    TargetPlan,
)
from modelwright.pipeline._schema import (
    schema_of,
)

__all__ = [
    "Analyses",
    "Analysis",
    "BuildFailure",
    "BuildResult",
    "BuildSubject",
    "Building",
    "Builds",
    "Built",
    "ImportOutcome",
    "KeptAccuracy",
    "Layer",
    "MemoryNeed",
    "PlannedStage",
    "Plans",
    "Reasons",
    "Recipe",
    "RecipeChoices",
    "Suggestion",
    "TargetPlan",
    "TriedChange",
    "TuneTable",
    "analyze",
    "analyze_all",
    "assemble",
    "build",
    "build_all",
    "check_folder",
    "deliver",
    "import_model",
    "judged_rows",
    "make_recipe",
    "manifest",
    "optimize_node",
    "peak_of",
    "plan",
    "plan_all",
    "quantize_node",
    "read_layer",
    "recipe_file",
    "rehearse",
    "require_layer",
    "resolve_recipe",
    "schema_of",
    "toml_text",
    "toml_value",
]
