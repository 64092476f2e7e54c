"""The answer of `wright advise`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from modelwright._lazy import lazy
from modelwright.answers import Decision, Offer, WantedLimits, held, open_about
from modelwright.report._tables import Col, fitted
from modelwright.report._units import human_bytes

if TYPE_CHECKING:
    import rich.console
    import rich.text
else:
    rich = lazy("rich")

_STYLES = {"good": "green", "fair": "yellow", "bad": "red"}
_JUDGED = {True: "gate passed", False: "gate failed", None: "not judged"}
_HELD = {True: "holds", False: "does not", None: "cannot tell"}


def render_decision(found: Decision, console: rich.console.Console) -> None:
    console.print(rich.text.Text(advice(found), style=_STYLES[tone(found)]), soft_wrap=True)
    columns = [
        Col("build", "name"),
        Col("asked"),
        Col("typical run", "number"),
        Col("nine of ten", "number"),
        Col("memory", "number"),
        Col("size", "number"),
        Col("accuracy", "text"),
    ]
    console.print(fitted(columns, [offer_cells(offer, found) for offer in found.offers], console.width))
    for reason in found.reasons:
        console.print(rich.text.Text(f"why: {reason}"), soft_wrap=True)
    for words in found.would_change:
        console.print(rich.text.Text(f"not chosen: {words}", style="dim"), soft_wrap=True)
    for words in next_steps(found):
        console.print(rich.text.Text(f"next: {words}", style="cyan"), soft_wrap=True)
    for words in found.changed:
        console.print(rich.text.Text(f"changed since: {words}", style="yellow"), soft_wrap=True)
    if found.replayed is not None and not found.changed:
        console.print(rich.text.Text(f"as in {found.replayed}: nothing changed", style="green"), soft_wrap=True)


def tone(found: Decision) -> Literal["good", "fair", "bad"]:
    return "fair" if found.undecided else "good" if found.chosen else "bad"


def advice(found: Decision) -> str:
    if found.chosen is not None:
        rivals = [offer.name for offer in found.offers if open_about(offer, found.wanted)]
        unless = f"; whether {' or '.join(rivals)} would be better is not decided" if rivals else ""
        return f"take {found.chosen}{unless}"
    return "cannot tell: nothing is shown to hold everything" if found.undecided else "nothing holds everything"


def next_steps(found: Decision) -> list[str]:
    """What decides about those that are open."""
    return [f"{offer.name}: {offer.fix}" for offer in found.offers if offer.fix and open_about(offer, found.wanted)]


def offer_cells(offer: Offer, found: Decision) -> tuple[str, ...]:
    def milliseconds(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.3g} ms"

    def size(value: int | None) -> str:
        return "unknown" if value is None else human_bytes(value)

    return (
        offer.name,
        "nothing" if found.wanted == WantedLimits() and held(offer, found.wanted) else _HELD[held(offer, found.wanted)],
        milliseconds(offer.typical_ms),
        milliseconds(offer.nine_of_ten_ms),
        size(offer.peak_bytes),
        size(offer.size_bytes),
        offer.accuracy or _JUDGED[offer.passed] if offer.usable else "unknown",
    )
