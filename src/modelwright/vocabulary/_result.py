"""What a verb answers: typed, frozen, and able to be kept, sent and looked at."""

from __future__ import annotations

from collections.abc import Callable
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

    def content(self) -> dict[str, Any]:
        """Everything it says, as plain JSON values."""
        return dict(plain(self))

    def to_dict(self) -> dict[str, Any]:
        """The document that `--json` prints."""
        head = {"schema_version": RESULT_VERSION, "command": self.kind, "tool_version": __version__}
        return {**head, **self.content()}

    def save(self, path: str | Path) -> Path:
        """Write everything as strict JSON. An earlier result there is replaced, no other file is."""
        write_output(Path(path), canonical({**self.to_dict(), "seal": SEAL}).decode() + "\n")
        return Path(path)

    def _repr_html_(self) -> str | None:
        return None if Result.html is None else Result.html(self)
