"""The other end of ``spreading``: a bare interpreter that works on the files it is handed.

It reads batches and answers with what came of them until there are no more, or nobody is left to
hand them out. Standard library only, and little of it: it must be there in milliseconds.
"""

from __future__ import annotations

import marshal
import sys

from agentcanvas.sandbox import copying

TYPE_CHECKING = False
if TYPE_CHECKING:  # see the docstring
    from collections.abc import Callable
    from typing import IO, Any

_LENGTH = 4


def send(stream: IO[bytes], value: Any) -> None:
    """Write a value of built-in types."""
    data = marshal.dumps(value)
    stream.write(len(data).to_bytes(_LENGTH, "big") + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read the next value; EOFError when there is none."""
    length = int.from_bytes(stream.read(_LENGTH), "big")
    data = stream.read(length)
    if not data or len(data) < length:
        raise EOFError("the other process has ended")
    return marshal.loads(data)  # noqa: S302 -- from our own other half, through a private pipe


def help_out() -> None:
    """Do the work that the arguments name, in the folders they are descriptors of."""
    name, *numbers = sys.argv[1:]
    work: Callable[[tuple[int, ...], object], object] = getattr(copying, name)
    folders = tuple(map(int, numbers))
    while True:
        try:
            items = receive(sys.stdin.buffer)
        except EOFError:
            return
        answer: tuple[bool, object]
        try:
            answer = (True, [work(folders, item) for item in items])
        except OSError as error:
            answer = (False, (error.errno, error.strerror, error.filename))
        send(sys.stdout.buffer, answer)
