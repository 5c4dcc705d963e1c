"""Sessions that the account has encrypted with a KMS key: the data key, and what is done with its two halves.

The client asks KMS for 64 bytes and sends the agent their encrypted form. The agent encrypts with the first half, the
client with the second: AES-256-GCM, the 12-byte nonce in front (public clients, read 2026-12-01).
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from straggler.engine.transports.ssm_wire import WireError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 64
NONCE_BYTES = 12


class Cipher:
    """Opens what the agent sealed and seals what it is to open. Its repr tells nothing of the key."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        if len(key) != KEY_BYTES:
            raise WireError("a data key of the wrong length")
        self._theirs: AESGCM = AESGCM(key[: KEY_BYTES // 2])
        self._ours: AESGCM = AESGCM(key[KEY_BYTES // 2 :])

    def open(self, data: bytes) -> bytes:
        """Raises WireError for what was not sealed with this session's key."""
        from cryptography.exceptions import InvalidTag

        if len(data) < NONCE_BYTES:
            raise WireError("shorter than a nonce")
        try:
            return self._theirs.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], None)
        except InvalidTag as error:
            raise WireError("not encrypted with the key of this session") from error

    def seal(self, data: bytes) -> bytes:
        nonce = secrets.token_bytes(NONCE_BYTES)
        return nonce + self._ours.encrypt(nonce, data, None)


def context(session: str, target: str, challenge: str) -> dict[str, str]:
    """What KMS binds the data key to. Newer agents add a challenge of their own."""
    bound = {"aws:ssm:SessionId": session, "aws:ssm:TargetId": target}
    return bound | ({"aws:ssm:RandomChallenge": challenge} if challenge else {})
