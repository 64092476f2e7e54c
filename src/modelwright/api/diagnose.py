"""`modelwright.diagnose`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from modelwright import answers, evidence
from modelwright.answers import Complaint, Diagnosis, SessionSettings, Symptom
from modelwright.api._inputs import data_for, input_choice
from modelwright.api._kept import kept, verb
from modelwright.api._model import file_of
from modelwright.api._opened import opened
from modelwright.errors import UsageError
from modelwright.store import Store
from modelwright.targets import GraphOptimization, Target, parse_target
from modelwright.vocabulary import Data, OnProgress

if TYPE_CHECKING:
    from modelwright.api._model import Model


SMALLEST = "smallest.onnx"


@verb
def diagnose(
    model: Model | None = None,
    target: str | Target = "cpu",
    *,
    symptom: Symptom | None = None,
    log: str | Path | None = None,
    reference: str | Path | None = None,
    component: str | None = None,
    data: Data | str | None = None,
    batch: int | None = None,
    dims: Mapping[str, int] | None = None,
    threads: int | None = None,
    level: GraphOptimization = "all",
    config: Mapping[str, str] | None = None,
    provider_options: Mapping[str, str] | None = None,
    budget_s: float = 40.0,
    reduce: str | Path | None = None,
    bug_report: str | Path | None = None,
    store: Store | None = None,
    on_progress: OnProgress | None = None,
) -> Diagnosis:
    """What is wrong with a model on a target: causes in order, each with what shows it and the cures that were tried.

    `symptom` is what somebody complains of; without one it is looked for what fails, falls back or is wrong.
    `reference` is the float model that the answers should agree with. `threads`, `level`, `config` and
    `provider_options` are how the session is opened. `log` is a file with error texts of onnxruntime or an EP: each is
    looked up in a catalogue of known ones, with a model or alone. `budget_s` is what each race may take. `reduce` is a
    file for the smallest model that still fails so, `bug_report` a folder for that and a report about it.
    """
    smallest = _place_for(reduce, bug_report)
    reading = None if log is None else answers.read_log(Path(log))
    if model is None:
        return kept(_of_log(reading))
    chosen = parse_target(target)
    file = file_of(model, chosen, component=component, store=store, on_progress=on_progress)
    before = None
    if reference is not None:
        before = file_of(reference, parse_target("cpu"), store=store, on_progress=on_progress).path
    complaint = Complaint(
        model=file.path,
        target=chosen,
        symptom=symptom,
        reference=before,
        inputs=input_choice(data_for(data, model), batch, dims, file.inputs),
        session=SessionSettings(threads, level, dict(config or {}), dict(provider_options or {})),
        budget_s=budget_s,
    )
    with opened(store) as place:
        found = answers.diagnose(
            complaint, file.name, log=reading, smallest=smallest, store=place, on_progress=on_progress
        )
    if bug_report is not None:
        about = SMALLEST if found.smallest is not None else Path(file.name).name
        call = f"`wright diagnose --target {chosen} {about}`".strip("`")
        answers.write_bug_report(Path(bug_report), found, evidence.read_environment(), call)
    return kept(found)


def _place_for(reduce: str | Path | None, bug_report: str | Path | None) -> Path | None:
    if reduce is None and bug_report is None:
        return None
    path = Path(reduce) if reduce is not None else Path(str(bug_report), SMALLEST)
    if path.exists():
        raise UsageError(f"{path} exists", cause="it may be anybody's model", fix="name a file that does not exist")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _of_log(reading: answers.LogReading | None) -> Diagnosis:
    if reading is None:
        raise UsageError("there is nothing to diagnose", cause="neither a model nor a `log`", fix="give one of them")
    return Diagnosis(None, None, None, (), (), (), log=reading)
