"""The whole way from a node's mouth to the file: what is planted on a node is not in the journal."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

from straggler.engine.collectors import COLLECTORS
from straggler.engine.errors import TransportError
from straggler.engine.frames import encode, encode_done, encode_hello
from straggler.engine.gather import gather
from straggler.engine.model import Node, Status, Window
from straggler.engine.script import Request, Script
from straggler.engine.session import Journal, describe, recover
from straggler.engine.targets.base import Target

KEY = "AKIA" + "IOSFODNN7EXAMPLE"
CANARIES = {
    "stdout": "hunter2-in-stdout",
    "stderr": "hunter2-in-stderr",
    "banner": "hunter2-in-a-banner",
    "reason": "hunter2-in-a-reason",
    "spec": "hunter2-in-the-spec",
    "flag": "hunter2-in-a-flag",
    "note": "hunter2-in-a-note",
}


class Careless:
    """A transport to nodes that print their credentials wherever they can."""

    name, limit = "careless", 4

    async def run(self, node: Node, script: Script) -> AsyncIterator[bytes]:
        if node.id == "mute":
            raise TransportError(Status.DENIED, f"refused: password={CANARIES['reason']}")
        yield f"Welcome! export API_TOKEN={CANARIES['banner']}\n".encode()
        yield encode_hello(script.nonce, 0, 1)
        stdout = f"AWS_ACCESS_KEY_ID={KEY} DB_PASSWORD={CANARIES['stdout']}\n".encode()
        yield encode(script.nonce, 0, stdout, f'{{"secret": "{CANARIES["stderr"]}"}}'.encode(), 0)
        yield encode_done(script.nonce, 1)

    async def close(self) -> None:
        """Nothing is kept open."""


async def test_what_is_planted_on_a_node_or_in_the_target_is_in_no_file(tmp_path: Path) -> None:
    nodes = (Node("talks"), Node("mute"))
    spec = {
        "hosts": f"bob:{CANARIES['spec']}@x",
        "password": CANARIES["spec"],
        "url": f"https://u:{CANARIES['spec']}@h/",
    }
    target = Target("hosts", "two hosts", nodes, Careless(), {**spec, "hosts": "talks,mute"})
    argv = ["straggler", "--hub-token", CANARIES["flag"], "--hosts", "talks"]
    journal = Journal.create(describe(target, "everything", Window(0.0, 1.0), argv=argv), tmp_path)
    await gather(nodes, Request(COLLECTORS[:1]), Careless(), journal.append)
    journal.append(
        {"kind": "note", "text": f"tried token={CANARIES['note']}", "at": {"api_key": CANARIES["note"]}}
    )
    health = journal.close()
    raw = health.path.read_text()
    assert [where for where, canary in CANARIES.items() if canary in raw] == []
    assert KEY not in raw
    back = recover(health.path)
    assert {event.node for event in back.events} == {"talks", "mute"}
    assert "--hosts" in back.meta["argv"]
