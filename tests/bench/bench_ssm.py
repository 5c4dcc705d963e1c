"""Sessions through Session Manager: how near the rate a whole fleet comes, and what a byte costs.

The service and its agents run in a process of their own; seconds, CPU and memory are this process's, the product's side alone.

- fleet: nodes that answer 2 s after their session began, at 30 StartSession a second; wall time against nodes ÷ rate;
- first: seconds until the first node, a suspect, has answered;
- reply: one node that says 5 MB, in the messages of 1 KiB that agents send.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from straggler.engine.collectors import COLLECTORS  # noqa: E402
from straggler.engine.frames import encode, encode_done, encode_hello  # noqa: E402
from straggler.engine.gather import Event, NodeEnded, gather  # noqa: E402
from straggler.engine.model import Node, Observation, Status  # noqa: E402
from straggler.engine.script import Request  # noqa: E402
from straggler.engine.transports.ssm import SsmTransport  # noqa: E402

KEY = "3f2c1a4e-0000-4bbb-8ccc-123456789abc"


def reply(size: int) -> bytes:
    """What a node would say to two collectors: half of `size` each. Blocks are bounded, so a large one is noise in between."""
    count = 2
    part = (b"a line of some tool, much like all the others of it\n" * (size // count // 52 + 1))[
        : size // count
    ]
    blocks = b"".join(encode(KEY, at, part[:200_000], b"", 0) + b"\n" + part[200_000:] for at in range(count))
    return f"@@straggler-key {KEY}\n".encode() + encode_hello(KEY, 0, 1) + blocks + encode_done(KEY, count)


def serve(seconds: float, size: int) -> None:
    """The other process: data channels for whatever session is asked for; the port goes to stdout."""
    from websockets.asyncio.server import serve as websocket_server

    from tests.ssm.fake_agent import Agent
    from tests.ssm.fake_service import FakeService, Told
    from tests.ssm.faults import Faults

    class Open(FakeService):
        """Knows every session: the control plane is in the other process."""

        async def _attend(self, socket: Any) -> None:
            name = socket.request.path.partition("?")[0].removeprefix("/v1/data-channel/")
            agent = Agent(
                name, "", "AWS-StartNonInteractiveCommand", True, Faults(), {}, answer=lambda _: said
            )
            self.sessions[name] = Told(name, "", agent.document, f"token-{name}", agent)
            handshake = agent.say

            async def say(payload_type: int, payload: bytes) -> None:
                if payload_type == 7:
                    await asyncio.sleep(seconds)
                await handshake(payload_type, payload)

            agent.say = say  # type: ignore[method-assign]
            try:
                await super()._attend(socket)
            finally:
                del self.sessions[name]

    said = reply(size)

    async def main() -> None:
        service = Open()
        async with websocket_server(service._channel, "127.0.0.1", 0, compression=None) as server:
            print(next(iter(server.sockets)).getsockname()[1], flush=True)
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

    asyncio.run(main())


class Control:
    """StartSession and TerminateSession as far as the product sees them; each takes `seconds`."""

    def __init__(self, port: int, seconds: float = 0.05) -> None:
        self.port, self.seconds = port, seconds
        self.open: set[str] = set()
        self.starts: list[float] = []
        self.most = 0

    async def call(self, service: str, operation: str, **parameters: Any) -> Mapping[str, Any]:
        await asyncio.sleep(self.seconds)
        if operation == "TerminateSession":
            self.open.discard(parameters["SessionId"])
            return {}
        name = uuid.uuid4().hex
        self.open.add(name)
        self.most = max(self.most, len(self.open))
        self.starts.append(time.perf_counter())
        url = f"ws://127.0.0.1:{self.port}/v1/data-channel/{name}?role=publish_subscribe"
        return {"SessionId": name, "TokenValue": f"token-{name}", "StreamUrl": url}


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def memory() -> float:
    """Peak of this process so far, MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def fleet(port: int, count: int, rate: float, latency: float) -> None:
    control = Control(port)
    nodes = [Node(f"node-{number}") for number in range(count)]
    transport = SsmTransport(control, {one.id: one.id for one in nodes}, rate=rate)
    ends: list[float] = []
    good = 0

    def sink(event: Event) -> None:
        nonlocal good
        if isinstance(event, NodeEnded):
            ends.append(time.perf_counter())
        good += isinstance(event, Observation) and event.status is Status.OK

    begun, before = time.perf_counter(), cpu()
    await gather(nodes, Request(COLLECTORS[:2]), transport, sink)
    await transport.close()
    wall, used = time.perf_counter() - begun, cpu() - before
    if good != 2 * count or control.open:
        raise SystemExit(f"{good} of {2 * count} replies came, {len(control.open)} sessions were left open")
    bound = count / rate
    print(
        f"fleet   {count} nodes at {rate:g}/s: {wall:.1f} s, {wall / bound:.3f} x the bound of {bound:.1f} s"
    )
    print(f"        first answer after {ends[0] - begun:.2f} s, at most {control.most} sessions at once")
    print(f"        CPU {used:.1f} s ({1000 * used / count:.1f} ms a node), peak memory {memory():.0f} MB")


async def large(port: int, size: int, runs: int) -> None:
    control = Control(port, 0.0)
    transport = SsmTransport(control, {"node": "node"}, rate=1000)
    from straggler.engine.script import compose

    for _ in range(runs):
        script = compose(Request(COLLECTORS[:2]))
        got, begun, before = 0, time.perf_counter(), cpu()
        async for data in transport.run(Node("node"), script):
            got += len(data)
        wall, used = time.perf_counter() - begun, cpu() - before
        megabytes = got / 1e6
        print(
            f"reply   {megabytes:.1f} MB in {wall:.2f} s: {megabytes / wall:.1f} MB/s,"
            f" {used / megabytes:.3f} CPU s a MB, peak memory {memory():.0f} MB"
        )
    await transport.close()


class Server:
    def __init__(self, seconds: float, size: int) -> None:
        words = [sys.executable, __file__, "--serve", str(seconds), str(size)]
        self._process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=dict(os.environ)
        )
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=30)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="few nodes, small replies: does it still work?")
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=30)
    parser.add_argument("--latency", type=float, default=2, help="seconds until a node answers")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(float(args.serve[0]), int(args.serve[1]))
        return
    count, latency, size = (40, 0.2, 200_000) if args.smoke else (args.nodes, args.latency, 5_000_000)
    small = Server(latency, 20_000)
    asyncio.run(fleet(small.port, count, args.rate, latency))
    small.close()
    big = Server(0.0, size)
    asyncio.run(large(big.port, size, 1 if args.smoke else 3))
    big.close()


if __name__ == "__main__":
    main()
