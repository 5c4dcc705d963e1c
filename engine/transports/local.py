"""This machine, through its own `sh`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from straggler.engine.errors import TransportError
from straggler.engine.model import Node, Status
from straggler.engine.script import Script


class LocalTransport:
    """Runs the node script in a child `sh`; nothing but `sh` is ever started here."""

    name = "local"
    limit = 1

    async def run(self, node: Node, script: Script) -> AsyncIterator[bytes]:
        pipe = asyncio.subprocess.PIPE
        try:
            child = await asyncio.create_subprocess_exec(
                "/bin/sh", stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.DEVNULL
            )
        except OSError as error:
            raise TransportError(Status.UNREACHABLE, f"/bin/sh could not be started: {error.strerror}") from error
        if child.stdin is None or child.stdout is None:  # pragma: no cover - PIPE was asked for
            raise TransportError(Status.UNREACHABLE, "/bin/sh has no pipes")
        try:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                child.stdin.write(script.body)
                await child.stdin.drain()
            child.stdin.close()
            while data := await child.stdout.read(65536):
                yield data
        finally:
            with contextlib.suppress(ProcessLookupError):
                child.terminate()
            await child.wait()

    async def close(self) -> None:
        """Nothing is kept open."""
