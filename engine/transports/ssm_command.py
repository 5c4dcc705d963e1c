"""The node script as the one parameter of a session document, and the key that keeps its frames from being forged.

The agent splits `command` as shell words and starts it without a shell and without stdin. The parameter is seen by every user
of the node (in the process list) and by whoever may list sessions, so the nonce of the frames is not in it: the node draws one
when the script starts and says it first; `Renamer` gives the frames the nonce that the reader knows.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass

from straggler.engine.errors import TransportError
from straggler.engine.model import Status
from straggler.engine.script import Script

PARAMETER_MAX = 65_535
"""Characters of one document parameter: docs.aws.amazon.com/systems-manager/latest/APIReference/API_StartSession.html."""

_PRELUDE = (
    b"read -r S_NONCE </proc/sys/kernel/random/uuid || exit 2\n"
    b"printf '@@straggler-key %s\\n' \"$S_NONCE\" || exit 129\n"
)


@dataclass(frozen=True, slots=True)
class Document:
    """A session document that can run one command. `terminal`: the agent gives it a pseudo-terminal, and no exit code."""

    name: str
    terminal: bool
    options: Mapping[str, list[str]]


DOCUMENTS = (
    Document("AWS-StartNonInteractiveCommand", False, {"separateOutputStream": ["true"]}),
    Document("AmazonEKS-ExecuteNonInteractiveCommand", False, {}),
    Document("AWS-StartInteractiveCommand", True, {}),
)
"""In the order they are tried; the next one only where the one before is missing or denied.

The second is what AWS's helper for the nodes of EKS clusters uses; its output comes all at the end, without an exit code.
"""


def parameters(document: Document, script: Script) -> dict[str, list[str]]:
    """The document's parameters for this script. Raises TransportError when it does not fit into one."""
    return {"command": [command(script)], **document.options}


def command(script: Script) -> str:
    """`sh -c` with the script in base64: no character of it means anything to a shell, a document or a terminal.

    The shell that reads the script is not the one the agent started: that one is killed when a session is terminated, and
    the script must live long enough to tidy up.
    """
    nonce = b"S_NONCE=" + script.nonce.encode() + b" "
    if not script.body.startswith(nonce):
        raise TransportError(Status.FAILED, "the node script does not begin with its nonce; please report it")
    body = _PRELUDE + script.body[len(nonce) :]
    text = f"sh -c 'echo {base64.b64encode(body).decode()} | base64 -d | sh'"
    if len(text) > PARAMETER_MAX:
        raise TransportError(
            Status.FAILED,
            f"the node script has {len(text)} characters, Session Manager takes {PARAMETER_MAX};"
            " ask for fewer checks at once",
        )
    return text


_KEY = re.compile(rb"@@straggler-key ([0-9a-f-]{36})\r?\n")
_UNTIL_KEY = 65_536
"""Bytes in front of the key (a banner) that are looked through for it."""


class Renamer:
    """Frames under the node's own nonce become frames under ours; all other bytes pass unchanged.

    Only the first key counts: whatever prints another one later, is not the script. What may become a frame's beginning is held
    back; at the end of the stream it can no longer be one, and is let go.
    """

    def __init__(self, nonce: str) -> None:
        self._ours = b"@@straggler " + nonce.encode()
        self._theirs: bytes | None = None
        self._held = b""

    @property
    def begun(self) -> bool:
        return self._theirs is not None

    def feed(self, data: bytes) -> bytes:
        held = self._held + data
        if self._theirs is None:
            if (found := _KEY.search(held)) is None:
                keep = min(len(held), 64) if len(held) <= _UNTIL_KEY else 0
                self._held = held[len(held) - keep :] if keep else b""
                return held[: len(held) - keep]
            self._theirs = b"@@straggler " + found[1]
            held = held[: found.start()] + held[found.end() :]
        held = held.replace(self._theirs, self._ours)
        keep = _overlap(held, self._theirs)
        self._held = held[len(held) - keep :]
        return held[: len(held) - keep]


def _overlap(data: bytes, word: bytes) -> int:
    """How many bytes at the end of `data` may be the beginning of `word`."""
    start = data.rfind(b"@@", -len(word) + 1) if len(data) else -1
    while start != -1:
        if word.startswith(data[start:]):
            return len(data) - start
        start = data.rfind(b"@@", -len(word) + 1, start + 1)
    return 1 if data.endswith(b"@") else 0
