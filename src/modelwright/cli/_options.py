"""Option groups: an option is written once here and means the same in every command."""

from __future__ import annotations

import functools
import logging
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from modelwright import __version__
from modelwright._dataclass import dataclass
from modelwright._json import dumps, plain
from modelwright._lazy import lazy
from modelwright._output import check_output, write_output
from modelwright._text import visible_json
from modelwright.cli._completing import target_names, task_names
from modelwright.cli._flags import in_flags
from modelwright.cli._streams import is_unicode, say
from modelwright.cli._types import Duration, Size
from modelwright.errors import UsageError
from modelwright.vocabulary import RESULT_VERSION, Progress

if TYPE_CHECKING:
    import rich.console

    from modelwright import targets as catalogue
    from modelwright import worker
    from modelwright.report import html as pages
    from modelwright.report import screen as screens
    from modelwright.targets import Target
else:
    pages = lazy("modelwright.report.html")
    screens = lazy("modelwright.report.screen")
    catalogue = lazy("modelwright.targets")
    worker = lazy("modelwright.worker")

F = TypeVar("F", bound=Callable[..., Any])
SCHEMA_VERSION = RESULT_VERSION
LIMITS = "modelwright.limits"
"""Where a command finds what was said about --memory and --timeout."""


@dataclass(frozen=True)
class Output:
    """Where a command's answer goes: a JSON document or a rendering, always on stdout; notes on stderr; a page."""

    json: bool
    quiet: bool
    color: bool
    as_python: bool = False
    save: Path | None = None
    html: Path | None = None

    def answer(self, command: str, result: object, render: Callable[[Any, rich.console.Console], None]) -> None:
        """Print the result of `command`."""
        if self.json:
            document = {"schema_version": SCHEMA_VERSION, "command": command, "tool_version": __version__}
            write_document({**document, **plain(result)})
        else:
            render(result, self.console(sys.stdout))

    def refuse_python(self, option: str) -> None:
        """An answer that no verb of the library gives."""
        if self.as_python:
            raise UsageError(
                f"--as-python has nothing to print for {option}",
                cause="it is no call of the library",
                fix="leave one of them out",
            )

    def draw(self, result: object, *more: object) -> None:
        """Write the page of a result, where --html asks for one."""
        if self.html is not None:
            write_output(self.html, pages.page(result, *more, spoken=_in_options()))
            self.note(f"wrote {self.html}")

    def note(self, text: str) -> None:
        """Something worth knowing that is not the answer."""
        if not self.quiet:
            say(_in_options()(text))

    def tell(self, progress: Progress) -> None:
        self.note(progress.message)

    def console(self, stream: Any) -> rich.console.Console:
        return screens.Screen(stream, color=self.color, spoken=_in_options())


def _in_options() -> Callable[[str], str]:
    """Texts of the library in the words of whoever typed this command."""
    context = click.get_current_context(silent=True)
    command = context.command if context is not None else None
    return lambda text: in_flags(text, command)


def write_document(document: object) -> None:
    """One JSON document on stdout, in ASCII where the stream cannot take all of Unicode."""
    text = visible_json(dumps(document, ascii_only=not is_unicode(sys.stdout)))
    sys.stdout.write(text + "\n")


def output_options(function: F) -> F:
    """Adds --json, -v, -q and --no-color, and hands the command an `Output`."""

    @click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
    @click.option("-v", "--verbose", count=True, help="More detail on stderr; -vv adds tracebacks.")
    @click.option("-q", "--quiet", is_flag=True, help="Only errors on stderr.")
    @click.option("--no-color", is_flag=True, envvar="NO_COLOR", help="No colours (also NO_COLOR=1).")
    @functools.wraps(function)
    def wrapper(*args: Any, as_json: bool, verbose: int, quiet: bool, no_color: bool, **kwargs: Any) -> Any:
        level = logging.ERROR if quiet else (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbose, 2)]
        logging.getLogger().setLevel(level)
        more = {name: kwargs.pop(name) for name in ("as_python", "save") if name in kwargs}
        return function(*args, out=Output(as_json, quiet, not no_color, **more), **kwargs)

    return wrapper  # type: ignore[return-value]


def verb_options(function: F) -> F:
    """Adds --save and --as-python to those of every command: for commands that are a verb of the library."""

    @click.option("--save", type=click.Path(path_type=Path), help="Write everything, every sample too, to this file.")
    @click.option("--as-python", is_flag=True, help="Print the Python that does the same, and do nothing.")
    @output_options
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def optional_model(function: F) -> F:
    """Adds MODEL as an argument and as -m; hands the command `model`, None when neither was given."""

    @click.argument("model", required=False, type=click.Path())
    @click.option("-m", "--model", "named", type=click.Path(), help="MODEL, said with an option.")
    @functools.wraps(function)
    def wrapper(*args: Any, model: str | None, named: str | None, **kwargs: Any) -> Any:
        if model is not None and named is not None:
            raise UsageError(
                "the model is said twice", cause=f"{model} as an argument, {named} with -m", fix="leave one of them out"
            )
        return function(*args, model=model or named, **kwargs)

    return wrapper  # type: ignore[return-value]


def model_options(function: F) -> F:
    """Adds MODEL as an argument and as -m; one of them must be given."""

    @optional_model
    @functools.wraps(function)
    def wrapper(*args: Any, model: str | None, **kwargs: Any) -> Any:
        return function(*args, model=require_model(model), **kwargs)

    return wrapper  # type: ignore[return-value]


def require_model(model: str | None) -> str:
    if not model:
        raise click.MissingParameter(ctx=click.get_current_context(), param_hint="'MODEL'", param_type="argument")
    return model


