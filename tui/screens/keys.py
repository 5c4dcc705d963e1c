"""Which keys the bottom line names: those of the pane one is in, then those that always work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from straggler.tui.panes.lines import Piece

Pair = tuple[str, str]

OF_PANE: Mapping[str, tuple[Pair, ...]] = {
    "symptom": (("2", "nodes"), ("5", "findings"), ("y", "copy")),
    "nodes": (("Enter", "output"), ("s", "sort"), ("/", "filter"), ("r", "re-read"), ("y", "copy")),
    "output": (("o", "one/all nodes"), ("n", "next reply"), ("/", "filter"), ("r", "re-read"), ("y", "copy")),
    "matrix": (
        ("Enter", "node or remedy"),
        ("n", "next verdict"),
        ("w", "numbers"),
        ("o", "order"),
        ("/", "find"),
        ("e", "export"),
        ("y", "copy"),
    ),
    "findings": (
        ("Enter", "remedy"),
        ("v", "evidence"),
        ("c", "re-check"),
        ("a", "ack"),
        ("/", "filter"),
        ("y", "copy"),
    ),
    "remedy": (("n", "next command"), ("y", "copy"), ("v", "evidence"), ("c", "re-check"), ("Esc", "back")),
    "guided": (("n", "next"), ("b", "back"), ("Enter", "what to do"), ("G", "all panes")),
}
ALWAYS: tuple[Pair, ...] = (("?", "help"), ("q", "quit"))
WITH_ROOM: tuple[Pair, ...] = ((":", "palette"), ("G", "guided"), ("p", "pause"))
STOP: Pair = ("Esc", "stop")
FOLD: Pair = ("Enter", "show or hide these")


def keys_of(pane: str, width: int, *, running: bool, on_fold: bool = False) -> list[Piece]:
    """As many pairs as fit; help and quit always do. `on_fold`: the cursor stands on a folded group, not on a finding."""
    room = width - sum(_size(pair) for pair in ALWAYS) - 1
    chosen: list[Pair] = []
    stop = (STOP,) if running and pane in ("findings", "nodes") else ()
    extra = WITH_ROOM if pane != "guided" else WITH_ROOM[:1]
    named = OF_PANE[pane]
    if on_fold:
        named = (FOLD, *(pair for pair in named if pair[0] == "/"))
    for pair in (*named[:1], *stop, *named[1:], *extra):
        if _size(pair) <= room:
            chosen.append(pair)
            room -= _size(pair)
    return pieces([*chosen, *ALWAYS])


def pieces(pairs: Sequence[Pair]) -> list[Piece]:
    out: list[Piece] = [(" ", "")]
    for at, (key, what) in enumerate(pairs):
        out += [("  " if at else "", ""), (key, "busy"), (f" {what}", "quiet")]
    return out


def _size(pair: Pair) -> int:
    return len(pair[0]) + len(pair[1]) + 3
