"""The command-line contract: help is light, stdout is the answer, errors have three lines, exit codes mean it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from modelwright.cli._commands import COMMANDS, root_help

DENIED = ("numpy", "onnx", "onnxruntime", "torch", "transformers", "pydantic", "rich", "psutil", "sqlite3")
SUBCOMMANDS = {"cache": ["path", "ls", "info", "verify", "prune"], "runtime": ["create", "list", "remove"]}
HELPS = [
    [],
    *([command.name] for command in COMMANDS),
    *([group, name] for group, names in SUBCOMMANDS.items() for name in names),
]
SCRIPT = str(Path(sys.executable).with_name("wright"))


@pytest.mark.parametrize("words", HELPS, ids=" ".join)
def test_help_imports_nothing_heavy(words):
    code = (
        "import sys, json, atexit\n"
        f"sys.argv = ['wright', *{words}, '--help']\n"
        "atexit.register(lambda: sys.stderr.write(json.dumps(sorted(sys.modules))))\n"
        "from modelwright.cli import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("Usage: wright")
    assert not set(DENIED) & set(json.loads(done.stderr))


def _cpu_seconds(command):
    """CPU time of one whole process: other load on the machine hardly shows in it."""
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(command[0], command, os.environ, file_actions=quiet)
    _, status, usage = os.wait4(pid, 0)
    assert os.WIFEXITED(status)
    return usage.ru_utime + usage.ru_stime


def _cheapest(commands, runs=9):
    return [
        min(times)
        for times in zip(*([_cpu_seconds(command) for command in commands] for _ in range(runs)), strict=True)
    ]


@pytest.mark.parametrize(
    ("words", "yardstick", "ratio"),
    [([], "pass", 4), (["sys"], "import click", 2.5), (["cache", "ls"], "import click", 2.5)],
    ids=["root", "sys", "cache ls"],
)
def test_help_answers_in_a_few_interpreter_starts(words, yardstick, ratio):
    """A ratio, so that it holds on any machine; commands pay for click and their module, the root help does not."""
    bare, ours = _cheapest([[sys.executable, "-c", yardstick], [SCRIPT, *words, "--help"]])
    assert ours <= ratio * bare


def test_the_summary_in_the_table_is_the_first_line_of_the_command_s_help(wright):
    for command in COMMANDS:
        assert wright(command.name, "--help").out.splitlines()[2].strip() != "", command.name


def test_version_names_the_tool_and_a_number(wright):
    answer = wright("--version")
    assert answer.code == 0
    assert answer.out.startswith("wright, version 0.")


def test_a_command_that_is_called_like_a_module_of_python_ends_well():
    assert subprocess.run([SCRIPT, "sys", "--help"], capture_output=True, check=False).returncode == 0


def test_no_arguments_show_the_help(wright):
    assert wright().out == root_help() == wright("-h").out == wright("--help").out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["inspekt"], "did you mean inspect?"),
        (["sys", "--jsn"], "did you mean --json?"),
        (["sys", "extra"], "wright sys --help"),
        (["inspect"], "wright inspect --help"),
        (["cache", "prune", "--budget", "much"], "--budget"),
        (["completion", "tcsh"], "wright completion --help"),
        (["build", "-m", "m.onnx", "--dim", "n=" + "9" * 5000], "--dim batch=1"),
        (["optimize", "m.onnx", "--dim", "n=²"], "--dim batch=1"),
        (["perf", "m.onnx", "--seed", "-5"], "wright perf --help"),
        (["cache", "prune", "--budget", "9" * 5000], "wright cache prune --help"),
        (["perf", "m.onnx", "-m", "m.onnx"], "leave one of them out"),
        (["perf", "m.onnx", "--output", "r.json"], "use --save FILE"),
        (["config", "m.onnx", "-o", "r.toml"], "use --save FILE"),
        (["debug", "--float", "m.onnx", "--quant", "build"], "use --reference MODEL"),
        (["debug", "m.onnx", "--scale", "nan"], "wright debug --help"),
        (["eval", "m.onnx", "--reference", "m.onnx", "--data", "random", "--min-cosine", "nan"], "wright eval --help"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_usage_error_has_three_lines_a_next_step_and_code_2(wright, words, hint):
    answer = wright(*words)
    assert answer.code == 2
    assert answer.out == ""
    assert [line.split(":")[0].strip() for line in answer.err.splitlines()] == ["error", "why", "next"]
    assert hint in answer.err


def test_an_error_in_json_mode_is_one_document_on_stdout(wright):
    answer = wright("inspect", "absent.onnx", "--json")
    assert answer.code == 3
    assert answer.json["exit_code"] == 3
    assert set(answer.json["error"]) == {"problem", "cause", "fix"}


def test_tracebacks_only_with_vv(wright):
    assert "Traceback" not in wright("inspect", "absent.onnx", "-v").err
    assert "Traceback" in wright("inspect", "absent.onnx", "-vv").err


def test_a_reader_that_goes_away_is_not_an_error():
    done = subprocess.run(
        f"'{SCRIPT}' completion bash | head -c 1", shell=True, capture_output=True, timeout=60, check=False
    )
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_completion_scripts_are_for_this_command(wright, shell):
    answer = wright("completion", shell)
    assert answer.code == 0
    assert "_WRIGHT_COMPLETE" in answer.out


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("wright ins", "plain,inspect"),
        ("wright sys --", "plain,--json"),
        ("wright perf mod", "file,mod"),
        ("wright build m.onnx --target qn", "plain,qnn-npu"),
        ("wright build m.onnx --precision w8", "plain,w8a16"),
        ("wright build m.onnx --passes portable,unf", "plain,portable,unfuse"),
        ("wright build m.onnx --passes portable,-constant_f", "plain,portable,-constant_folding"),
        ("wright eval m.onnx --task image-c", "plain,image-classification"),
        ("wright eval m.onnx --data ra", "plain,random"),
    ],
)
def test_completion_knows_commands_options_files_and_words(wright, typed, offered):
    env = {"_WRIGHT_COMPLETE": "bash_complete", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    assert offered in wright(env=env).out


def test_powershell_is_answered_with_kind_value_and_help(wright):
    words = {"COMP_WORDS": "wright\nbuild\nm.onnx\n--target\nqnn-n", "COMP_WORD": "qnn-n"}
    assert wright(env={"_WRIGHT_COMPLETE": "powershell_complete", **words}).out == "plain\tqnn-npu\t\n"
    assert "Register-ArgumentCompleter -Native -CommandName wright" in wright("completion", "powershell").out


def test_a_command_with_a_missing_dependency_is_listed_with_the_reason(monkeypatch):
    from modelwright.cli import _app, _commands

    lame = _commands.Command("fly", "modelwright.cli.fly", "Fly.", "Look", ("no_such_module",), "wings")
    monkeypatch.setattr(_commands, "COMMANDS", (*COMMANDS, lame))
    assert "fly         Fly. [unavailable: needs no_such_module: pip install 'modelwright[wings]']" in root_help()
    assert _app.run(["fly", "--high"]) == 4


@pytest.mark.parametrize("words", [("build", "-m", "m.onnx", "-o", "CON"), ("perf", "m.onnx", "--save", "nul.json")])
def test_reserved_names_are_refused_before_any_work(wright, words):
    answer = wright(*words)
    assert answer.code == 2
    assert "Windows keeps that name for a device" in answer.err


def test_a_group_alone_names_what_it_has_in_one_line(wright):
    answer = wright("kb")
    assert answer.code == 2
    assert "it has add, explain," in answer.err
    assert "\\n" not in answer.err


def test_a_cluster_that_is_named_and_not_used_is_no_measurement_here(wright):
    answer = wright("perf", "model.onnx", "--scheduler", "tls://there:8786")
    assert (answer.code, answer.out) == (2, "")
    assert "--scheduler needs --on" in answer.err
