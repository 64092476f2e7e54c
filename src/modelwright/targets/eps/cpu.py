"""onnxruntime's own CPU EP: it takes every node, so there is nothing to explain."""

from __future__ import annotations

from modelwright.targets.eps._adapter import EpAdapter


class CpuAdapter(EpAdapter):
    tells_why = False


ADAPTER = CpuAdapter()
