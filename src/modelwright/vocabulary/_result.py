"""What a verb answers: typed, frozen, and able to be kept, sent and looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from modelwright import __version__
from modelwright._json import canonical, plain
from modelwright._output import SEAL, write_output

RESULT_VERSION = 1


class HasPage:
    """What has a page for a browser. Who can draw sets how, since a value cannot know its pages."""

    page: ClassVar[Callable[..., str] | None] = None

    def save_page(self, path: str | Path, *more: HasPage) -> Path:
        """Write it as a page; a report of `debug` may bring the repair with it. No other file is replaced."""
        assert HasPage.page is not None, "what a verb answers can be drawn"
        write_output(Path(path), HasPage.page(self, *more))
        return Path(path)


class Result(HasPage):
    """The base of every answer. `kind` is the word that the command line has for it."""

    kind: ClassVar[str]
    html: ClassVar[Callable[[Result], str] | None] = None
    """For the cell of a notebook; set as `page` is."""

    record_id: str | None = None
    """Under which it was kept as a record, once it was."""
    record_text: str | None = None
    """That record: what `save` writes."""
    measured_on: str | None = None
    """The machine of a cluster that found it, where another one did."""

    def content(self) -> dict[str, Any]:
        """Everything it says, as plain JSON values."""
        return dict(plain(self))

    def whole(self) -> Any:
        """What `restored` makes the same answer of."""
        return plain(self)

    @classmethod
    def restored(cls, whole: Mapping[str, Any]) -> Result | None:
        """The answer of which this is the whole; None leaves that to its annotations."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """The document that `--json` prints."""
        head = {"schema_version": RESULT_VERSION, "command": self.kind, "tool_version": __version__}
        kept = {"record_id": self.record_id, "measured_on": self.measured_on}
        return {**head, **{name: word for name, word in kept.items() if word is not None}, **self.content()}

    def save(self, path: str | Path) -> Path:
        """Write everything as strict JSON, its record if it has one. An earlier result there is replaced, no other file
        is."""
        text = self.record_text or canonical({**self.to_dict(), "seal": SEAL}).decode() + "\n"
        write_output(Path(path), text)
        return Path(path)

    def _repr_html_(self) -> str | None:
        return None if Result.html is None else Result.html(self)
