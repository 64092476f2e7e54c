"""Take a model to the artifact that runs best on a chosen accelerator, and prove every claim about it."""

__version__ = "0.1.0"
