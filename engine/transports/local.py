"""This machine, through its own `sh`."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
from collections.abc import AsyncIterator

from straggler.engine.compat import timeout
from straggler.engine.errors import TransportError
from straggler.engine.gate import LOCAL_SHELL
from straggler.engine.model import Node, Status
from straggler.engine.script import Script

GRACE = 5
"""Seconds the script has to tidy up after itself (kill what it started, remove its scratch) before it is killed."""


class LocalTransport:
    """Runs the node script in a child `sh`; nothing but `sh` is ever started here."""

    name = "local"
    limit = 1

    async def run(self, node: Node, script: Script) -> AsyncIterator[bytes]:
        # A pipe of our own: its reading end can be closed though a tool that would not die still holds the other.
        reading, writing = os.pipe()
        with io.FileIO(reading) as ours:
            try:
                # A session of its own: Ctrl-C in the terminal is ours to handle, and no tool can ask there.
                child = await asyncio.create_subprocess_exec(
                    LOCAL_SHELL,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=writing,
                    stderr=asyncio.subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError as error:
                why = f"{LOCAL_SHELL} could not be started: {error.strerror}"
                raise TransportError(Status.UNREACHABLE, why) from error
            finally:
                os.close(writing)
            try:
                output = asyncio.StreamReader()
                pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
                    lambda: asyncio.StreamReaderProtocol(output), ours
                )
                with contextlib.closing(pipe):
                    await _send(child, script)
                    while data := await output.read(65536):
                        yield data
            finally:
                await _end(child)

    async def close(self) -> None:
        """Nothing is kept open."""


async def _send(child: asyncio.subprocess.Process, script: Script) -> None:
    if child.stdin is None:  # pragma: no cover - PIPE was asked for
        raise TransportError(Status.UNREACHABLE, f"{LOCAL_SHELL} has no pipes")
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        child.stdin.write(script.body)
        await child.stdin.drain()
    child.stdin.close()


async def _end(child: asyncio.subprocess.Process) -> None:
    """The script ends by itself or on TERM and leaves nothing; one that cannot is killed with its whole group."""
    if child.returncode is not None:
        return
    # Not child.terminate(): Popen's own signal polls first and may take the exit status away from asyncio.
    with contextlib.suppress(ProcessLookupError):
        os.kill(child.pid, signal.SIGTERM)
    try:
        async with timeout(GRACE):
            await child.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()
