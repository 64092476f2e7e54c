"""Exit codes that are answers or ends; an error's own code is in its class (`modelwright.errors`)."""

NO = 1
"""Done, and the answer is no: a gate failed, a regression is proven, operators are not supported."""

CANNOT_TELL = 6
"""A gate was asked for and the evidence does not decide it, or nobody could be asked."""

INTERNAL = 70
"""A fault of ours; the details are in a log file."""

INTERRUPTED = 130
"""Ctrl-C. Any other signal ends with 128 + its number."""
