"""Benchmarks: ratios against a peer or a bare loop, interleaved in one run. Not tests; see `make bench`."""
