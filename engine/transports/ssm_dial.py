"""The WebSocket to the service: opened, and greeted with the session's token.

Nothing the library says about a connection is passed on: its errors and its log may show the address, which is a secret.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import ssl
import uuid
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from straggler.engine.errors import TransportError
from straggler.engine.model import Status
from straggler.engine.transports.ssm_handshake import CLIENT_VERSION
from straggler.engine.transports.ssm_sessions import Session

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

OPEN_SECONDS = 10
PING_SECONDS = 30
"""Until a socket that does not open, or does not answer a ping, is taken for dead."""

LARGEST = 256 * 1024
"""Bytes of one message; the agent's are little more than 1 KiB."""

_SILENT = logging.Logger("straggler.ssm")
_SILENT.addHandler(logging.NullHandler())
_SILENT.setLevel(logging.CRITICAL + 1)

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Dialer:
    """Opens data channels. As for the APIs, AWS_CA_BUNDLE names a file of certificates to trust besides the system's."""

    def __init__(self) -> None:
        self._ca_bundle = os.environ.get("AWS_CA_BUNDLE")
        self.client = str(uuid.uuid4())

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        # Made once: reading the system's certificates takes longer than a handshake.
        context = ssl.create_default_context()
        if self._ca_bundle:
            try:
                context.load_verify_locations(self._ca_bundle)
            except OSError as error:
                why = f"AWS_CA_BUNDLE names no file of certificates that can be read ({error.strerror})"
                raise TransportError(Status.FAILED, why) from error
        return context

    async def open(self, session: Session) -> ClientConnection:
        """Raises TransportError, transient where another try may do."""
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException

        address = session.url.reveal()
        parts = urlsplit(address)
        if parts.scheme != "wss" and not (parts.scheme == "ws" and parts.hostname in _LOOPBACK):
            raise TransportError(Status.FAILED, "the service named an address that is not encrypted; refused")
        socket = None
        try:
            socket = await connect(
                address,
                ssl=self._tls if parts.scheme == "wss" else None,
                open_timeout=OPEN_SECONDS,
                close_timeout=1,
                ping_interval=PING_SECONDS,
                ping_timeout=PING_SECONDS,
                max_size=LARGEST,
                compression=None,
                logger=_SILENT,
                user_agent_header="straggler",
            )
            await socket.send(self._hello(session))
            return socket
        except ssl.SSLCertVerificationError:
            why = "the certificate of the ssmmessages endpoint is not trusted here (a proxy? name its CA in AWS_CA_BUNDLE)"
            transient = False
        except ImportError:
            # The library's own word for it, before anything is sent.
            why, transient = "a SOCKS proxy is set, which needs the Python package python-socks", False
        except InvalidStatus as error:
            status = error.response.status_code
            why, transient = f"the ssmmessages endpoint refused the connection (HTTP {status})", True
        except (TimeoutError, asyncio.TimeoutError, OSError, InvalidHandshake, WebSocketException) as error:
            name = getattr(error, "strerror", None) or type(error).__name__
            why, transient = f"no connection to the ssmmessages endpoint from here ({name})", True
        if socket is not None:
            with contextlib.suppress(WebSocketException, OSError):
                await socket.close()
        # Outside of `except`: the errors above carry the address.
        raise TransportError(Status.UNREACHABLE, why, transient=transient)

    def _hello(self, session: Session) -> str:
        content = {
            "MessageSchemaVersion": "1.0",
            "RequestId": str(uuid.uuid4()),
            "TokenValue": session.token.reveal(),
            "ClientId": self.client,
            "ClientVersion": CLIENT_VERSION,
        }
        return msgspec.json.encode(content).decode()
