"""From a byte stream to whole, checked blocks: what the node script framed, and nothing that merely looks like it.

A frame carries the nonce of this run, the CRC and length (POSIX cksum) of its body, and its state. Banners, a motd or forged
markers do not know the nonce; a cut or altered body does not match its checksum; only `done` says that all has come.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from straggler.engine.model import Status
from straggler.engine.script import CAP

NOISE_KEPT = 2_000
"""Bytes of unframed text (banner, motd) kept to be shown."""


@dataclass(frozen=True, slots=True)
class Hello:
    """The script runs: the uid it runs as, and the node's clock in Unix seconds."""

    uid: int
    clock: int


@dataclass(frozen=True, slots=True)
class Block:
    """One snippet's reply. `status`, `why`: how it ended; `after`: seconds from the start of the script to its end."""

    index: int
    status: Status
    why: str
    text: str
    errors: str
    cut: int
    exit_code: int | None
    after: int


@dataclass(frozen=True, slots=True)
class Done:
    """The last frame: the node has said all it will say."""

    count: int


class FloodError(Exception):
    """More bytes than a node could honestly send."""


class FrameReader:
    """Feed it bytes as they come; it gives frames as they become whole. `noise` is what stood outside of frames."""

    def __init__(self, nonce: str, count: int) -> None:
        self._mark = re.compile(rb"(?:^|\n)@@straggler " + nonce.encode() + rb" (hello|begin|done) ([^\r\n]{0,200})\r?\n")
        self._nonce = nonce.encode()
        self._buffer = bytearray()
        self._seen = 0
        self._limit = (count + 2) * (CAP + 8192) + 1_000_000
        self.noise = b""
        self.noise_bytes = 0

    def feed(self, data: bytes) -> Iterator[Hello | Block | Done]:
        """Raises FloodError when the stream grows past any honest size."""
        self._seen += len(data)
        if self._seen > self._limit:
            raise FloodError
        self._buffer += data
        while frame := self._next():
            yield frame

    def _next(self) -> Hello | Block | Done | None:
        while True:
            mark = self._mark.search(self._buffer)
            if mark is None:
                # A marker may still be arriving; what is before the last 300 bytes can no longer become one.
                self._drop(max(0, len(self._buffer) - 300))
                return None
            self._drop(mark.start())
            mark = self._mark.match(self._buffer)
            if mark is None:  # pragma: no cover - the same bytes matched a line above
                return None
            words = mark[2].decode("ascii", "replace").split()
            if mark[1] == b"begin":
                frame, used = self._block(words, mark.end())
                if used == 0:
                    return None
            else:
                frame, used = _short(mark[1], words), mark.end()
            # The newline behind a frame belongs to the next marker.
            del self._buffer[: used - 1]
            if frame is not None:
                return frame

    def _block(self, words: list[str], start: int) -> tuple[Block | None, int]:
        """The block and how many bytes it took; 0: its end has not come yet."""
        if not words or not words[0].isdigit():
            return None, start
        end = re.compile(rb"\n@@straggler " + self._nonce + rb" end " + words[0].encode() + rb"\r?\n").search(self._buffer, start)
        if end is None:
            return None, 0
        return _read_block(words, bytes(self._buffer[start : end.start()])), end.end()

    def _drop(self, upto: int) -> None:
        if upto > 0:
            self.noise_bytes += upto
            self.noise = (self.noise + bytes(self._buffer[:upto]))[:NOISE_KEPT]
            del self._buffer[:upto]


def _short(kind: bytes, words: list[str]) -> Hello | Done | None:
    try:
        if kind == b"hello" and words[0] == "1":
            return Hello(int(words[1]), int(words[2]))
        if kind == b"done":
            return Done(int(words[0]))
    except (ValueError, IndexError):
        pass
    return None


def _read_block(words: list[str], body: bytes) -> Block | None:
    try:
        index, state, code, crc, length, out, after = words
        numbers = int(index), int(crc), int(length), int(out), int(after)
        exit_code = None if code == "-" else int(code)
    except ValueError:
        return None
    at, want, size, split, ended = numbers
    whole = _whole(body, want, size)
    text, errors = (whole[:split], whole[split:]) if whole is not None else (body[:split], b"")
    cut = max(0, len(text) - CAP)
    said = errors.decode("utf-8", "backslashreplace").strip()
    status, why = _status(state, exit_code, whole is not None, cut, said)
    return Block(at, status, why, text[:CAP].decode("utf-8", "backslashreplace"), said, cut, exit_code, ended)


def _whole(body: bytes, crc: int, size: int) -> bytes | None:
    """The body as the node had it, or None. A terminal in between turns newlines into CR LF: that is undone, then checked."""
    for candidate in (body, body.replace(b"\r\n", b"\n")):
        if len(candidate) == size and cksum(candidate) == crc:
            return candidate
    return None


def _status(state: str, code: int | None, whole: bool, cut: int, said: str) -> tuple[Status, str]:
    last = said.splitlines()[-1] if said else ""
    if state == "left":
        return Status.ABANDONED, "did not end when killed (stuck in the kernel, or a child keeps its output open)"
    if state == "late":
        return Status.TIMED_OUT, "did not end in its time and was killed"
    if state == "full":
        return Status.TRUNCATED, "the node had no memory left to hold the reply"
    if state != "ok" or not whole:
        return Status.TRUNCATED, "the reply does not match its checksum"
    if cut:
        return Status.TRUNCATED, f"the reply is longer than {CAP // 1024} KiB"
    if code is None:
        return Status.TRUNCATED, "the reply came without an exit code"
    if code == 0:
        return Status.OK, ""
    if code in _SAID:
        return _SAID[code], last or _SAID[code].value
    return Status.FAILED, f"exit {code}" + (f": {last}" if last else "")


_SAID = {120: Status.TOOL_MISSING, 121: Status.NEEDS_ROOT, 122: Status.NOT_APPLICABLE}

_REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


def cksum(data: bytes) -> int:
    """The CRC of POSIX cksum(1): polynomial 0x04C11DB7, most significant bit first, the length appended, complemented.

    zlib's CRC-32 is the same polynomial with every byte and the result mirrored, so it does the work at C speed.
    """
    size = len(data)
    tail = size.to_bytes((size.bit_length() + 7) // 8, "little")
    mirrored = zlib.crc32((data + tail).translate(_REVERSED), 0xFFFFFFFF) ^ 0xFFFFFFFF
    return int(f"{mirrored:032b}"[::-1], 2) ^ 0xFFFFFFFF


def encode(nonce: str, index: int, text: bytes, errors: bytes, code: int, after: int = 0) -> bytes:
    """One block as the node script writes it; for the simulated transport and for tests of hostile streams."""
    text, errors = text[: CAP + 1], errors[:4096]
    body = text + errors
    head = f"\n@@straggler {nonce} begin {index} ok {code} {cksum(body)} {len(body)} {len(text)} {after}\n"
    return head.encode() + body + f"\n@@straggler {nonce} end {index}\n".encode()


def encode_hello(nonce: str, uid: int, clock: int) -> bytes:
    return f"\n@@straggler {nonce} hello 1 {uid} {clock}\n".encode()


def encode_done(nonce: str, count: int) -> bytes:
    return f"\n@@straggler {nonce} done {count}\n".encode()
