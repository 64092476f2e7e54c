"""What every stage must keep."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import pytest

from modelwright._dataclass import dataclass
from modelwright._json import dumps, plain
from modelwright._typed import typed
from modelwright.stages import Stage
from modelwright.worker import run


@dataclass(frozen=True)
class StageCase:
    """One run of a stage: `models` are paths by the names of the task's parameters, `given` is what else it gets."""

    stage: Stage[Any, Any]
    params: Any
    models: Mapping[str, Path]
    given: Mapping[str, Any] = field(default_factory=dict)

    def run(self, workdir: Path) -> Any:
        workdir.mkdir()
        models = {name: str(path) for name, path in self.models.items()}
        call = self.stage.task.call(**models, workdir=str(workdir), params=self.params, **self.given)
        return run(call, timeout=self.stage.patience_s).unwrap()


class StageSuite:
    """Override the fixture `case`: a run of the stage that ends well."""

    @pytest.fixture
    def case(self, tmp_path: Path) -> StageCase:
        raise NotImplementedError("give the run that is to be tested")

    def test_two_processes_make_the_same_files_and_touch_nothing_else(self, case: StageCase, tmp_path: Path) -> None:
        before = {name: contents(path.parent) for name, path in case.models.items()}
        case.run(tmp_path / "one")
        case.run(tmp_path / "two")
        assert contents(tmp_path / "one") == contents(tmp_path / "two")
        assert {name: contents(path.parent) for name, path in case.models.items()} == before

    def test_its_outcome_comes_back_from_the_store_as_it_was(self, case: StageCase, tmp_path: Path) -> None:
        outcome = case.run(tmp_path / "outcome")
        assert isinstance(outcome, case.stage.outcome)
        dumps(plain(outcome))
        assert typed(case.stage.outcome, plain(outcome)) == outcome

    def test_its_parameters_travel_and_have_one_form_in_json(self, case: StageCase) -> None:
        assert pickle.loads(pickle.dumps(case.params)) == case.params
        again = typed(case.stage.params, plain(case.params))
        assert dumps(plain(again)) == dumps(plain(case.params))

    def test_what_shapes_its_result_is_text(self, case: StageCase) -> None:
        for found in (case.stage.libraries(), case.stage.host(case.params)):
            assert all(isinstance(word, str) and word for pair in found.items() for word in pair)


def contents(folder: Path) -> dict[str, str]:
    """SHA-256 of every file, by name."""
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
