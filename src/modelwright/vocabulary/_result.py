"""What a verb answers: typed, frozen, and able to be kept, sent and looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from modelwright import __version__
from modelwright._json import canonical, plain
from modelwright._output import SEAL, write_output

RESULT_VERSION = 1


class Result:
    """The base of every answer. `kind` is the word that the command line has for it."""

    kind: ClassVar[str]
    html: ClassVar[Callable[[Result], str] | None] = None
    """Set by whoever can draw results, since a value cannot know its pages."""

    record_id: str | None = None
    """Under which it was kept as a record, once it was."""
    record_text: str | None = None
    """That record: what `save` writes."""

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
        kept = {} if self.record_id is None else {"record_id": self.record_id}
        return {**head, **kept, **self.content()}

    def save(self, path: str | Path) -> Path:
        """Write everything as strict JSON, its record if it has one. An earlier result there is replaced, no other file
        is."""
        text = self.record_text or canonical({**self.to_dict(), "seal": SEAL}).decode() + "\n"
        write_output(Path(path), text)
        return Path(path)

    def _repr_html_(self) -> str | None:
        return None if Result.html is None else Result.html(self)
