"""Where nodes stand: the order a matrix is drawn in, and the boundaries a run can cross.

From the target's own placement, or from a file: `{"node": {"az": …, "layers": [l1, l2, l3], "block": …, "ultraserver": …}}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from straggler.engine.errors import UsageError
from straggler.engine.model import Node, Placement
from straggler.engine.nodesets import natural

MOST_BYTES = 64_000_000
"""The longest topology file that is read: 100,000 nodes need a quarter of it."""

_KEYS = "az, layers, block, ultraserver"


def order(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """As they are drawn: by zone, network layers from the top, block and UltraServer, then by name with numbers as numbers.

    Nodes whose place is not known come after those whose is.
    """
    ranks = natural_ranks(node.id for node in nodes)

    def key(node: Node) -> tuple[object, ...]:
        place = node.placement
        layers = tuple(_known_first(one) for one in place.layers)
        return (
            _known_first(place.az),
            (not layers, layers),
            _known_first(place.block),
            _known_first(place.ultraserver),
            ranks[node.id],
        )

    return tuple(sorted(nodes, key=key))


def natural_ranks(names: Iterable[str]) -> dict[str, int]:
    """Each name's place in natural order: `worker-2` before `worker-10`; what is no host name comes last."""
    plain = re.compile(r"[A-Za-z0-9._-]+")

    def key(name: str) -> tuple[bool, object]:
        return (False, natural(name)) if plain.fullmatch(name) else (True, name)

    return {name: at for at, name in enumerate(sorted(set(names), key=key))}


def _known_first(text: str | None) -> tuple[bool, str]:
    return text is None, text or ""


def boundaries(placement: Placement) -> tuple[tuple[str, str], ...]:
    """The labelled levels of one node, from the top: `("az", "use1-az1")`, `("layer-1", …)`, …, `("ultraserver", …)`.

    Layer 1 is the top of the network, the highest number the one nearest the node. What is not known is not in it.
    """
    layers = [(f"layer-{number}", one) for number, one in enumerate(placement.layers, 1)]
    levels = [
        ("az", placement.az),
        *layers,
        ("block", placement.block),
        ("ultraserver", placement.ultraserver),
    ]
    return tuple((name, value) for name, value in levels if value)


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    az: str | None = None
    layers: tuple[str, ...] = ()
    block: str | None = None
    ultraserver: str | None = None


def read_topology(path: Path) -> Mapping[str, Placement]:
    """What a `--topology` file says, by node; a node without an entry is in no group. Raises UsageError: one line, the cure."""
    try:
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read the topology file {str(path)!r}: {error.strerror}") from error
    if len(raw) > MOST_BYTES:
        raise UsageError(f"{path} is longer than {MOST_BYTES // 1_000_000} MB; is it a topology file?")
    try:
        entries = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f'{path} is no topology file: {error}; write it like {{"node": {{"az": "use1-az1", "layers": ["l1", "l2", "l3"]}}}}'
        ) from error
    return {name: _placement(path, name, one) for name, one in entries.items()}


def _placement(path: Path, name: str, raw: msgspec.Raw) -> Placement:
    try:
        entry = msgspec.json.decode(raw, type=_Entry)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: node {name!r}: {error}; its keys are {_KEYS}") from error
    return Placement(entry.az or None, entry.layers, entry.block or None, entry.ultraserver or None)
