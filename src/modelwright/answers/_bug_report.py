"""A bug report that somebody else can act on: versions, what was asked, what was said, the model by digest."""

from __future__ import annotations

import re
from pathlib import Path

from modelwright._output import SEAL, write_output
from modelwright.answers._types import Cause, Diagnosis
from modelwright.evidence import Environment

NAME = "report.md"
_FOLDERS = re.compile(r"(?<![\w.:/])(?:[A-Za-z]:)?[\\/](?:[^\s\"':;,\\/`]+[\\/])+")


def bug_report(found: Diagnosis, environment: Environment, call: str) -> str:
    """Markdown; nothing in it names a person, a folder of theirs or a machine."""
    parts = [f"# {_title(found)}", "", *_asked(found, call), *_versions(environment), *_seen(found), *_model(found)]
    return _FOLDERS.sub("", "\n".join(parts)) + "\n"


def write_bug_report(folder: Path, found: Diagnosis, environment: Environment, call: str) -> Path:
    path = folder / NAME
    folder.mkdir(parents=True, exist_ok=True)
    write_output(path, f"{bug_report(found, environment, call)}\n<!-- {SEAL} -->\n")
    return path


def _title(found: Diagnosis) -> str:
    what = found.causes[0].sentence if found.causes else f"{found.symptom or 'a symptom'} without a known cause"
    return f"{found.target}: {what}"


def _asked(found: Diagnosis, call: str) -> list[str]:
    small = found.smallest
    lines = ["## To reproduce", "", "```", call, "```", ""]
    if small is not None:
        held = "nothing more can be left out" if small.minimal else "less may do"
        lines += [
            f"`{Path(small.path).name}` (sha256 {small.digest}) is the model cut to {len(small.operators)} of "
            f"{small.of} operators that still shows it ({held}): {', '.join(small.operators)}.",
            "",
        ]
    return lines


def _versions(environment: Environment) -> list[str]:
    host = environment.host
    rows = [f"- {name} {version}" for name, version in sorted(environment.packages.items())]
    return ["## Versions", "", f"- {host.system} {host.machine}, CPU: {host.cpu.model or 'unknown'}", *rows, ""]


def _seen(found: Diagnosis) -> list[str]:
    marks = {True: "good", False: "bad", None: "unknown"}
    lines = ["## What was seen", "", *(f"- {look.what}: {marks[look.ok]}: {look.said}" for look in found.looked_at), ""]
    for cause in found.causes:
        lines += _cause(cause)
    return lines + [f"- open: {words}" for words in found.undecided]


def _cause(cause: Cause) -> list[str]:
    held = {True: "cures it", False: "does not cure it", None: "cannot tell"}
    tried = [f"- tried {cure.title} ({cure.how}): {held[cure.held]}: {cure.after}" for cure in cause.cures]
    return [f"### {cause.sentence} ({cause.rule})", "", *(f"- {fact}" for fact in cause.shown_by), *tried, ""]


def _model(found: Diagnosis) -> list[str]:
    return ["## Model", "", *(f"- {file.name}: sha256 {file.sha256}, {file.size:,} bytes" for file in found.files)]
