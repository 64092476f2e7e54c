"""ONNX's own node tests: what bare onnxruntime answers rightly is built for the CPU, and answers the same.

Every case of `onnx.backend.test.case.node` whose expected outputs bare onnxruntime gives (with the test's own inputs
and tolerance) is built in fp32, once with made-up inputs and once with the test's own as `data`. The artifact then
answers the test's inputs. `built` are those that build, whose gate does not say no, and whose answers are the expected
ones; `passed_but_other` are artifacts that the gate let through with other answers: there must be none. `planted` are
artifacts made wrong on purpose, one change behind the first output, judged on the test's own inputs: none may pass.
What was tried is kept beside the builds of `bench.passed`, so that a run that was stopped goes on.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import ml_dtypes  # noqa: F401 numpy learns bfloat16 and its like from it
import numpy as np
import onnx
import onnxruntime as ort
from onnx.backend.test.case.node import collect_testcases

from modelwright import home
from modelwright.data import DataSource
from modelwright.errors import WrightError
from modelwright.models import resolve
from modelwright.pipeline import BuildFailure, RecipeChoices, build_all, resolve_recipe
from modelwright.plans import NodeResult, NodeSchedule, Plan, at_once, model_paths, run_node
from modelwright.stages.optimize import OPTIMIZE
from modelwright.stages.validate import VALIDATE, Gate, run_validate
from modelwright.store import Store
from modelwright.targets import parse_target
from modelwright.vocabulary import Data, OnProgress
from modelwright.worker import Worker

Verdict = Literal["same", "other", "failed gate", "refused", "crash"]
TARGET = 0.99
MADE_BY = {stage.name: stage.version for stage in (OPTIMIZE, VALIDATE)}
# What is planted behind a float output; integers get one more, flags the opposite.
PLANTED: dict[str, tuple[str, float]] = {"5 % larger": ("Mul", 1.05), "of the other sign": ("Mul", -1.0)}
_SEED = 11
_PATIENCE_S = 60.0


@dataclass(frozen=True)
class Case:
    """One node test with its only data set."""

    name: str
    model: onnx.ModelProto
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    rtol: float
    atol: float

    @property
    def feeds(self) -> dict[str, Any]:
        return {value.name: item for value, item in zip(self.model.graph.input, self.inputs, strict=False)}


@dataclass(frozen=True)
class Ending:
    """How the build of one case ended. `passed` is the gate's word."""

    name: str
    verdict: Verdict
    why: str = ""
    passed: bool | None = None


def run() -> dict[str, Any]:
    cases, tried = right_cases(), Tried()
    with tempfile.TemporaryDirectory() as folder, Bench(Path(folder)) as bench:
        made_up = [tried.once(case, "made up", lambda one: bench.try_case(one)) for case in cases]
        arrays = [case for case in cases if case_in_arrays(case)]
        own = [tried.once(case, "own", lambda one: bench.try_case(one, own=True)) for case in arrays]
        planted = {word: [case.name for case in hundred() if bench.passes(case, word)] for word in PLANTED}
    found = {"made_up_inputs": summed(made_up), "own_inputs": summed(own)}
    other = [item.name for item in (*made_up, *own) if item.verdict == "other" and item.passed]
    met = all(part["share"] >= TARGET for part in found.values()) and not other and not any(planted.values())
    wrong = {"passed_but_other": other, "planted_and_passed": planted}
    return {**found, **wrong, "target": TARGET, "met": met, "made_by": MADE_BY}


class Tried:
    """How builds ended, kept line by line for as long as the stages are the same."""

    def __init__(self) -> None:
        words = "-".join(f"{name}{version}" for name, version in MADE_BY.items())
        self._path = home.home() / "bench" / f"node_tests-{words}.jsonl"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lines = self._path.read_text().splitlines() if self._path.is_file() else []
        self._known = {(inputs, ending.name): ending for inputs, ending in map(_read_line, lines)}

    def once(self, case: Case, inputs: str, attempt: Callable[[Case], Ending]) -> Ending:
        if (inputs, case.name) not in self._known:
            ending = self._known[inputs, case.name] = _told(attempt(case))
            with self._path.open("a") as lines:
                lines.write(json.dumps([inputs, *asdict(ending).values()]) + "\n")
        return self._known[inputs, case.name]


