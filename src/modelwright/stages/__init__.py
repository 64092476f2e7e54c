"""The stages of a build. Each is a `Stage` in a package of its own."""

from modelwright.stages.stage import Stage

__all__ = ["Stage"]
