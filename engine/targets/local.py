"""This machine as a target of one node."""

from __future__ import annotations

import socket

from straggler.engine.model import Node
from straggler.engine.targets.base import Target
from straggler.engine.transports.local import LocalTransport


def local_target() -> Target:
    name = socket.gethostname() or "localhost"
    return Target("local", f"this machine ({name})", (Node(name, names=("localhost",)),), LocalTransport())
