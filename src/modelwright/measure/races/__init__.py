"""Arms against a base, unit by unit, until it is decided."""
