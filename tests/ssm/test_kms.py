"""Encrypted sessions: each side opens only what the other sealed; what is not of this session is refused."""

from __future__ import annotations

import secrets

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from straggler.engine.errors import TransportError
from straggler.engine.model import Status
from straggler.engine.transports.ssm_errors import CredentialsExpired
from straggler.engine.transports.ssm_kms import Cipher, context
from straggler.engine.transports.ssm_wire import WireError
from tests.ssm.asking import ask, fleet, said, saying
from tests.ssm.fake_service import FakeService, refusal
from tests.ssm.faults import Faults

KEY = bytes(range(64))


@given(st.binary(max_size=3000))
def test_the_agents_half_opens_and_ours_seals(data: bytes) -> None:
    agent_seals, agent_opens = AESGCM(KEY[:32]), AESGCM(KEY[32:])
    cipher, nonce = Cipher(KEY), secrets.token_bytes(12)
    assert cipher.open(nonce + agent_seals.encrypt(nonce, data, None)) == data
    sealed = cipher.seal(data)
    assert agent_opens.decrypt(sealed[:12], sealed[12:], None) == data


@given(st.binary(max_size=100))
def test_what_was_not_sealed_for_us_is_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        Cipher(KEY).open(data)
    with pytest.raises(WireError):
        Cipher(KEY).open(Cipher(KEY).seal(data))


def test_no_nonce_comes_twice() -> None:
    cipher = Cipher(KEY)
    assert len({cipher.seal(b"x")[:12] for _ in range(100)}) == 100


def test_a_key_of_another_length_is_refused() -> None:
    with pytest.raises(WireError):
        Cipher(KEY[:32])


def test_the_key_is_bound_to_session_and_target_and_to_the_challenge_where_there_is_one() -> None:
    assert context("s", "t", "") == {"aws:ssm:SessionId": "s", "aws:ssm:TargetId": "t"}
    assert context("s", "t", "c")["aws:ssm:RandomChallenge"] == "c"


async def test_an_encrypted_session_gives_the_same_bytes() -> None:
    async with fleet(FakeService({"": Faults(kms=True)})) as transport:
        asked = await ask(transport, saying("sealed"))
    assert asked.error is None
    assert asked.data == said("sealed")


@pytest.mark.parametrize(
    ("code", "status", "word"),
    [
        ("AccessDeniedException", Status.DENIED, "kms:GenerateDataKey is not allowed"),
        ("DisabledException", Status.DENIED, "encrypts sessions with arn:aws:kms"),
        ("ThrottlingException", Status.TIMED_OUT, "throttled"),
    ],
)
async def test_a_key_that_cannot_be_used_is_told_with_its_name(code: str, status: Status, word: str) -> None:
    service = FakeService({"": Faults(kms=True)})
    service.refusals["GenerateDataKey"] = [refusal(code, "no", "GenerateDataKey")]
    async with fleet(service) as transport:
        asked = await ask(transport, saying("x"))
    assert isinstance(asked.error, TransportError)
    assert (asked.error.status, asked.error.transient) == (status, status is Status.TIMED_OUT)
    assert word in asked.error.why
    assert asked.data == b""


async def test_credentials_that_expire_at_the_key_are_told_as_such() -> None:
    service = FakeService({"": Faults(kms=True)})
    service.refusals["GenerateDataKey"] = [refusal("ExpiredTokenException", "", "GenerateDataKey")]
    async with fleet(service) as transport:
        asked = await ask(transport, saying("x"))
    assert isinstance(asked.error, CredentialsExpired)
