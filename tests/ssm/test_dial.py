"""The socket itself: encrypted and checked, through proxies as the environment says, and told in words when it is not to be had."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from straggler.engine.errors import TransportError
from straggler.engine.model import Status
from tests.ssm.asking import ask, fleet, said, saying
from tests.ssm.fake_service import CANARY, FakeService


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 that nobody has signed but itself, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "ssmmessages")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def service(certificate: Path) -> FakeService:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return FakeService(tls=context)


async def test_a_certificate_nobody_vouches_for_is_refused_before_the_token_is_sent(
    service: FakeService,
) -> None:
    async with fleet(service) as transport:
        asked = await ask(transport, saying("x"))
    assert isinstance(asked.error, TransportError)
    assert "not trusted" in asked.error.why
    assert not asked.error.transient
    [told] = service.sessions.values()
    assert told.opened == 0


async def test_a_bundle_named_in_the_environment_is_trusted(
    service: FakeService, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    async with fleet(service) as transport:
        asked = await ask(transport, saying("hello"))
    assert asked.error is None
    assert asked.data == said("hello")


async def test_a_bundle_that_is_not_there_is_told(
    service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", "/nonexistent/bundle.pem")
    async with fleet(service) as transport:
        asked = await ask(transport, saying("x"))
    assert isinstance(asked.error, TransportError)
    assert "AWS_CA_BUNDLE" in asked.error.why


@pytest.mark.parametrize(
    ("proxy", "word"), [("http://127.0.0.1:1", "no connection"), ("socks5://127.0.0.1:1", "python-socks")]
)
async def test_a_proxy_that_does_not_work_is_told(
    service: FakeService, proxy: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("straggler.engine.transports.ssm_channel.OPEN_TRIES", 1)
    monkeypatch.setenv("https_proxy", proxy)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with fleet(service) as transport:
        asked = await ask(transport, saying("x"))
    assert isinstance(asked.error, TransportError)
    assert word in asked.error.why
    assert CANARY not in asked.error.why
    assert asked.error.status in (Status.UNREACHABLE, Status.FAILED)


async def test_an_endpoint_that_takes_the_connection_and_says_nothing_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("straggler.engine.transports.ssm_channel.OPEN_TRIES", 1)
    monkeypatch.setattr("straggler.engine.transports.ssm_dial.OPEN_SECONDS", 0.2)

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    deaf = await asyncio.start_server(listen, "127.0.0.1", 0)
    service = FakeService()
    async with deaf, fleet(service) as transport:
        service.port = deaf.sockets[0].getsockname()[1]
        asked = await ask(transport, saying("x"))
    assert isinstance(asked.error, TransportError)
    assert asked.error.status is Status.UNREACHABLE
    assert asked.error.transient
