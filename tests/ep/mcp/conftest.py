"""A server as an agent starts it, and the SDK's own client."""

import contextlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from support.models import mlp, save


@dataclass
class Place:
    root: Path
    outside: Path
    home: Path

    @contextlib.asynccontextmanager
    async def client(self, *more: str):
        words = ["mcp", "--root", str(self.root), *more]
        env = {name: value for name, value in os.environ.items() if name.startswith(("MODELWRIGHT", "PATH", "LD_"))}
        server = StdioServerParameters(
            command=str(Path(sys.executable).with_name("wright")), args=words, env=env, cwd=str(self.outside)
        )
        with (self.outside / "server.log").open("w") as log:
            async with Client(stdio_client(server, errlog=log)) as found:
                yield found

    def ask(self, name: str, *more: str, **arguments: Any):
        """One call of one server."""

        async def asked():
            async with self.client(*more) as client:
                return await client.call_tool(name, arguments)

        return anyio.run(asked)


@pytest.fixture
def place(tmp_path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root, outside):
        folder.mkdir()
        save(mlp(), folder)
    return Place(root, outside, tmp_path / "home")
