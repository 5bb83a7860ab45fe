"""WebSocket frames as nearly all of them are, one whole message: cut out of the stream, or made.

Whatever else the protocol knows (control frames, fragments, breaches) is passed on as it came, for
the library to handle. What a frame says is left to whoever gets it.
"""

from __future__ import annotations

from websockets import frames

from agentcanvas.protocol.scan import is_utf8

_unmasked = frames.apply_mask  # type: ignore[attr-defined]  # in C, where there is a compiler
_TEXT, _BINARY = 0x81, 0x82
"""The first byte of a frame that is a whole message: final, without extensions."""

_FINAL, _RESERVED, _OPCODE, _CONTROL = 0x80, 0x70, 0x0F, 0x08
_OPCODES = frozenset({0x0, 0x1, 0x2, 0x8, 0x9, 0xA})
_MASKED, _SIZE = 0x80, 0x7F
_TWO_BYTES, _EIGHT_BYTES = 126, 127
_MASK_BYTES = 4
_ALL = 1 << 62

MANY = "agentcanvas.frames"
"""Among the extensions of a scope: many messages can be received and sent at once."""


class Cutter:
    """Cuts what a client sends into messages, and what the library has to see.

    After each ``feed`` ask in turn for ``messages`` and ``others``, until there are no others.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._data: bytes | bytearray = b""
        self._at = 0
        self._wanted = 0
        """How many bytes there have to be before it is worth looking again."""
        self._passing = 0
        """How much of the frame at hand is the library's."""
        self._in_pieces = False

    def feed(self, data: bytes) -> None:
        """Take in what has arrived."""
        if not self._data:
            self._data = data
            return
        # In place, or a large frame that comes in many small parts would be copied for each.
        if not isinstance(self._data, bytearray):
            self._data = bytearray(self._data)
        self._data += data

    def messages(self) -> list[bytes]:
        """Return the whole messages up to the next frame that is something else."""
        found: list[bytes] = []
        data, at, end = self._data, self._at, len(self._data)
        if self._passing or self._in_pieces or end - at < self._wanted:
            return found
        self._wanted = 0
        while end - at > 1:
            head, size = _measure(data, at, end)
            if data[at] not in (_TEXT, _BINARY) or data[at + 1] < _MASKED or size > self._largest:
                break
            start = at + head
            if end - start < size or not head:
                self._wanted = head + size
                break
            message = _unmasked(data[start : start + size], data[start - _MASK_BYTES : start])
            if data[at] == _TEXT and not (message.isascii() or is_utf8(message)):
                break
            found.append(message)
            at = start + size
        self._at = at
        return found

    def others(self) -> bytes:
        """Return as much as there is of a frame that is for the library, once it is known as such.

        Of what cannot be read any further it is everything.
        """
        data, at, end = self._data, self._at, len(self._data)
        if not self._passing and end - at > 1 and end - at >= self._wanted:
            head, size = _measure(data, at, end)
            if _is_wrong(data[at], data[at + 1]):
                self._passing = _ALL
            elif head:
                self._passing = head + size
                if data[at] & _OPCODE < _CONTROL:
                    self._in_pieces = not data[at] & _FINAL
        passed = bytes(data[at : at + self._passing])
        self._at += len(passed)
        self._passing -= len(passed)
        if not passed:
            self._forget()
        return passed

    def rest(self) -> bytes:
        """Return everything, when it is all for the library."""
        rest = bytes(self._data[self._at :])
        self._data, self._at = b"", 0
        return rest

    def _forget(self) -> None:
        """Hold what is not done yet, and nothing else."""
        if isinstance(self._data, bytearray) and self._at < len(self._data):
            del self._data[: self._at]
        else:
            self._data = self._data[self._at :]
        self._at = 0


def _measure(data: bytes | bytearray, at: int, end: int) -> tuple[int, int]:
    """Return the sizes of a frame's head and of what it holds; (0, 0) if not enough has come."""
    size, head = data[at + 1] & _SIZE, 2
    if size == _TWO_BYTES:
        size, head = int.from_bytes(data[at + 2 : at + 4], "big"), 4
    elif size == _EIGHT_BYTES:
        size, head = int.from_bytes(data[at + 2 : at + 10], "big"), 10
    return (head + _MASK_BYTES, size) if end - at >= head else (0, 0)


def _is_wrong(first: int, second: int) -> bool:
    """Tell whether a frame breaks the protocol by how it begins."""
    return bool(first & _RESERVED) or first & _OPCODE not in _OPCODES or second < _MASKED


def framed(message: bytes) -> bytes:
    """Put a message, which is text, into a frame."""
    size = len(message)
    if size < _TWO_BYTES:
        return b"%c%c%b" % (_TEXT, size, message)
    if size < 1 << 16:
        return b"\x81\x7e%b%b" % (size.to_bytes(2, "big"), message)
    return b"\x81\x7f%b%b" % (size.to_bytes(8, "big"), message)