def retry_option(function: F) -> F:
    """Adds --retry."""
    return click.option(
        "--retry",
        metavar="RECORD",
        type=click.Path(),
        help="Add to an earlier answer of the same command: a file of --save, or the beginning of its record's id.",
    )(function)


def component_option(function: F) -> F:
    """Adds --component."""
    return click.option("--component", help="Which part of a model that was built in several, for example encoder.")(
        function
    )


def html_option(function: F) -> F:
    """Adds --html; stands under `output_options`, whose `Output` it completes."""

    @click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write it as a page to this file.")
    @functools.wraps(function)
    def wrapper(*args: Any, html: Path | None, out: Output, **kwargs: Any) -> Any:
        check_output(html)
        return function(*args, out=replace(out, html=html), **kwargs)

    return wrapper  # type: ignore[return-value]


def dim_option(function: F) -> F:
    """Adds --dim, which hands the command `dims`."""
    return click.option(
        "--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a dynamic dimension; repeatable."
    )(function)


def source_options(function: F) -> F:
    """Adds MODEL and what can be said about a source; hands the command `model` and `about` it."""

    @model_options
    @click.option("--task", shell_complete=task_names, help="What the model is for; by default its architecture says.")
    @click.option("--revision", help="Branch, tag or commit of a Hub model.")
    @click.option("--random-weights", is_flag=True, help="Build a config-only folder with seeded random weights.")
    @click.option("--trust-remote-code", is_flag=True, help="Run Python code that comes with the model.")
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        about = {name: kwargs.pop(name) for name in ("task", "revision", "random_weights", "trust_remote_code")}
        if about["trust_remote_code"]:
            say("warning: Python code that comes with the model will run on this machine")
        return function(*args, about=about, **kwargs)

    return wrapper  # type: ignore[return-value]


def target_options(function: F) -> F:
    """Adds --target (several allowed) or --ep with --device; hands the command `targets`, None when nothing is said."""

    @click.option(
        "--target",
        "targets",
        multiple=True,
        shell_complete=target_names,
        help="EP and device, for example qnn-npu or cpu. Repeatable.",
    )
    @click.option("--ep", help="The execution provider, instead of --target.")
    @click.option("--device", help="The device of --ep: npu, gpu or cpu.")
    @functools.wraps(function)
    def wrapper(*args: Any, targets: tuple[str, ...], ep: str | None, device: str | None, **kwargs: Any) -> Any:
        if (device is not None and ep is None) or (ep is not None and targets):
            raise UsageError(
                "the target is said twice" if targets else "--device needs --ep",
                cause="--target names EP and device in one word, --ep and --device in two",
                fix="use --target qnn-npu, or --ep QNN --device NPU",
            )
        said = (catalogue.make_target(ep, device),) if ep else catalogue.parse_targets(targets)
        return function(*args, targets=said or None, **kwargs)

    return wrapper  # type: ignore[return-value]


def target_option(function: F) -> F:
    """The same for commands that are about one target; hands the command `target`, cpu when nothing is said."""

    @target_options
    @functools.wraps(function)
    def wrapper(*args: Any, targets: tuple[Target, ...] | None, **kwargs: Any) -> Any:
        return function(*args, target=one_target(targets) or "cpu", **kwargs)

    return wrapper  # type: ignore[return-value]


def one_target(targets: tuple[Target, ...] | None) -> str | None:
    """None where nothing is said."""
    if targets is not None and len(targets) != 1:
        raise UsageError(
            "one target at a time", cause="the answer is about one", fix="use `wright build` for several targets"
        )
    return str(targets[0]) if targets else None


def limit_options(function: F) -> F:
    """Adds --memory and --timeout, which hold for every child process the command starts."""

    @click.option("--memory", type=Size(), help="What a stage may hold, for example 8GB. Default: by the model's size.")
    @click.option(
        "--timeout",
        type=Duration("s"),
        help="How long a stage may take, for example 30m. Default: by the model's size.",
    )
    @functools.wraps(function)
    def wrapper(*args: Any, memory: int | None, timeout: float | None, **kwargs: Any) -> Any:
        said = {"memory": memory, "timeout": timeout}
        click.get_current_context().meta[LIMITS] = {name: value for name, value in said.items() if value is not None}
        with worker.limited(memory=memory, timeout=timeout):
            return function(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def effort_option(function: F) -> F:
    return click.option(
        "--effort",
        type=click.Choice(["fast", "normal", "best"]),
        help="How long quantizing may take to keep the accuracy. Default: normal.",
    )(function)


def parse_dims(pairs: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for pair in pairs:
        name, _, size = pair.rpartition("=")
        # What no dimension can be is no size either: int() takes other digits, and refuses very many.
        if not name or not re.fullmatch("[1-9][0-9]{0,17}", size):
            raise UsageError(
                f"cannot read --dim {pair}", cause="it is name=size with a size of at least 1", fix="--dim batch=1"
            )
        found[name] = int(size)
    return found


def ep_option(function: F) -> F:
    """Adds --ep-option; hands the command `provider_options`."""

    @click.option(
        "--ep-option", "provider_options", multiple=True, metavar="KEY=VALUE", help="Option of the EP; repeatable."
    )
    @functools.wraps(function)
    def wrapper(*args: Any, provider_options: tuple[str, ...], **kwargs: Any) -> Any:
        return function(*args, provider_options=parse_pairs("--ep-option", provider_options) or None, **kwargs)

    return wrapper  # type: ignore[return-value]


def parse_pairs(option: str, words: tuple[str, ...]) -> dict[str, str]:
    """`KEY=VALUE` as often as it was given."""
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals or not value:
            raise UsageError(
                f"cannot read {option} {word}", cause="it is written NAME=VALUE", fix=f"{option} name=value"
            )
        found[key] = value
    return found
