"""What every EP adapter must keep."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from modelwright.targets import EpAdapter, Target, TraceProblem, adapter_of, catalogue, parse_target

_HEAVY = ("numpy", "onnx", "onnxruntime", "torch")


class EpAdapterSuite:
    """`key` is the EP's; `chips` are chip settings that it knows, as they are written after the colon of a target."""

    key: ClassVar[str]
    chips: ClassVar[Sequence[str]] = ()

    @property
    def adapter(self) -> EpAdapter:
        return adapter_of(self.key)

    @property
    def targets(self) -> list[Target]:
        provider = catalogue().find(self.key)
        assert provider is not None, f"the catalogue has no {self.key}"
        plain = [parse_target(f"{self.key}-{device.kind}") for device in provider.devices]
        return [*plain, *(parse_target(f"{self.key}:{chip}") for chip in self.chips)]

    def test_its_row_is_found_by_every_spelling_and_by_no_other_ep(self) -> None:
        found = [ep for ep in catalogue().eps if self.key in ep.spellings]
        assert [ep.key for ep in found] == [self.key]
        for spelling in found[0].spellings:
            assert parse_target(spelling.upper()).ep == self.key

    def test_a_target_reads_back_from_its_own_text(self) -> None:
        for target in self.targets:
            assert parse_target(str(target)) == target

    def test_ep_options_are_text_and_the_same_every_time(self) -> None:
        for target in self.targets:
            options = target.provider_options
            assert all(isinstance(word, str) for pair in options.items() for word in pair)
            assert target.provider_options == options

    def test_a_log_that_says_nothing_refuses_nothing(self) -> None:
        for log in ("", "\n" * 1000, "2026-01-01 warning: something else\n\x1b[0m", "Validation FAILED"):
            assert self.adapter.refusals(log) == {}

    def test_what_it_records_stays_in_the_folder_of_the_trace(self, tmp_path: Path) -> None:
        options = self.adapter.trace_options(tmp_path)
        for value in options.values():
            assert not Path(value).is_absolute() or Path(value).is_relative_to(tmp_path)
        assert list(tmp_path.iterdir()) == []

    def test_a_trace_that_was_not_written_is_none_or_a_problem_with_a_name(self, tmp_path: Path) -> None:
        assert _what_is_read(self.adapter, tmp_path)

    def test_it_is_light_enough_for_every_child(self) -> None:
        assert _heavy_imports(type(self.adapter).__module__) == "[]"


def _what_is_read(adapter: EpAdapter, folder: Path) -> str:
    """Of an empty folder: why there is nothing; empty for a recording out of nowhere, or a problem without words."""
    try:
        return "nothing is recorded" if adapter.read_trace(folder) is None else ""
    except TraceProblem as problem:
        return problem.words if problem.reason else ""


@functools.cache
def _heavy_imports(module: str) -> str:
    words = f"import sys, {module}; print(sorted(set({_HEAVY!r}) & set(sys.modules)))"
    return subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True).stdout.strip()
