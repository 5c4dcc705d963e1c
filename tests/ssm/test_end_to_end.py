"""The real node script through the real transport to a node behind the fake service."""

from __future__ import annotations

from straggler.engine.collectors import COLLECTORS
from straggler.engine.gather import gather
from straggler.engine.model import Node, Observation
from straggler.engine.script import Request
from straggler.engine.transports.ssm import SsmTransport
from tests.ssm.fake_service import FakeService, running

TARGET = "sagemaker-cluster:abc123def456_workers-i-0123456789abcdef0"
NODE = Node("i-0123456789abcdef0")


async def test_every_collector_of_a_node_is_answered_in_one_session() -> None:
    seen: list[Observation] = []
    async with running(FakeService()) as service:
        transport = SsmTransport(service, {NODE.id: TARGET}, rate=50)
        await gather(
            [NODE],
            Request(COLLECTORS, 0, 2_000_000_000),
            transport,
            lambda event: seen.append(event) if isinstance(event, Observation) else None,
        )
        await transport.close()
        assert len(service.started) == 1
        assert service.left == set()
    assert {one.collector for one in seen} == {one.id for one in COLLECTORS}
    identity = next(one for one in seen if one.collector == "identity")
    assert "TRUNC" not in identity.status.value
    assert identity.text
