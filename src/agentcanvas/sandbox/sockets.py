"""The sockets of other programs that have a name on the disk.

A read-only mount does not keep anybody from connecting to one that lies in it, and what listens
there is outside every sandbox. The kernel lists those that are open now.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

_LISTED = Path("/proc/net/unix")
_FIELDS = 8


def named_sockets(listed: Path = _LISTED) -> Iterator[Path]:
    """List the files of the sockets that are open, without links on the way to them."""
    try:
        lines = listed.read_bytes().splitlines()[1:]
    except OSError:
        return
    for line in lines:
        fields = line.split(maxsplit=_FIELDS - 1)
        if len(fields) < _FIELDS or not fields[-1].startswith(b"/"):
            continue  # without a name, or with one that is on no disk
        named = Path(fields[-1].decode("utf-8", "surrogateescape"))
        try:
            found = named.parent.resolve() / named.name
            if stat.S_ISSOCK(found.lstat().st_mode):
                yield found
        except OSError:
            continue  # gone, or another's
