from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Literal

import pytest

from modelwright.errors import ExecutionError, InputError
from modelwright.vocabulary import Progress
from modelwright.worker import CallResult, Failure, Task, Worker, run, task
from unit.worker import tasks


def failure_of(result: CallResult[object]) -> Failure:
    assert result.failure is not None
    assert not result.ok
    assert result.value is None
    return result.failure


def test_a_value_comes_back_with_what_it_cost() -> None:
    result = run(tasks.add.call(2, right=3), timeout=20)
    assert result.unwrap() == 5
    assert result.ok
    assert 0 < result.duration_s < 20
    assert result.cpu_s is not None
    assert 0 < result.cpu_s < 10
    assert result.peak_rss_bytes is not None
    assert 5_000_000 < result.peak_rss_bytes < 200_000_000


def test_a_task_is_still_a_function_here() -> None:
    assert tasks.add(2, 3) == 5
    assert tasks.add.__name__ == "add"
    assert tasks.report_progress(2, 0.0) == 2


def test_none_is_a_value() -> None:
    result = run(tasks.echo.call(None), timeout=20)
    assert result.ok
    assert result.unwrap() is None


def test_peak_memory_and_cpu_time_are_those_of_the_call() -> None:
    result = run(tasks.allocate.call(200), timeout=20)
    assert result.peak_rss_bytes is not None
    assert 200 << 20 < result.peak_rss_bytes < 260 << 20
    burnt = run(tasks.burn.call(0.3), timeout=60)
    assert burnt.cpu_s is not None
    assert 0.3 <= burnt.cpu_s < 0.3 + 10


def test_a_segfault_is_a_crash_with_its_name_and_the_python_stack_in_the_log() -> None:
    result = run(tasks.segfault.call(), timeout=20)
    failure = failure_of(result)
    assert (failure.kind, failure.signal, failure.name) == ("crash", signal.SIGSEGV, "SIGSEGV")
    with pytest.raises(ExecutionError) as raised:
        result.unwrap()
    assert "crashed with SIGSEGV (segmentation fault)" in raised.value.cause
    assert str(result.log) in raised.value.fix
    assert result.log is not None
    assert "in segfault" in result.log.read_text()


@pytest.mark.parametrize("what", ["crash", "hang"])
def test_the_python_stack_is_in_the_log_also_while_output_goes_elsewhere(
    what: Literal["crash", "hang"], tmp_path: Path
) -> None:
    with Worker() as worker:
        worker.run(tasks.pid.call(), timeout=60).unwrap()
        result = worker.run(tasks.print_elsewhere_and.call(what, tmp_path / "elsewhere"), timeout=3)
    assert result.log is not None
    assert "in print_elsewhere_and" in result.log.read_text()
    assert (tmp_path / "elsewhere").read_bytes() == b""


@pytest.mark.parametrize(
    ("call", "kind", "number", "code"),
    [
        (tasks.abort.call(), "crash", signal.SIGABRT, None),
        (tasks.leave.call(3), "crash", None, 3),
        (tasks.leave.call(0), "crash", None, 0),
        (tasks.polite_exit.call(3), "raised", None, 3),
        (tasks.kill_self.call(signal.SIGTERM), "crash", signal.SIGTERM, None),
    ],
    ids=["abort", "os._exit(3)", "os._exit(0)", "sys.exit(3)", "SIGTERM"],
)
def test_every_way_to_end_has_its_class(call: Task[None], kind: str, number: int | None, code: int | None) -> None:
    failure = failure_of(run(call, timeout=20))
    assert (failure.kind, failure.signal, failure.exit_code) == (kind, number, code)


def test_a_kill_without_evidence_is_a_crash_that_names_the_suspect() -> None:
    failure = failure_of(run(tasks.kill_self.call(signal.SIGKILL), timeout=20))
    assert (failure.kind, failure.name) == ("crash", "SIGKILL")
    assert "lack of memory" in failure.message


def test_an_exception_arrives_with_its_traceback() -> None:
    result = run(tasks.raise_value_error.call("twelve is odd"), timeout=20)
    failure = failure_of(result)
    assert (failure.kind, failure.error) == ("raised", None)
    assert failure.message == "ValueError: twelve is odd"
    assert failure.traceback is not None
    assert "in raise_value_error" in failure.traceback
    assert result.log is not None
    assert "in raise_value_error" in result.log.read_text()
    with pytest.raises(ExecutionError, match="twelve is odd"):
        result.unwrap()


def test_a_wright_error_arrives_as_itself() -> None:
    result = run(tasks.raise_input_error.call(), timeout=20)
    with pytest.raises(InputError) as raised:
        result.unwrap()
    error = raised.value
    assert (error.problem, error.cause) == ("The model is bad.", "it has no nodes")
    assert (error.fix, error.exit_code) == ("Give one with nodes.", 3)
    assert failure_of(result).kind == "raised"


