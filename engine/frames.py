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

ERRORS_CAP = 4096
"""Bytes of one snippet's stderr the node script keeps."""

_LONGEST = 2 * (CAP + 1 + ERRORS_CAP) + 4096
"""Bytes no block of a node exceeds, even when every one of its newlines became CR LF."""

_MARK_MAX = 300
"""Bytes no marker exceeds: where none is found, only so many at the end may still become one."""


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
    """Feed it bytes as they come; it gives frames as they become whole. `noise` is what stood outside of frames.

    Nothing is looked at twice, however the bytes are cut, so a hostile stream costs no more than its length.
    """

    def __init__(self, nonce: str, count: int) -> None:
        self._mark = re.compile(
            rb"\n@@straggler " + nonce.encode() + rb" (hello|begin|end|done) ([^\r\n]{0,200})\r?\n"
        )
        # A marker starts a line; the stream's first byte does, too.
        self._buffer = bytearray(b"\n")
        self._open: bytes | None = None
        self._scanned = 0
        self._seen = 0
        self._limit = (count + 2) * _LONGEST + 1_000_000
        self.noise = b""
        self.noise_bytes = 0

    def feed(self, data: bytes) -> Iterator[Hello | Block | Done]:
        """Raises FloodError when the stream grows past any honest size."""
        self._seen += len(data)
        if self._seen > self._limit:
            raise FloodError
        self._buffer += data
        while mark := self._mark.search(self._buffer, self._scanned):
            if frame := self._take(mark):
                yield frame
        self._scanned = max(0, len(self._buffer) - _MARK_MAX)
        if self._open is None:
            self._drop(self._scanned)
            self._scanned = 0
        elif len(self._buffer) > _LONGEST:
            yield from self._close(bytes(self._buffer[:_LONGEST]), whole=False)
            self._drop(self._scanned)
            self._scanned = 0

    def _take(self, mark: re.Match[bytes]) -> Hello | Block | Done | None:
        """Deal with one marker. A block that another marker than its own end interrupts is over, and not whole."""
        kind, words, start, end = mark[1], mark[2], mark.start(), mark.end()
        self._scanned = 0
        if self._open is not None:
            body = bytes(self._buffer[:start])
            own = kind == b"end" and words == self._open.split(b" ")[0]
            # The newline behind a marker may belong to the next one.
            del self._buffer[: end - 1 if own else start]
            return next(self._close(body, whole=own), None)
        self._drop(start)
        length = end - start
        if kind == b"begin":
            del self._buffer[:length]
            self._open = words
            return None
        del self._buffer[: length - 1]
        return _short(kind, words.split())

    def _close(self, body: bytes, *, whole: bool) -> Iterator[Block]:
        head, self._open = self._open or b"", None
        if block := _read_block(head, body, whole=whole):
            yield block

    def _drop(self, upto: int) -> None:
        if upto > 0:
            self.noise_bytes += upto
            if len(self.noise) < NOISE_KEPT:
                self.noise += bytes(self._buffer[: min(upto, NOISE_KEPT - len(self.noise))])
            del self._buffer[:upto]


def _short(kind: bytes, words: list[bytes]) -> Hello | Done | None:
    numbers = [int(word) if re.fullmatch(rb"[0-9]{1,12}", word) else -1 for word in words]
    if kind == b"hello" and len(words) == 3 and numbers[0] == 1 and numbers[2] >= 0:
        return Hello(numbers[1], numbers[2])
    if kind == b"done" and len(words) == 1 and numbers[0] >= 0:
        return Done(numbers[0])
    return None


_HEAD = re.compile(
    rb"(([0-9]{1,4}) (ok|late|left|full) (-|[0-9]{1,3}) ([0-9]{1,7}) ([0-9]{1,7})) ([0-9]{1,10}) ([0-9]{1,7})"
)


def _read_block(head: bytes, body: bytes, *, whole: bool) -> Block | None:
    """None: the head is no head. The checksum was taken over the head's own words, a newline, and the body."""
    found = _HEAD.fullmatch(head)
    if found is None:
        return None
    words = found[1] + b"\n"
    index, split, after, crc, size = (int(found[at]) for at in (2, 5, 6, 7, 8))
    exit_code = None if found[4] == b"-" else int(found[4])
    sound = _sound(words, body, crc, size) if whole else None
    text, errors = (sound[:split], sound[split:]) if sound is not None else (body[:split], b"")
    cut = max(0, len(text) - CAP)
    said = errors.decode("utf-8", "backslashreplace").strip()
    status, why = _status(found[3].decode(), exit_code, sound is not None, cut, said)
    return Block(
        index, status, why, text[:CAP].decode("utf-8", "backslashreplace"), said, cut, exit_code, after
    )


_MANGLED = re.compile(rb"\xef(?![\x80-\xbf])")


def _sound(words: bytes, body: bytes, crc: int, size: int) -> bytes | None:
    """The body as the node had it, or None. What is known to alter it on the way is undone, then checked.

    A terminal turns newlines into CR LF; the SSM agent leaves only the first byte of each U+FFFD.
    """
    plain = body.removesuffix(b"\r").replace(b"\r\n", b"\n")
    for candidate in (body, plain, _MANGLED.sub(b"\xef\xbf\xbd", plain)):
        if len(words) + len(candidate) == size and cksum(words + candidate) == crc:
            return candidate
    return None


def _status(state: str, code: int | None, whole: bool, cut: int, said: str) -> tuple[Status, str]:
    last = said.splitlines()[-1] if said else ""
    if state == "left":
        return (
            Status.ABANDONED,
            "did not end when killed (stuck in the kernel, or a child keeps its output open)",
        )
    if state == "late":
        return Status.TIMED_OUT, "did not end in its time and was killed"
    if state == "full":
        return Status.TRUNCATED, "the node had no memory left to hold the reply"
    if not whole:
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
    text, errors = text[: CAP + 1], errors[:ERRORS_CAP]
    body = text + errors
    words = f"{index} ok {code} {len(text)} {after}"
    summed = words.encode() + b"\n" + body
    head = f"\n@@straggler {nonce} begin {words} {cksum(summed)} {len(summed)}\n"
    return head.encode() + body + f"\n@@straggler {nonce} end {index}\n".encode()


def encode_hello(nonce: str, uid: int, clock: int) -> bytes:
    return f"\n@@straggler {nonce} hello 1 {uid} {clock}\n".encode()


def encode_done(nonce: str, count: int) -> bytes:
    return f"\n@@straggler {nonce} done {count}\n".encode()
