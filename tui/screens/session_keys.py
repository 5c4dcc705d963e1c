"""What keys do to the session: read again, check again, stop, acknowledge, copy, leave."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING

from straggler.engine.errors import StragglerError
from straggler.engine.model import Finding, Level, Node
from straggler.engine.nodesets import fold
from straggler.engine.rules import pairs
from straggler.engine.safetext import safe
from straggler.tui.items import key_of, nodes
from straggler.tui.live import READING
from straggler.tui.panes.findings import FindingsPane
from straggler.tui.panes.matrix import MatrixPane
from straggler.tui.panes.nodes import NodesPane
from straggler.tui.panes.output import OutputPane
from straggler.tui.panes.remedy import RemedyPane
from straggler.tui.panes.text import TextPane
from straggler.tui.screens.views import Views
from straggler.tui.textblocks import finding_text

if TYPE_CHECKING:
    from pathlib import Path

    from straggler.engine.acknowledge import Acks

RECORDING = "this is a recording: nothing can be read again; open the live target for that"


class SessionKeys(Views):
    """The acting half of the main screen."""

    acks: Acks | None = None
    state_dir: Path | None = None

    def say(self, text: str, *, bad: bool = False) -> None:
        raise NotImplementedError

    def copy(self, text: str, what: str) -> None:
        raise NotImplementedError

    def begin(self) -> None:
        """Start judging, and reading or replaying."""
        self.run_worker(self.live.judge_forever(), group="judge")
        work = self.live.play() if self.live.recording else self.live.gather(self.state_dir)
        self.run_worker(self._reading(work), group=READING)
        if self.live.diagnosis.target.follow and not self.live.recording:
            self.run_worker(self._reading(self.live.follow()), group="results")

    async def _reading(self, work: Awaitable[object]) -> None:
        """Whatever goes wrong while reading is said, and what came is kept."""
        try:
            await work
        except asyncio.CancelledError:
            self.live.changed = True
            raise
        except StragglerError as error:
            self.live.trouble = str(error)
        except Exception as error:  # noqa: BLE001 - the session on screen must outlive it
            self.live.trouble = f"reading stopped ({type(error).__name__}: {error}); what was read is kept"
        self.live.changed = True

    def stop_reading(self) -> None:
        self.workers.cancel_group(self, READING)
        self.say("stopped: what came is kept, unread nodes say so; R reads them")

    def action_reread(self) -> None:
        name = self.chosen_node if self.active == "output" else self.query_one(NodesPane).node
        if name is not None:
            self._reread([self.live.node(name)])

    def action_reread_unread(self) -> None:
        if unread := self.live.unread():
            self._reread(unread)
        else:
            self.say("every node was read whole")

    def _reread(self, chosen: list[Node]) -> None:
        if self.live.recording:
            self.say(RECORDING)
        elif self.live.running:
            self.say("still reading; Esc stops it")
        else:
            self.say(f"reading {fold(one.id for one in chosen)} again")
            self.run_worker(self._reading(self.live.reread(chosen)), group=READING)

    def recheck(self, finding: Finding) -> None:
        if self.live.recording:
            self.say(RECORDING)
        elif finding.rule == pairs.ID:
            self.say("pairs are not run from here: the remedy says which run settles it (straggler sweep)")
        elif self.live.running:
            self.say("still reading; Esc stops it")
        else:
            self.say(
                f"checking again on {nodes(len(finding.subjects))}: only what this finding rests on is read"
            )
            self.run_worker(self._reading(self._recheck(finding)), group=READING)

    async def _recheck(self, finding: Finding) -> None:
        one = await self.live.recheck(finding)
        after = "no longer seen" if one.after is None else f"now {one.after.level.value}"
        self.say(f"checked again: was {finding.level.value}, {after}")

    def show_evidence(self, finding: Finding) -> None:
        """The reply the finding rests on, of the first node it shows on, with the telling lines marked."""
        from straggler.engine import triage

        if finding.rule == pairs.ID:
            self.go("matrix")
            return
        self.marked = frozenset(one.text.strip() for one in finding.evidence)
        self.show_node(finding.subjects[0])
        self.go("output")
        collectors = triage.recheck(finding.rule)
        if collectors:
            self.query_one(OutputPane).show_reply(collectors[0].id, self.marked)

    def go(self, name: str) -> None:
        raise NotImplementedError

    # Acknowledging.

    def acknowledged(self, findings: tuple[Finding, ...]) -> dict[tuple[str, ...], str]:
        """Which findings somebody has set aside, and until when (UTC)."""
        if self.acks is None or not self.acks.by_fingerprint:
            return {}
        now = self.live.clock()
        found = (
            (one, self.acks.of(one, now))
            for one in findings
            if one.level.is_fault or one.level is Level.UNKNOWN
        )
        return {
            key_of(one): time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(ack.until))
            for one, ack in found
            if ack is not None
        }

    def acknowledge(self, finding: Finding) -> None:
        self.run_worker(self._acknowledge(finding), group="acknowledge", exclusive=True)

    async def _acknowledge(self, finding: Finding) -> None:
        from straggler.tui.screens.acknowledge import AcknowledgeScreen

        if self.acks is None:
            return
        now = self.live.clock()
        if self.acks.is_acknowledged(finding, now):
            self.acks = await self.live.beside(partial(self.acks.withdraw, finding))
            self.say("no longer set aside")
            self.live.changed = True
            return
        told = await self.app.push_screen_wait(AcknowledgeScreen(safe(finding.title, limit=200), now))
        if told is None:
            return
        self.acks = await self.live.beside(
            partial(self.acks.acknowledge, finding, told.until, told.note, now=now)
        )
        until = time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(told.until))
        self.say(
            self.acks.trouble or f"set aside until {until}; it comes back sooner when it changes",
            bad=bool(self.acks.trouble),
        )
        self.live.changed = True

    # Copying.

    def action_copy(self) -> None:
        """What the pane one is in is about: a command, a reply, a finding, a node."""
        if self.active == "remedy":
            pane = self.query_one(RemedyPane)
            if pane.command is not None:
                self.copy(pane.command.command, "command")
            elif pane.remedy is not None:
                self.copy(finding_text(pane.remedy.finding), "finding")
        elif self.active == "output":
            self.copy(self.query_one(OutputPane).reply, "reply")
        elif self.active == "nodes":
            self._copy_node()
        elif self.active == "findings":
            finding = self.query_one(FindingsPane).finding
            if finding is not None:
                self.copy(finding_text(finding), "finding")
        elif self.active == "matrix":
            self.copy(self.query_one(MatrixPane).plain, "what the matrix says")
        else:
            self.copy(self.query_one(f"#{self.active}", TextPane).plain, "page")

    def _copy_node(self) -> None:
        pane = self.query_one(NodesPane)
        if pane.rows:
            row = pane.rows[pane.cursor]
            self.copy(" ".join(filter(None, [row.card.name, row.card.names, row.card.place])), "node")
