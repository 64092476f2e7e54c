"""Intel OpenVINO: as a flavour it is told the device by a word."""

from __future__ import annotations

from modelwright.targets.eps._adapter import EpAdapter


class OpenVinoAdapter(EpAdapter):
    device_words = ("device_type",)


ADAPTER = OpenVinoAdapter()
