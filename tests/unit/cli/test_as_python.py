"""Whatever is said to a command, the program of `--as-python` makes the very call that the command would."""

import importlib
import inspect
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

import modelwright as mw
from modelwright.cli._call import VerbCall
from modelwright.errors import UsageError

DATA = "--data d.npz --samples 9 --seed 3 --scale 1/255 --mean 0.5 --std 1,2,3 --size 10x20 --layout nhwc"
FIELDS = "--column label=y --labels l.npy --split train --processor p"
FOLDER = "-o out --overwrite --save s.json --memory 8GB --timeout 30m"
SIZES = "--batch 3 --dim n=3 --dim m=4"
COMMANDS = [
    f"build m.onnx --target cpu --target qnn-npu --precision w8a8 --passes none --force --dim n=3 --opset 17 {FOLDER}",
    f"build m.onnx {DATA} {FIELDS} -r r.toml --max-drop 1pt --ep-option a=b --no-compile --scheduler tls://h:1 --tls c",
    "build m.onnx --input-type uint8 --input-layout nhwc --input-scale 1/255 --input-mean 1,2,3 --input-std 2",
    "build hf --task t --revision r --random-weights --trust-remote-code --plan",
    f"export hf --task t --revision r --random-weights --trust-remote-code --opset 17 {FOLDER}",
    f"optimize m.onnx --passes none --dim n=3 --opset 17 {FOLDER}",
    f"quantize m.onnx -p w8a8 --method mse --per-tensor --symmetric --target qnn-npu --op-types Conv,Gemm {FOLDER}",
    f"quantize m.onnx -p w8a8 --exclude a --exclude b --override t=uint16 --no-reduce-range {DATA} {FIELDS}",
    f"compile m.onnx --target qnn-npu --dim n=3 --ep-option a=b --embed {FOLDER}",
    f"config m.onnx --ep qnn --device npu --precision w8a8 --random-weights {DATA} {FIELDS}",
    "analyze m.onnx --target cpu --no-suggest --max-fallback 2% --component c --html p.html",
    "inspect m.onnx n.onnx --dim n=3 --component c --save s.json",
    f"perf m.onnx --iterations 3 --warmup 5 --sessions 2 --threads 1 --ep-option a=b --runtime r --no-wait {SIZES}",
    "perf m.onnx --duration 3 --op-trace detail --trace-chrome t.json --trace-html t.html --monitor --html p.html",
    f"compare m.onnx n.onnx,threads=2 --budget 9 --min-effect 3% --alpha 0.1 --by p50 --allow-different {SIZES}",
    f"compare m.onnx n.onnx --max-slowdown 2% --no-operators --measure-duplicates --no-wait {DATA} --retry R",
    "compare m.onnx n.onnx --against R --threads 3 --html p.html",
    f"eval m.onnx --reference n.onnx {DATA} {FIELDS} --task t --set k=v --max-drop 1% --span 2 --reference-target cpu",
    "eval m.onnx --reference n.onnx --data random --outputs --min-cosine .9 --min-sqnr 20 --retry R --html p.html",
    "eval m.onnx --reference n.onnx --data d.npz --metric f.py:g",
    f"debug m.onnx --reference n.onnx {DATA} --memory-budget 2GiB --component c --save s.json --html p.html",
    "debug b --reference n.onnx --data d.npz --fix --target-sqnr 20 --raise 16bit --budget 10m --save-recipe r.toml",
    "debug b --reference n.onnx --data d.npz --fix --target-drop 1% --metric f.py:g -o out --save s.json --html p.html",
    f"tune m.onnx --latency 20ms --max-memory 8GB --by p50 --again -o out --overwrite --html p.html {SIZES} {DATA}",
    "matrix run list.json --target cpu --target qnn-npu --perf --eval -o out --save s.json --html p.html",
    "publish b --to feed --model n --version 1 --licence MIT",
    "pull feed m --target cpu --precision w8a8 --version 1 -o out --overwrite",
]


class _Answer:
    """What was done with an answer."""

    def __init__(self, verb: str, done: dict) -> None:
        self._verb, self._done, self.op_trace = verb, done, self

    def save(self, path, *more) -> None:
        self._done[path] = [self._verb, *(each._verb for each in more)]

    save_page = save_pages = save


class _Library:
    """`modelwright`, with verbs that only note what they are given."""

    def __init__(self, verbs: set[str]) -> None:
        self.calls, self.done, self._verbs = [], {}, verbs

    def __getattr__(self, name: str):
        if name not in self._verbs:
            return getattr(mw, name)
        return lambda *given, **named: self.calls.append(heard(name, given, named)) or _Answer(name, self.done)


def heard(verb: str, given, named):
    bound = inspect.signature(getattr(mw, verb)).bind(*given, **named)
    bound.apply_defaults()
    return verb, {name: plain(value) for name, value in bound.arguments.items()}


def plain(value):
    """Two spellings of one thing are one: a path and its text, a target and its name, no data and made-up data."""
    if isinstance(value, Path) or type(value).__name__ == "Target":
        return str(value)
    if value == mw.Data():
        return None
    if isinstance(value, list | tuple):
        return plain(value[0]) if len(value) == 1 else [plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return {each.name: plain(getattr(value, each.name)) for each in fields(value)} if is_dataclass(value) else value


def printed(words: str, monkeypatch) -> tuple[str, list]:
    """The program, and the calls that it stands for."""
    calls, python = [], VerbCall.python
    monkeypatch.setattr(VerbCall, "python", lambda self: calls.append(self) or python(self))
    name, *rest = words.split()
    done = CliRunner().invoke(importlib.import_module(f"modelwright.cli.{name}").command, [*rest, "--as-python"])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout, [heard(call.verb, call.given, call.named) for call in calls]


@pytest.mark.parametrize("words", COMMANDS)
def test_the_printed_program_makes_the_call_of_the_command(words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    program, wanted = printed(words, monkeypatch)
    library = _Library({verb for verb, _ in wanted})
    exec(program.replace("import modelwright as mw", ""), {"mw": library})
    assert library.calls == wanted
    first, every = wanted[0][0], [verb for verb, _ in wanted]
    files = [("--save", "s.json", [first]), ("--html", "p.html", every), ("--trace-html", "t.html", [first])]
    files += [("matrix run", file, [first]) for file in ("out/matrix.json", "out")]
    assert library.done == {file: verbs for said, file, verbs in files if f"{said} " in words}


@pytest.mark.parametrize("words", ["optimize m.onnx --check", "optimize --list", "config --schema"])
def test_what_is_no_call_of_the_library_is_not_done_instead_of_printed(words, monkeypatch):
    with pytest.raises(UsageError, match="--as-python has nothing to print"):
        printed(words, monkeypatch)
