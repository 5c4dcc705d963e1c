"""A process of the fake agent. Plainly on Popen: asyncio's own leaves pipes open when it is cancelled at the wrong moment."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
from collections.abc import Mapping, Sequence


class Child:
    """Reads never block the loop; `close` ends the process, though not what it has started, and closes its pipes."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], *, terminal: bool, merge: bool) -> None:
        self.err: int | None = None
        if terminal:
            self.out, slave = pty.openpty()
            self.popen = subprocess.Popen(
                argv, stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
            )
            os.close(slave)
            return
        self.out, writing = os.pipe()
        errors = writing
        if not merge:
            self.err, errors = os.pipe()
        try:
            self.popen = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=writing, stderr=errors, env=env
            )
        except OSError:
            for fd in (self.out, *(() if self.err is None else (self.err,))):
                os.close(fd)
            raise
        finally:
            for fd in {writing, errors}:
                os.close(fd)

    async def read(self, fd: int, size: int) -> bytes:
        """Empty at the end."""
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        loop.add_reader(fd, lambda: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:
            loop.remove_reader(fd)
        try:
            return os.read(fd, size)
        except OSError:
            # A terminal nobody holds any longer.
            return b""

    async def wait(self) -> int:
        while self.popen.poll() is None:
            await asyncio.sleep(0.002)
        return self.popen.returncode

    def kill(self) -> None:
        if self.popen.poll() is None:
            self.popen.kill()

    def close(self) -> None:
        self.kill()
        for fd in (self.out, self.err):
            if fd is not None:
                os.close(fd)
        self.popen.wait()