def test_a_wright_error_of_the_users_own_class_arrives_as_itself() -> None:
    with pytest.raises(tasks.HomemadeError):
        run(tasks.raise_homemade_error.call(), timeout=20).unwrap()


@pytest.mark.parametrize(
    "call",
    [
        tasks.import_missing.call(),
        Task("a_module_nobody_has:function"),
        Task("unit.worker.tasks:unmarked", root=tasks.echo.call(0).root),
        Task("os:getpid"),
    ],
    ids=["inside the task", "module of the task", "not marked", "any function"],
)
def test_what_cannot_be_imported_is_an_import_error(call: Task[object]) -> None:
    assert failure_of(run(call, timeout=20)).kind == "import_error"


def test_a_module_that_breaks_while_loading_is_an_import_error(tmp_path: Path) -> None:
    (tmp_path / "broken_module.py").write_text("def (:\n")
    failure = failure_of(run(Task("broken_module:f", root=str(tmp_path)), timeout=20))
    assert failure.kind == "import_error"
    assert "broken_module" in failure.message


def test_a_result_that_cannot_be_pickled_is_said_so() -> None:
    failure = failure_of(run(tasks.give_unpicklable.call(), timeout=20))
    assert failure.kind == "raised"
    assert "the result cannot be sent back" in failure.message


def test_garbage_on_every_descriptor_does_not_break_the_conversation() -> None:
    assert run(tasks.write_garbage_everywhere.call(), timeout=20).unwrap() == "survived"


def test_a_task_that_closes_our_line_is_a_crash() -> None:
    assert failure_of(run(tasks.close_everything.call(), timeout=20)).kind == "crash"


def test_a_task_that_forks_and_returns_twice_answers_once() -> None:
    assert run(tasks.fork_and_return.call(), timeout=20).unwrap() > 0


def test_progress_arrives_in_order() -> None:
    heard: list[Progress] = []
    result = run(
        tasks.report_progress.call(4, 0.06),
        timeout=20,
        on_progress=heard.append,
    )
    assert result.unwrap() == 4
    assert heard == [Progress(f"step {step}", step / 4) for step in range(4)]


def test_counts_that_nobody_could_read_do_not_travel_but_the_first_and_what_is_no_count_do() -> None:
    heard: list[Progress] = []
    run(tasks.count_fast.call(2000), timeout=60, on_progress=heard.append).unwrap()
    assert [heard[0], heard[-2], heard[-1]] == [Progress("begins"), Progress("all", 1.0), Progress("ends")]
    assert len(heard) < 2000


def test_a_child_sees_neither_our_search_path_nor_our_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path))
    path = run(tasks.search_path.call(), timeout=20).unwrap()
    assert str(tmp_path) not in path
    assert "" not in path
    root = tasks.search_path.call().root
    assert root in path


def test_onnxruntime_reports_to_nobody_from_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORT_DISABLE_TELEMETRY", "0")
    assert run(tasks.variable.call("ORT_DISABLE_TELEMETRY"), timeout=20).unwrap() == "1"


def test_threads_of_numpy_that_nobody_uses_do_not_spin_but_as_the_user_says(monkeypatch):
    monkeypatch.delenv("OPENBLAS_THREAD_TIMEOUT", raising=False)
    assert run(tasks.variable.call("OPENBLAS_THREAD_TIMEOUT"), timeout=20).unwrap() == "4"
    monkeypatch.setenv("OPENBLAS_THREAD_TIMEOUT", "30")
    assert run(tasks.variable.call("OPENBLAS_THREAD_TIMEOUT"), timeout=20).unwrap() == "30"


def test_a_child_starts_light() -> None:
    modules, python = run(tasks.modules_and_environment.call(), timeout=20).unwrap()
    assert python == sys.executable
    heavy = {
        "numpy",
        "onnx",
        "onnxruntime",
        "platformdirs",
        "filelock",
        "pydantic",
        "psutil",
        "rich",
        "click",
    }
    assert heavy.isdisjoint(modules)


def test_an_interpreter_that_is_not_there_is_a_failure_not_an_exception(tmp_path: Path) -> None:
    from modelwright.worker import Runtime

    failure = failure_of(run(tasks.pid.call(), runtime=Runtime("gone", tmp_path / "python"), timeout=20))
    assert failure.kind == "crash"
    assert "could not be started" in failure.message


def test_only_functions_at_the_top_of_a_module_can_be_tasks() -> None:
    with pytest.raises(TypeError):

        @task
        def inner() -> None: ...


def test_a_message_that_begins_with_an_empty_line_is_told_all_the_same() -> None:
    """As transformers writes which package is missing."""
    failure = failure_of(run(tasks.raise_value_error.call("\nIt needs timm.\nInstall it."), timeout=20))
    assert failure.message == "ValueError: It needs timm."
