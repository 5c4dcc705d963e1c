"""The two clients of the fan-out benchmark that are libraries: each runs one command on every host, and again when told to.

    python fanout_client.py straggler|parallel-ssh SSH_CONFIG KEY HOSTS COMMAND ANSWER

It reads lines from stdin; for each it runs the command everywhere over the connections it has and prints the seconds and the
number of right answers. With a closed stdin it runs it once: that is a whole process with first contact.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

CONCURRENCY = 64


def rounds() -> Iterator[None]:
    """One round for the asking, then one for each line of stdin."""
    yield
    for _ in sys.stdin:
        yield


def report(begun: float, answers: int) -> None:
    print(f"{time.perf_counter() - begun:.6f} {answers}", flush=True)


def straggler(config: str, _key: str, hosts: str, command: str, answer: str) -> None:
    from straggler.engine.script import Script
    from straggler.engine.targets.hosts import hosts_target

    target = hosts_target(hosts, ssh_config_file=Path(config))
    script = Script(answer, f"exec {command}\n".encode())

    async def one(gate: asyncio.Semaphore, at: int) -> bool:
        async with gate:
            said = [data async for data in target.transport.run(target.nodes[at], script)]
        return b"".join(said).decode().strip() == answer

    async def everywhere() -> None:
        loop = asyncio.get_running_loop()
        gate, turns = asyncio.Semaphore(CONCURRENCY), rounds()
        # A turn may wait for stdin: in a thread, so that kept connections stay served.
        while await loop.run_in_executor(None, lambda: next(turns, "end")) != "end":
            begun = time.perf_counter()
            report(begun, sum(await asyncio.gather(*(one(gate, at) for at in range(len(target.nodes))))))
        await target.transport.close()

    asyncio.run(everywhere())


def parallel_ssh(config: str, key: str, hosts: str, command: str, answer: str) -> None:
    from pssh.clients import ParallelSSHClient

    from straggler.engine.nodesets import parse_hosts

    del config  # it reads none
    names = [one.host for one in parse_hosts(hosts)]
    client = ParallelSSHClient(names, user="root", pkey=key, allow_agent=False, pool_size=CONCURRENCY)
    for _ in rounds():
        begun = time.perf_counter()
        output = client.run_command(command)
        client.join(output)
        report(begun, sum("".join(one.stdout).strip() == answer for one in output))


CLIENTS: dict[str, Callable[[str, str, str, str, str], None]] = {
    "straggler": straggler,
    "parallel-ssh": parallel_ssh,
}

if __name__ == "__main__":
    CLIENTS[sys.argv[1]](*sys.argv[2:7])
