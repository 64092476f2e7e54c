"""Model types that need more than the general rules: a file each, named after the type without hyphens."""
