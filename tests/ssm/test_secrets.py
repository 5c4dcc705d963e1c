"""A session's token and address are shown by nothing: no log, no repr, no error, whatever goes wrong."""

from __future__ import annotations

import logging
import traceback

import pytest

from straggler.engine.transports.ssm_sessions import Secret
from tests.ssm.asking import NODE, Asked, ask, fleet, saying
from tests.ssm.fake_service import CANARY, FakeService, refusal
from tests.ssm.faults import Faults

WAYS = {
    "well": FakeService(),
    "killed": FakeService({"": Faults(kill=frozenset({2}))}),
    "not resumed": FakeService({"": Faults(kill=frozenset({2}), lose_session=True)}),
    "closed": FakeService({"": Faults(reason=f"token {CANARY[:3]} refused")}),
    "encrypted": FakeService({"": Faults(kms=True)}),
    "wrong key": FakeService({"": Faults(kms=True, wrong_key=True)}),
    "damaged": FakeService({"": Faults(damage=frozenset({0, 1, 2}))}),
}


def told(asked: Asked, transport: object) -> str:
    """All that could be printed of it."""
    error = asked.error
    seen = [repr(asked), repr(transport), repr(vars(transport))]
    while error is not None:
        seen += [repr(error), str(error), repr(error.args), repr(vars(error))]
        seen += traceback.format_exception(type(error), error, error.__traceback__)
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    return "\n".join(seen)


@pytest.mark.parametrize("way", WAYS)
async def test_nothing_shows_a_token(
    way: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    # The fake service logs what it hears; here only the client's own log counts.
    logging.getLogger("websockets.server").setLevel(logging.CRITICAL)
    async with fleet(WAYS[way]) as transport:
        asked = await ask(transport, saying("x"))
        seen = told(asked, transport)
    out, err = capfd.readouterr()
    for text in (seen, caplog.text, out, err, repr(WAYS[way].asked)):
        assert CANARY not in text


@pytest.mark.parametrize("port", [1, 0, 70_000])
async def test_a_connection_that_fails_shows_no_address(port: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    service = FakeService()
    async with fleet(service) as transport:
        service.port = port
        asked = await ask(transport, saying("x"))
        assert asked.error is not None
        assert CANARY not in told(asked, transport)
    assert CANARY not in caplog.text


async def test_a_session_in_an_error_report_is_without_its_token() -> None:
    service = FakeService()
    async with fleet(service) as transport:
        session = await transport._sessions.start(NODE.id, saying("x"))
        assert CANARY not in repr(session)
        assert CANARY not in f"{session} {session!r} {session.token} {session.url}"
        assert CANARY in session.token.reveal()
        await transport._sessions.end(session)
    assert refusal("X").args


def test_a_secret_has_no_other_face() -> None:
    secret = Secret("hush")
    assert "hush" not in f"{secret} {secret!r} {[secret]}"
    assert not hasattr(secret, "__dict__")
