"""Builds: the recipe, its resolution, the plan, and running it through the store."""

from modelwright.build._analyze import Analysis, Suggestion, analyze, place
from modelwright.build._build import BuildResult, Built, PlannedStage, build, plan
from modelwright.build._manifest import assemble, check_folder, deliver, manifest
from modelwright.build._recipe import Reasons, Recipe, make_recipe, read_layer, recipe_file, toml_text
from modelwright.build._rehearsal import rehearse
from modelwright.build._resolve import Wishes, resolve_recipe
from modelwright.build._stage import ModelInput, StageCall, StageEvent, StageResult, Watcher, peek_stage, run_stage

__all__ = [
    "Analysis",
    "BuildResult",
    "Built",
    "ModelInput",
    "PlannedStage",
    "Reasons",
    "Recipe",
    "StageCall",
    "StageEvent",
    "StageResult",
    "Suggestion",
    "Watcher",
    "Wishes",
    "analyze",
    "assemble",
    "build",
    "check_folder",
    "deliver",
    "make_recipe",
    "manifest",
    "peek_stage",
    "place",
    "plan",
    "read_layer",
    "recipe_file",
    "rehearse",
    "resolve_recipe",
    "run_stage",
    "toml_text",
]
