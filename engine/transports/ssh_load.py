"""A session on a node that stays open both ways for as long as load runs there: its stdin is the link the node watches."""

from __future__ import annotations

import contextlib

from straggler.engine.script import Script
from straggler.engine.transports.ssh_session import Reply


class LoadTalk(Reply):
    """Like any reply, but stdin is left open: `say` adds to it, and the node takes its end for the end of the operator."""

    def __init__(self, script: Script) -> None:
        super().__init__(script.body)
        self.nonce = script.nonce

    def say(self, word: bytes) -> None:
        """Nothing is said into a session that has ended: its reader learns that it has."""
        if self._channel is not None and not self._closed:
            with contextlib.suppress(OSError):
                self._channel.write(word)

    def hang_up(self) -> None:
        """End of stdin, nothing else: the node ends what it must and says so."""
        if self._channel is not None and not self._closed:
            with contextlib.suppress(OSError):
                self._channel.write_eof()

    def _send(self) -> None:
        self.say(self._body)
