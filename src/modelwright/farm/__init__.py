"""Many models for many targets: the matrix and its ledger, the machines that share the work, feeds to publish to."""
