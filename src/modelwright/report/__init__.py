"""Typed results rendered for people: one module per answer, so that a command imports only its own."""
