"""Keys that come faster than the screen follows, as they do over a slow link: each acts on what the one before it made.

Textual hands every key that has arrived to what is focused now, and only then acts on the first. `/gpu` sent in one piece
would open a filter and lose the word. Here a key (or a paste) waits until the one before it has been dealt with.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from textual.app import App
from textual.events import Event, Key, Paste
from textual.message import Message

if TYPE_CHECKING:
    from textual.message_pump import MessagePump

LAPS = 2
"""A key's way up, and once more for what its action posted (such as the answer of an input line)."""

PATIENCE = 0.25
"""Seconds after which the next key is let through although the one before was never heard of again (its widget is gone)."""


class Followed(Message, bubble=True, verbose=True):
    """Takes the way a key takes, right behind it."""

    def __init__(self, origin: MessagePump, lap: int, number: int) -> None:
        super().__init__()
        self.origin, self.lap, self.number = origin, lap, number


class OneKeyAtATime(App[None]):
    """An app whose keys are dealt with in order."""

    def __init__(self) -> None:
        super().__init__()
        self._behind: deque[Key | Paste] = deque()
        self._number = 0
        self._under_way = False
        self._giving_up: asyncio.TimerHandle | None = None

    async def on_event(self, event: Event) -> None:
        if not isinstance(event, (Key, Paste)) or event.is_forwarded:
            await super().on_event(event)
        elif self._under_way:
            self._behind.append(event)
        else:
            await self._deal_with(event)

    async def _deal_with(self, key: Key | Paste) -> None:
        self._under_way = True
        self._number += 1
        origin = self.focused or self.screen
        loop = asyncio.get_running_loop()
        self._giving_up = loop.call_later(PATIENCE, self.call_later, self._next_key, self._number)
        await super().on_event(key)
        self._follow(origin, LAPS, self._number)

    def _follow(self, origin: MessagePump, lap: int, number: int) -> None:
        # Once more through this queue at the end: focus moves there.
        if not lap or not origin.post_message(Followed(origin, lap, number)):
            self.call_later(self._next_key, number)

    def on_followed(self, message: Followed) -> None:
        self._follow(message.origin, message.lap - 1, message.number)

    async def _next_key(self, number: int) -> None:
        if number != self._number or not self._under_way:
            return
        if self._giving_up is not None:
            self._giving_up.cancel()
        self._under_way = False
        if self._behind:
            await self._deal_with(self._behind.popleft())
