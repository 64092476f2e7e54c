"""What was published and pulled, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from modelwright.farm.feeds import PublishResult, PullResult
from modelwright.report._units import human_bytes

if TYPE_CHECKING:
    import rich.console


def render_publish(found: PublishResult, console: rich.console.Console) -> None:
    _line(f"{found.package}", console)
    how = "Was there already" if found.already else "Published"
    lost = "; the answer was lost, and the feed has it" if found.recovered else ""
    _line(f"{how}: {human_bytes(found.bytes_sent)} sent, {human_bytes(found.bytes_there)} were there{lost}.", console)
    _line(f"The feed confirmed the digests of {len(found.confirmed)} of {len(found.files)} files.", console)
    _line(found.reference, console)


def render_pull(found: PullResult, console: rich.console.Console) -> None:
    _line(f"{found.package}", console)
    came = human_bytes(found.bytes_received) if found.bytes_received else "nothing, the store had it"
    _line(f"Received {came}. {len(found.files)} files, each with the digest it was published with.", console)
    _line(f"Written to {found.folder}.", console)


def _line(text: str, console: rich.console.Console) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
