"""What the hardware does while a model is measured."""
