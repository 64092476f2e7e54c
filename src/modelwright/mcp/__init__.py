"""`wright mcp`: the verbs of the library as tools of the Model Context Protocol, on the official SDK.

Every call runs in a process of its own, on files under the roots and no others, and can be cancelled.
"""

from typing import TYPE_CHECKING

from modelwright._lazy import lazy_names
from modelwright.mcp._limits import ServerChoices, read_choices

# The process of a call is a module of this room, and has no use for the SDK.
if TYPE_CHECKING:
    from modelwright.mcp._server import offered_tools, serve
else:
    __getattr__ = lazy_names(__name__, offered_tools="_server", serve="_server")

__all__ = ["ServerChoices", "offered_tools", "read_choices", "serve"]