def _read_line(line: str) -> tuple[str, Ending]:
    inputs, *ending = json.loads(line)
    return inputs, Ending(*ending)


def summed(endings: Sequence[Ending]) -> dict[str, Any]:
    counts = Counter(item.verdict for item in endings)
    gate = Counter(str(item.passed) for item in endings if item.verdict == "same")
    rest = {item.name: f"{item.verdict}: {item.why}" for item in endings if item.verdict != "same"}
    return {
        "cases": len(endings),
        "built": counts["same"],
        "share": round(counts["same"] / len(endings), 4),
        "passed": dict(gate),
        "others": rest,
    }


def all_cases() -> list[Case]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    return [
        Case(item.name, item.model, *(tuple(map(_value, part)) for part in item.data_sets[0]), item.rtol, item.atol)
        for item in found
    ]


def right_cases() -> list[Case]:
    """Those that bare onnxruntime answers as the test expects."""
    return [case for case in all_cases() if _bare_is_right(case)]


def hundred(count: int = 100) -> list[Case]:
    """The same ones every time."""
    cases = all_cases()
    random.Random(_SEED).shuffle(cases)
    found: list[Case] = []
    for case in cases:
        if len(found) == count:
            break
        if _bare_is_right(case):
            found.append(case)
    return found


def case_in_arrays(case: Case) -> bool:
    """Can the test's inputs be written to an .npz file?"""
    arrays = [item for item in case.inputs if isinstance(item, np.ndarray) and item.dtype.kind in "fiub"]
    return bool(arrays) and len(arrays) == len(case.inputs)


class Bench:
    """One store and one child for all builds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store = Store(folder / "store")
        self._worker = Worker()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()
        self._store.close()

    def try_case(self, case: Case, *, own: bool = False) -> Ending:
        model = self._folder / f"{case.name}.onnx"
        onnx.save(case.model, model)
        data = self._own_inputs(case) if own else None
        try:
            return self._built(case, model, data)
        except WrightError as error:
            return Ending(case.name, "refused", f"{error.problem} ({error.cause})")
        except Exception as error:  # noqa: BLE001 whatever it is, it is the finding
            return Ending(case.name, "crash", f"{type(error).__name__}: {error}")

    def passes(self, case: Case, word: str) -> bool:
        """Does the gate let an artifact through that was made wrong?"""
        if not case_in_arrays(case) or not _can_be_wrong(case):
            return False
        right, wrong = self._folder / "right.onnx", self._folder / "wrong.onnx"
        onnx.save(case.model, right)
        onnx.save(_made_wrong(case, *PLANTED[word]), wrong)
        data = DataSource(self._own_inputs(case))
        call = run_validate.call(str(wrong), str(right), str(self._folder), Gate(precision="fp32"), data)
        return self._worker.run(call, timeout=_PATIENCE_S).unwrap().passed is True

    def _built(self, case: Case, model: Path, data: Data | None) -> Ending:
        source = resolve(str(model))
        recipe = resolve_recipe(source, parse_target("cpu"), RecipeChoices(data=data))
        (found,) = build_all(source, [recipe], store=self._store, executor=OneChild(self._worker))
        if isinstance(found, BuildFailure):
            raise found.error
        (part,) = found.components
        with model_paths(self._store, {"model": part.final}) as paths:
            other = difference(case, _answers(paths["model"], case))
        if other is not None:
            return Ending(case.name, "other", other, found.passed)
        if found.passed is False:
            wrong = [f"{check.name}: {check.detail}" for check in part.validation.checks if check.passed is False]
            return Ending(case.name, "failed gate", "; ".join(wrong), found.passed)
        return Ending(case.name, "same", "", found.passed)

    def _own_inputs(self, case: Case) -> Data:
        path = self._folder / f"{case.name}.npz"
        np.savez(path, **{name: array[None] for name, array in case.feeds.items()})
        return Data(str(path))


class OneChild:
    """An executor that keeps its child from build to build: most of a small build is starting one."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def run(self, plan: Plan, store: Store, on_progress: OnProgress | None = None) -> Iterator[NodeResult]:
        schedule = NodeSchedule(plan)
        while not schedule.finished:
            node = schedule.ready()[0]
            result = at_once(node, schedule, store)
            if result is None:
                schedule.begin(node)
                result = self._ended(node, schedule, store)
            schedule.end(result)
            yield result

    def _ended(self, node: Any, schedule: NodeSchedule, store: Store) -> NodeResult:
        try:
            return NodeResult(node, run_node(store, node, schedule.models(node), None, self._worker))
        except WrightError as error:
            return NodeResult(node, error=error)


