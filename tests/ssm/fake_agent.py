"""A node's SSM agent: it shakes hands, runs the given command on this machine, and says what the command said.

What the public agent does oddly is done here as well: output is cut at characters (what is left at the end is lost, U+FFFD is
mangled), a pause of the channel ends the reading of a command's output, and ending a session kills only the process it started.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import secrets
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from tests.ssm import fake_wire as wire
from tests.ssm.child import Child
from tests.ssm.faults import Faults

OUTPUT, REQUEST, RESPONSE, COMPLETE, CHALLENGE, ANSWER, STDERR, EXIT = 1, 5, 6, 7, 8, 9, 11, 12

Answer = Callable[["Agent"], bytes]


@dataclass
class _Kept:
    data: bytes
    identity: str
    at: float


@dataclass
class Agent:
    """One session's agent. `send`: the way to the client while there is one. `data_key`: what KMS decrypts for it."""

    session: str
    command: str
    document: str
    separate: bool
    faults: Faults
    env: dict[str, str]
    send: Callable[[bytes], None] | None = None
    hang_up: Callable[[], None] | None = None
    data_key: Callable[[str, str], bytes] | None = None
    answer: Answer | None = None
    kept: dict[int, _Kept] = field(default_factory=dict)
    process: Child | None = None
    resends: int = 0
    heard: list[int] = field(default_factory=list)
    typed: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)
    active: bool = True
    tick: float = 0.1

    def __post_init__(self) -> None:
        self._sequence, self._expected = 0, 0
        self._ahead: dict[int, wire.Read] = {}
        self._answers: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()
        self._held: list[bytes] = []
        self._deaf = self.faults.drop_acks
        self._seal: AESGCM | None = None
        self._open: AESGCM | None = None
        self._killed: set[int] = set()

    # What comes from the client.

    def hear(self, data: bytes) -> None:
        message = wire.read(data)
        if self._deaf:
            self._deaf -= 1
            return
        if message.kind == "acknowledge":
            number, identity = wire.acknowledged(message)
            kept = self.kept.pop(number, None)
            assert kept is None or kept.identity == identity, "an acknowledgement names the message"
            return
        assert message.sequence <= self._expected + 10_000
        self._acknowledge(message)
        self.heard.append(message.sequence)
        if message.sequence >= self._expected:
            self._ahead[message.sequence] = message
        while (one := self._ahead.pop(self._expected, None)) is not None:
            self._expected += 1
            if one.payload_type in (RESPONSE, ANSWER):
                self._answers.put_nowait((one.payload_type, one.payload))
            else:
                assert one.payload_type == OUTPUT, "nothing but typed text is sent besides"
                self.typed.put_nowait(one.payload)

    def _acknowledge(self, message: wire.Read) -> None:
        content = {
            "AcknowledgedMessageType": message.kind,
            "AcknowledgedMessageId": message.identity,
            "AcknowledgedMessageSequenceNumber": message.sequence,
            "IsSequentialMessage": True,
        }
        data, _ = wire.written("acknowledge", json.dumps(content).encode(), flags=3)
        self._out(data)

    def _out(self, data: bytes) -> None:
        if self.send is not None:
            self.send(data)

    # What goes to the client.

    async def say(self, payload_type: int, payload: bytes) -> None:
        if not payload:
            return
        if self._seal is not None and payload_type in (OUTPUT, STDERR, EXIT):
            nonce = secrets.token_bytes(12)
            payload = nonce + self._seal.encrypt(nonce, payload, None)
        number = self._sequence
        self._sequence += 1
        data, identity = wire.written(
            "output_stream_data",
            payload,
            payload_type=payload_type,
            sequence=number,
            flags=1 if number == 0 else 0,
        )
        if self.faults.delay:
            await asyncio.sleep(self.faults.delay)
        if self.faults.pause == number:
            self._control("pause_publication")
            self.active = False
        self.kept[number] = _Kept(data, identity, time.monotonic())
        self._first_copy(number, data)
        if self.faults.pause is not None and number == self.faults.pause + 1:
            self._control("start_publication")
            self.active = True
        # A write buffer that is not drained would let a fast command outrun any client.
        while len(self.kept) > 4000:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0)

    def _first_copy(self, number: int, data: bytes) -> None:
        faults = self.faults
        if number in faults.barred and self.hang_up is not None:
            self.hang_up()
        elif number in faults.hold:
            self._held.append(data)
        elif number in faults.damage:
            self._out(data[:-1] + bytes([data[-1] ^ 1]))
        elif number not in faults.drop:
            self._out(data)
            if number in faults.double:
                self._out(data)
            held, self._held = self._held, []
            for one in held:
                self._out(one)
        if number in faults.kill and self.hang_up is not None:
            # Once what stands in the queue has been sent, or not: a broken network does not ask.
            asyncio.get_running_loop().call_soon(self.hang_up)

    def _control(self, kind: str) -> None:
        data, _ = wire.written(kind, b"")
        self._out(data)

    async def send_again(self) -> None:
        """Every `tick` the oldest message, when nobody has acknowledged it for two of them (the public agent: 100 ms)."""
        while True:
            await asyncio.sleep(self.tick)
            for number, one in self.kept.items():
                if self.send is not None and time.monotonic() - one.at > 2 * self.tick:
                    one.at = time.monotonic()
                    self.resends += 1
                    if number in self.faults.barred and self.hang_up is not None:
                        self.hang_up()
                    else:
                        self._out(one.data)
                break

    # A session.

    async def work(self) -> None:
        """From the handshake to the end, when the service may close the channel."""
        again = asyncio.ensure_future(self.send_again())
        try:
            if self.faults.silent:
                await asyncio.Event().wait()
            if await self._handshake():
                await self._run()
                if not self.faults.early_end:
                    await self._drained()
        finally:
            again.cancel()

    async def _drained(self) -> None:
        """As the agent: up to 2 s, then the channel is closed all the same. (Here it waits longer while the client is away.)"""
        until = time.monotonic() + 10
        while self.kept and time.monotonic() < until:
            await asyncio.sleep(0.01)

    async def _handshake(self) -> bool:
        kind = "NonInteractiveCommands" if "NonInteractive" in self.document else "InteractiveCommands"
        if self.document == "SSM-SessionManagerRunShell":
            kind = "Standard_Stream"
        wanted: list[dict[str, object]] = [
            {"ActionType": "SessionType", "ActionParameters": {"SessionType": kind, "Properties": None}}
        ]
        challenge = base64.b64encode(secrets.token_bytes(16)).decode() if self.faults.challenge else ""
        if self.faults.kms:
            asked = {"KMSKeyId": "arn:aws:kms:us-east-1:123456789012:key/1"}
            if challenge:
                asked["Challenge"] = challenge
            wanted.append({"ActionType": "KMSEncryption", "ActionParameters": asked})
        if self.faults.action:
            wanted.append({"ActionType": self.faults.action, "ActionParameters": {}})
        await self.say(
            REQUEST, json.dumps({"AgentVersion": "3.3.987.0", "RequestedClientActions": wanted}).encode()
        )
        response = json.loads(await self._answered(RESPONSE))
        assert set(response) == {"ClientVersion", "ProcessedClientActions", "Errors"}
        version = tuple(int(part) for part in response["ClientVersion"].split("."))
        assert version >= (1, 2, 312, 0), "an older client is told to update"
        actions = response["ProcessedClientActions"]
        assert [one["ActionType"] for one in actions] == [one["ActionType"] for one in wanted]
        if any(one["ActionStatus"] != 1 for one in actions):
            assert response["Errors"], "what failed is said"
            return False
        if self.faults.kms:
            await self._encrypt(actions[1]["ActionResult"], challenge)
        message = "This session is encrypted using AWS KMS." if self.faults.kms else ""
        done = {"HandshakeTimeToComplete": 1_000_000, "CustomerMessage": message}
        await self.say(COMPLETE, json.dumps(done).encode())
        return True

    async def _encrypt(self, result: dict[str, object], challenge: str) -> None:
        assert self.data_key is not None
        assert result["ChallengeAcknowledgement"] is bool(challenge)
        key = self.data_key(str(result["KMSCipherTextKey"]), challenge)
        self._seal, self._open = AESGCM(key[:32]), AESGCM(key[32:])
        if self.faults.wrong_key:
            self._seal = AESGCM(key[32:])
        plain, nonce = secrets.token_bytes(64), secrets.token_bytes(12)
        sealed = nonce + self._seal.encrypt(nonce, plain, None)
        await self.say(CHALLENGE, json.dumps({"Challenge": base64.b64encode(sealed).decode()}).encode())
        back = base64.b64decode(json.loads(await self._answered(ANSWER))["Challenge"])
        assert self._open.decrypt(back[:12], back[12:], None) == plain, "the challenge comes back"

    async def _answered(self, payload_type: int) -> bytes:
        kind, payload = await asyncio.wait_for(self._answers.get(), 15)
        assert kind == payload_type
        return payload

    async def _run(self) -> None:
        if self.faults.banner:
            await self.say(OUTPUT, self.faults.banner)
        if self.answer is not None:
            await self._pass_on(self.answer(self), OUTPUT)
            await self.say(EXIT, b"EXIT_CODE: 0")
        elif "NonInteractive" in self.document:
            await self._run_command()
        else:
            await self._run_in_terminal()

    async def _run_command(self) -> None:
        try:
            self.process = Child(shlex.split(self.command), self.env, terminal=False, merge=not self.separate)
        except OSError as error:
            if self.separate:
                await self.say(EXIT, b"EXIT_CODE: 1")
            await self.say(STDERR, f"Error occurred starting the command: {error.strerror}".encode())
            return
        child = self.process
        try:
            if child.err is None:
                # Without the separate stream all comes at the end, and no exit code.
                everything = b""
                while data := await child.read(child.out, 65_536):
                    everything += data
                await self._pass_on(everything, OUTPUT)
                return
            await asyncio.gather(self._pump(child, child.out, OUTPUT), self._pump(child, child.err, STDERR))
            code = await child.wait()
        finally:
            # The agent's worker ends with its session, and with it the pipes: whoever still writes is told so.
            child.close()
        await self.say(EXIT, f"EXIT_CODE: {max(code, -1)}".encode())

    async def _pump(self, child: Child, fd: int, payload_type: int) -> None:
        rest, passed = b"", 0
        while data := await child.read(fd, self.faults.chunk):
            if not self.active:
                # As the public agent: it stops reading for good, and the exit code comes as if all were well.
                return
            if self.faults.cut is not None and payload_type == OUTPUT:
                data = data[: max(0, self.faults.cut - passed)]
            passed += len(data)
            whole, rest = characters(rest + data)
            await self.say(payload_type, whole)

    async def _pass_on(self, data: bytes, payload_type: int) -> None:
        for at in range(0, len(data), self.faults.chunk):
            await self.say(payload_type, data[at : at + self.faults.chunk])

    async def _run_in_terminal(self) -> None:
        """A shell on a pseudo-terminal: with the document's command, or with what is typed."""
        argv = ["sh", "-c", self.command] if self.command else ["sh", "-i"]
        child = self.process = Child(argv, self.env, terminal=True, merge=True)
        typing = asyncio.ensure_future(self._type(child.out))
        try:
            while data := await child.read(child.out, self.faults.chunk):
                await self.say(OUTPUT, data)
        finally:
            typing.cancel()
            child.close()

    async def _type(self, master: int) -> None:
        while True:
            data = await self.typed.get()
            while data:
                try:
                    data = data[os.write(master, data) :]
                except BlockingIOError:
                    await asyncio.sleep(0.01)

    def kill(self) -> None:
        """As when a session is terminated: only the process the agent started, by SIGKILL."""
        if self.process is not None:
            self.process.kill()


def characters(data: bytes) -> tuple[bytes, bytes]:
    """What the agent passes on of these bytes, and what it keeps for the next read."""
    try:
        if "\ufffd" not in data.decode():
            return data, b""
    except UnicodeDecodeError:
        pass
    passed, at = bytearray(), 0
    while at < len(data):
        size = _character(data, at)
        if size and data[at : at + size] != b"\xef\xbf\xbd":
            passed += data[at : at + size]
            at += size
            continue
        if len(data) - at < 4:
            break
        passed += data[at : at + 1]
        at += size or 1
    return bytes(passed), data[at:]


def _character(data: bytes, at: int) -> int:
    """The length of the UTF-8 character at `at`; 0 where there is none."""
    for size in range(1, 5):
        try:
            if len(data[at : at + size].decode()) == 1:
                return size
        except UnicodeDecodeError:
            continue
    return 0
