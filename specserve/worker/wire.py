"""Frames over one socket pair, without pickle: four bytes of length, then that much msgpack."""

import socket
import struct
import threading
from asyncio import IncompleteReadError, StreamReader
from typing import Any, Generic, TypeVar

import msgspec

from specserve.errors import EngineError
from specserve.worker.messages import Command, Report

_LENGTH = struct.Struct(">I")
MAX_FRAME_BYTES = 64 * 2**20  # a plan or a long prompt is far below; above, the stream is garbage

M = TypeVar("M")


def encode(message: Command | Report) -> bytes:
    """One whole frame. Raises EngineError if it is longer than a frame may be."""
    body = msgspec.msgpack.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise EngineError(
            f"{type(message).__name__}: {len(body)} bytes, more than a frame's {MAX_FRAME_BYTES}"
        )
    return _LENGTH.pack(len(body)) + body


class FrameDecoder(Generic[M]):
    """Bytes of a frame to a message of one direction's union."""

    def __init__(self, union: Any) -> None:  # noqa: ANN401 - a union has no type of its own
        self._decoder = msgspec.msgpack.Decoder(union)

    def length(self, prefix: bytes) -> int:
        """Raises EngineError for a length that no frame has."""
        (length,) = _LENGTH.unpack(prefix)
        if length > MAX_FRAME_BYTES:
            raise EngineError(f"the stream is garbled: a frame of {length} bytes")
        return int(length)

    def body(self, body: bytes) -> M:
        """Raises EngineError for bytes that are no message of this direction."""
        try:
            message: M = self._decoder.decode(body)
        except msgspec.DecodeError as error:
            raise EngineError(f"the stream is garbled: {error}") from error
        return message


def command_decoder() -> FrameDecoder[Command]:
    """For the worker."""
    return FrameDecoder(Command)


def report_decoder() -> FrameDecoder[Report]:
    """For the supervisor."""
    return FrameDecoder(Report)


async def read_frame(reader: StreamReader, decoder: FrameDecoder[M]) -> M | None:
    """The next message; None at the end of the stream, also in the middle of a frame."""
    try:
        prefix = await reader.readexactly(_LENGTH.size)
        return decoder.body(await reader.readexactly(decoder.length(prefix)))
    except (IncompleteReadError, ConnectionError):
        return None


class WorkerChannel:
    """The worker's end: blocking, any thread may send, one thread receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._incoming = connection.makefile("rb")
        self._decoder = command_decoder()
        self._sending = threading.Lock()

    def send(self, report: Report) -> None:
        """Raises OSError once the supervisor is gone."""
        frame = encode(report)
        with self._sending:
            self._connection.sendall(frame)

    def receive(self) -> Command | None:
        """The next command; None once the supervisor is gone."""
        try:
            prefix = self._incoming.read(_LENGTH.size)
            if len(prefix) < _LENGTH.size:
                return None
            length = self._decoder.length(prefix)
            body = self._incoming.read(length)
        except ConnectionError:
            return None
        return self._decoder.body(body) if len(body) == length else None

    def close(self) -> None:
        """The supervisor sees the end of the stream."""
        self._incoming.close()
        self._connection.close()
