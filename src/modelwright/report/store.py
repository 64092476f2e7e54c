"""The answers of `wright cache`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from modelwright._json import dumps
from modelwright._lazy import lazy
from modelwright.report._tables import Col, fitted
from modelwright.report._units import human_bytes
from modelwright.store import GcReport, VerifyReport

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")


SHOWN = 100  # of what may be a hundred thousand


def render_entries(found: Mapping[str, Any], console: rich.console.Console) -> None:
    entries, stats = found["entries"], found["stats"]
    if stats.entries > len(entries):
        console.print(f"… {stats.entries - len(entries)} that were used before these; --all shows them")
    if entries:
        columns = [Col("key"), Col("stage"), Col("what", "name"), Col("size", "number"), Col("last used", drop=1)]
        rows = [
            (
                entry.key.digest[:12],
                entry.key.stage,
                entry.label,
                human_bytes(entry.size),
                _ago(time.time() - entry.last_used),
            )
            for entry in entries
        ]
        console.print(fitted(columns, rows, console.width))
    records = f" and {stats.records} records" if stats.records else ""
    console.print(f"{stats.entries} entries{records}, {human_bytes(stats.bytes)} in {stats.path}", soft_wrap=True)


def render_artifact(found: Mapping[str, Any], console: rich.console.Console) -> None:
    entry = found["entry"]
    words = (entry.key.digest, "bold"), f"  {entry.key.stage}  {entry.label}"
    console.print(rich.text.Text.assemble(*words), soft_wrap=True)
    if found["files"] is None:
        console.print("damaged: it was set aside and will be made again when asked for")
        return
    for file in found["files"]:
        console.print(f"  {file.role:<12} {file.name}  {human_bytes(file.size)}  {file.digest[:12]}", soft_wrap=True)
    if found["meta"]:
        for line in dumps(found["meta"]).split("\n"):
            console.print(line, soft_wrap=True)


def render_verification(report: VerifyReport, console: rich.console.Console) -> None:
    for word, found in (("damaged", report.damaged), ("missing", report.missing)):
        for damage in found:
            words = (word, "red"), f" {damage.digest[:12]}: {damage.reason}"
            console.print(rich.text.Text.assemble(*words), soft_wrap=True)
    checked = f"{report.checked_blobs} files, {human_bytes(report.checked_bytes)} read again"
    bad = len(report.damaged) + len(report.missing)
    lost = [key for damage in (*report.damaged, *report.missing) for key in damage.entries if key.is_record]
    again = "they will be made again" if not lost else f"records lost: {', '.join(map(str, lost))}"
    console.print(f"{checked}: {'all good' if report.clean else f'{bad} bad, set aside; {again}'}", soft_wrap=True)


def render_gc(report: GcReport, console: rich.console.Console) -> None:
    before = len(report.removed) - SHOWN
    if before > 0:
        console.print(f"  … {before} that were used before these; --json names all", soft_wrap=True)
    for entry in report.removed[max(0, before) :]:
        console.print(
            f"  {entry.key.digest[:12]} {entry.key.stage} {entry.label} {human_bytes(entry.size)}",
            soft_wrap=True,
        )
    verb = "would remove" if report.dry_run else "removed"
    busy = f", {report.leased} in use stayed" if report.leased else ""
    kept = f", {report.records} records kept" if report.records else ""
    console.print(
        f"{verb} {len(report.removed)} entries, {human_bytes(report.freed_bytes)}; "
        f"{human_bytes(report.kept_bytes)} left{busy}{kept}"
    )


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now"