def _can_be_wrong(case: Case) -> bool:
    """Is the first output a tensor of numbers other than zero, or of flags?"""
    first = case.outputs[0]
    if not isinstance(first, np.ndarray) or not first.size or first.dtype.kind not in "fiub":
        return False
    return first.dtype.kind != "f" or bool((np.isfinite(first) & (first != 0)).any())


def _made_wrong(case: Case, operator: str, value: float) -> onnx.ModelProto:
    model, name, first = onnx.ModelProto(), case.model.graph.output[0].name, case.outputs[0]
    model.CopyFrom(case.model)
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [f"right_{item}" if item == name else item for item in names]
    if first.dtype.kind == "b":
        model.graph.node.append(onnx.helper.make_node("Not", [f"right_{name}"], [name]))
        return model
    operator, value = (operator, value) if first.dtype.kind == "f" else ("Add", 1)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(value, first.dtype), "planted"))
    model.graph.node.append(onnx.helper.make_node(operator, [f"right_{name}", "planted"], [name]))
    return model


def difference(case: Case, answers: Sequence[Any]) -> str | None:
    """The first output that is not the expected one, in the tolerance of the test."""
    for value, wanted, got in zip(case.model.graph.output, case.outputs, answers, strict=True):
        if not _same(wanted, got, case):
            return f"{value.name}: {_short(got)} instead of {_short(wanted)}"
    return None


def _same(wanted: Any, got: Any, case: Case) -> bool:
    if wanted is None or got is None:
        return wanted is got
    if isinstance(wanted, list):
        return len(wanted) == len(got) and all(_same(one, two, case) for one, two in zip(wanted, got, strict=True))
    got = np.asarray(got)
    if wanted.shape != got.shape:
        return False
    if wanted.dtype.kind in "OSU":
        return bool((wanted.astype(str) == got.astype(str)).all())
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    close = np.allclose(wanted.astype(wide), got.astype(wide), case.rtol, case.atol, equal_nan=True)
    return wanted.dtype == got.dtype and bool(close)


def _bare_is_right(case: Case) -> bool:
    try:
        return difference(case, _answers(case.model.SerializeToString(), case)) is None
    except Exception:  # noqa: BLE001 onnxruntime raises its own C++ exception types
        return False


def _answers(model: str | bytes, case: Case) -> list[Any]:
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return list(session.run(None, case.feeds))


def _value(item: Any) -> Any:
    if isinstance(item, onnx.TensorProto):
        return onnx.numpy_helper.to_array(item)
    return item if isinstance(item, list) or item is None else np.asarray(item)


def _short(value: Any) -> str:
    return f"{value.dtype}{list(value.shape)} {value.ravel()[:4]}" if isinstance(value, np.ndarray) else str(value)[:80]


def _told(ending: Ending) -> Ending:
    """What goes wrong is said at once: all of it takes minutes."""
    if ending.verdict != "same":
        sys.stderr.write(f"{ending.name}: {ending.verdict}: {ending.why}\n")
    return ending
