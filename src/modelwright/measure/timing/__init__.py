"""One session in a child, timed run by run."""
