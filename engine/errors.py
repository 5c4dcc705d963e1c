"""Every error straggler raises on purpose. The message is one line and says what to do.

StragglerError
├── UsageError        the command line or a file given to it is wrong            (exit status 2)
├── FatalError        a prerequisite is missing, or nothing at all can be read    (exit status 1)
│   └── KnowledgeError    a file in references/ or in the user's config does not fit its schema
└── TransportError    one node could not be reached or its session broke; `transient` ones are tried again
"""

from __future__ import annotations

from straggler.engine.model import Status


class StragglerError(Exception):
    """Base of all; str() is the one line shown to the operator."""


class UsageError(StragglerError):
    """Raised for arguments that cannot mean anything; nothing was started."""


class FatalError(StragglerError):
    """Raised when the diagnostic cannot be completed at all."""


class KnowledgeError(FatalError):
    """Raised for a reference file that does not fit; names the file and the place in it."""


class TransportError(StragglerError):
    """Raised for one node: `status` becomes the status of everything that node did not answer."""

    def __init__(self, status: Status, why: str, *, transient: bool = False) -> None:
        super().__init__(why)
        self.status = status
        self.why = why
        self.transient = transient
