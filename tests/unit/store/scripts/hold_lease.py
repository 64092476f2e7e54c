"""Lease the entry whose key begins with argv[2], say so, and keep it until stdin closes."""

import sys
from pathlib import Path

from modelwright.store import Store

with Store(Path(sys.argv[1])) as store:
    artifact = store.get(store.find(sys.argv[2]).key)
    assert artifact is not None
    with store.lease(artifact):
        print("leased", flush=True)
        sys.stdin.read()
