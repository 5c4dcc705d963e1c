"""A ProxyCommand of the ssh config, run as ssh runs it: by the shell, on a pair of sockets, with its complaints kept apart."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from straggler.engine.gate import LOCAL_SHELL

ERRORS_KEPT = 2_000


class Proxies:
    """The proxy commands that run. What one wrote to stderr is kept, bounded, for the reason it may have to give."""

    def __init__(self) -> None:
        self._running: dict[asyncio.subprocess.Process, asyncio.Task[None]] = {}

    async def start(self, command: str, errors: bytearray) -> tuple[socket.socket, asyncio.Task[None]]:
        """Our end of the line, and the task that ends with the program; `errors` gets what it complains of.

        Closing the line is what ends an honest proxy.
        """
        ours, theirs = socket.socketpair()
        try:
            child = await asyncio.create_subprocess_exec(
                LOCAL_SHELL,
                "-c",
                f"exec {command}",
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ended = asyncio.get_running_loop().create_task(self._attend(child, errors))
        self._running[child] = ended
        ours.setblocking(False)
        return ours, ended

    async def close(self) -> None:
        """End those that are still there."""
        running = dict(self._running)
        for child in running:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
        await asyncio.gather(*running.values(), return_exceptions=True)

    async def _attend(self, child: asyncio.subprocess.Process, errors: bytearray) -> None:
        if child.stderr is not None:
            while data := await child.stderr.read(4096):
                errors += data[: max(0, ERRORS_KEPT - len(errors))]
        await child.wait()
        self._running.pop(child, None)
