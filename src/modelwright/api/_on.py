"""The driver's side of `on`: the same call on another machine, under the names that things have here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modelwright import evidence, measure
from modelwright._dataclass import dataclass
from modelwright._json import plain
from modelwright._lazy import lazy
from modelwright._scratch import scratch
from modelwright.api._kinds import payload_of
from modelwright.api._model import name_of, source_of
from modelwright.api._opened import opened
from modelwright.api.build import read_recipe
from modelwright.data import DataSource
from modelwright.errors import InputError, UsageError, WrightError
from modelwright.evidence import Environment
from modelwright.models import MANIFEST, BuildSource, HfSource, OnnxSource, fetch, model_files, read_build
from modelwright.vocabulary import Data, On, Result, as_data, silent

if TYPE_CHECKING:
    from modelwright import pipeline
    from modelwright.farm import cluster
    from modelwright.store import FileEntry
else:
    cluster = lazy("modelwright.farm.cluster")
    pipeline = lazy("modelwright.pipeline")

RECEIVED = "received:"
KINDS_OF_VERBS = {"perf": "perf", "compare": "compare", "evaluate": "eval", "debug": "debug", "tune": "tune"}
TIMED = ("perf", "compare", "tune")
HERE = ("on", "store", "on_progress", "watch", "overwrite")
"""What says something about this side."""
_STAYS = {
    "trace_chrome": "the page of a trace is made here, from the answer",
    "output": "build it here from the recipe of the answer",
}
_VARIABLE = "MODELWRIGHT_SCHEDULER"


@dataclass(frozen=True)
class Elsewhere:
    """An answer of another machine: what it is called in its cluster, and its circumstances."""

    result: Result
    machine: str
    environment: Environment
    error: WrightError | None = None


def asked_elsewhere(verb: str, arguments: Mapping[str, Any]) -> Elsewhere:
    """The verb with these arguments, done on the machine that `on` names."""
    said = arguments["on"]
    on = On(said) if isinstance(said, str) else said
    address, tell = _scheduler(on), arguments.get("on_progress") or silent
    with contextlib.ExitStack() as stack:
        parcel = _Parcel(stack, arguments.get("store"))
        given = {name: parcel.pack(name, value) for name, value in arguments.items() if name not in HERE}
        order = cluster.VerbOrder(
            verb, given, parcel.folders, parcel.data, _targets(verb, arguments, given), verb in TIMED
        )
        found = stack.enter_context(cluster.Cluster(address, tls=None if on.tls is None else Path(on.tls)))
        lent = cluster.lend(found, on.name, order, parcel.freight, tell)
    error = None if lent.reply.error is None else lent.reply.error.error()
    if lent.answer is None:
        raise error or cluster.forged("the answer is empty")
    return _unpacked(verb, lent, parcel.names, error)


def _unpacked(verb: str, lent: cluster.Lent, names: Mapping[str, str], error: WrightError | None) -> Elsewhere:
    assert lent.answer is not None
    kind = payload_of(KINDS_OF_VERBS[verb])
    assert kind is not None
    try:
        result = evidence.restored_answer(kind, renamed(lent.answer.whole, _back(names)))
        environment = evidence.restored_answer(Environment, lent.answer.environment)
    except (ValueError, TypeError, KeyError) as wrong:
        raise cluster.forged(f"the answer of {verb}: {str(wrong).splitlines()[0]}") from None
    return Elsewhere(result, lent.machine, environment, error)


def _back(names: Mapping[str, str]) -> Callable[[str], str]:
    longest = sorted(names, key=len, reverse=True)

    def back(text: str) -> str:
        for word in longest:
            text = text.replace(word, names[word])
        return text

    return back


def renamed(form: Any, name: Callable[[str], str]) -> Any:
    """Every text in it, renamed."""
    if isinstance(form, str):
        return name(form)
    if isinstance(form, Mapping):
        return {name(key): renamed(value, name) for key, value in form.items()}
    return [renamed(value, name) for value in form] if isinstance(form, list | tuple) else form


def _scheduler(on: On) -> str:
    found = on.scheduler or os.environ.get(_VARIABLE)
    if not found:
        raise UsageError(
            f"nobody said where {on.name} is",
            cause="there is no `scheduler`",
            fix=f"give its address, tls://HOST:8786, or set {_VARIABLE}",
        )
    return found


def _targets(verb: str, arguments: Mapping[str, Any], given: Mapping[str, Any]) -> tuple[str, ...]:
    """Everything it runs on."""
    arms = [arm["target"] for arm in given["arms"]] if verb == "compare" else []
    default = (given.get("recipe") or {}).get("target", "cpu")
    said = [arguments.get(name) for name in ("target", "reference_target") if name in arguments]
    return tuple(str(target or default) for target in (*said, *(arm for arm in arms if arm is not None)))


class _Parcel:
    """What a call is made of, packed: files by digest, and under which name each thing is known here."""

    def __init__(self, stack: contextlib.ExitStack, store: Any) -> None:
        self._stack, self._store = stack, store
        self.freight = cluster.Freight()
        self.folders: dict[str, tuple[FileEntry, ...]] = {}
        self.names: dict[str, str] = {}
        self.data: Any = None

    def pack(self, name: str, value: Any) -> Any:
        """An argument as JSON."""
        if name in _STAYS and value is not None:
            raise UsageError(
                f"`{name}` is written on this machine, and `on` measures on another",
                cause="no path of one machine means anything on another",
                fix=f"leave it out: {_STAYS[name]}",
            )
        if value is None:
            return None
        packers: dict[str, Callable[[Any], Any]] = {
            "model": lambda model: self._model("model", model),
            "reference": lambda model: self._model("reference", model),
            "arms": lambda arms: [self._arm(number, arm) for number, arm in enumerate(arms)],
            "data": self._samples,
            "metric": self._metric,
            "retry": lambda record: self._record("retry", record),
            "against": lambda record: self._record("against", record),
            "recipe": _recipe,
        }
        if name in packers:
            return packers[name](value)
        return str(value) if name.endswith("target") else plain(value)

    def _arm(self, number: int, said: Any) -> Any:
        arm = measure.parse_arm(said)
        return plain(replace(arm, model=self._model(f"arm{number}", arm.model)))

    def _model(self, slot: str, model: Any) -> str:
        source = source_of(model)
        if isinstance(source, OnnxSource):
            path = Path(source.path)
            files = {file.name: path.parent / file.name for file in model_files(path)}
            return self._put(slot, files, path.name, name_of(model))
        if isinstance(source, HfSource):
            here = fetch(source)
            return self._folder(slot, Path(str(here.folder)), here.files, name_of(model))
        if isinstance(source, BuildSource):
            return self._build(slot, source, name_of(model))
        return self._build(slot, BuildSource(str(self._delivered(source))), source.source)

    def _build(self, slot: str, source: BuildSource, said: str) -> str:
        """What was built, and nothing that somebody put beside it."""
        build = read_build(Path(source.folder))
        inside = next((f"/{part.folder}" for part in build.parts if part.name == source.component), "")
        names = (MANIFEST, *(file.name for file in build.files))
        found = self._folder(slot, build.path, names, said, inside)
        if source.name is not None:  # what it is called stands for its files too
            several = len(build.parts) > 1
            models = {f"{found}/{part.model}": f"{said} {part.name}" if several else said for part in build.parts}
            self.names.update(models)
        return found

    def _folder(self, slot: str, folder: Path, names: Iterable[str], said: str, inside: str = "") -> str:
        files = {f"{folder.name}/{name}": folder / name for name in names}
        return self._put(slot, files, folder.name + inside, said)

    def _delivered(self, result: Any) -> Path:
        place = self._stack.enter_context(opened(self._store))
        folder = self._stack.enter_context(scratch("built"))
        return pipeline.deliver(result, Path(folder, "build"), store=place)

    def _put(self, slot: str, files: Mapping[str, Path], word: str, said: str) -> str:
        self.folders[slot] = tuple(self.freight.add(path, name) for name, path in files.items())
        found = f"{RECEIVED}/{slot}/{word}"
        self.names[found] = said
        return found

    def _samples(self, said: Data | str) -> Any:
        """Files of samples; or the user's function that gives them, whose file travels."""
        data = as_data(said)
        if not data.function:
            self.data = self.freight.value(DataSource(data))
            return None
        if data.labels is not None or data.processor is not None:
            raise UsageError(
                f"{data.source} goes to another machine alone",
                cause="its labels or its processor are other files of this one",
                fix="let the function give everything, or give the samples as files",
            )
        return plain(replace(data, source=self._function("samples", data.source, "data")))

    def _metric(self, said: str) -> str:
        return self._function("metric", said, "metric") if ":" in said else said

    def _function(self, slot: str, said: str, option: str) -> str:
        """A function of the user's: its file travels, and only a worker that was started with trust runs it."""
        file, _, function = said.rpartition(":")
        path = Path(file).expanduser()
        if not path.is_file():
            raise InputError(f"{file} does not exist", cause="no such file", fix=f"Check the path of `{option}`.")
        return f"{self._put(slot, {path.name: path}, path.name, file)}:{function}"

    def _record(self, slot: str, said: str | Path) -> str:
        with opened(self._store) as place:
            path = evidence.record_file(said, place)
            return self._put(slot, {"record.json": path}, "record.json", str(said))


def _recipe(said: Any) -> dict[str, Any]:
    layer = read_recipe(said)
    if "data" in layer:
        raise UsageError(
            "the recipe names data on this machine", cause="`on` measures on another", fix="give it with `data` instead"
        )
    return layer
