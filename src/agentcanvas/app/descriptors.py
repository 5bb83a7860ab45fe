"""Open files: each connection needs one, and a process may have only so many."""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
from contextlib import suppress
from typing import Any

RESERVED = 64
"""What is left for the store, its readers, blobs and callbacks."""

_ENOUGH = 1 << 20
"""Where the system names no limit of its own."""

_OUT_OF_FILES = frozenset({errno.EMFILE, errno.ENFILE})

_log = logging.getLogger(__name__)


def raise_limit() -> int:
    """Let this process have as many files open as it may ask for; return how many that are.

    It holds for whatever the process starts too, so it is for servers that start nothing.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else hard
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return room()
    with suppress(ValueError, OSError):  # a system may allow less than it says
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return room()


def room() -> int:
    """Return how many files this process may have open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _ENOUGH if soft == resource.RLIM_INFINITY else soft


class Starvation:
    """Says in one sentence, and once, that connections have to wait for want of files.

    asyncio itself waits a second before it tries again, and says so each time with a traceback.
    """

    def __init__(self) -> None:
        self._said = False

    def handle(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take note of what went wrong in the event loop."""
        wrong = context.get("exception")
        if self._said and isinstance(wrong, ValueError) and "_start_serving" in str(context):
            return  # it was to try again, and we have ended meanwhile
        if not isinstance(wrong, OSError) or wrong.errno not in _OUT_OF_FILES:
            loop.default_exception_handler(context)
        elif not self._said:
            self._said = True
            _log.warning(
                "No more connections can be taken: all %s files that this process may have open "
                "are. Close some, or start it again after: ulimit -n %s",
                room(),
                4 * room(),
            )
