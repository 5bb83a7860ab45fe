"""Writes one event after the other while the disk fills up and empties; prints what happened."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
import msgspec

from agentcanvas.errors import StoreFull
from agentcanvas.store import Store


async def main(path: Path) -> None:
    """Report which writes were acknowledged and which refused."""
    report: dict[str, list[int]] = {"acknowledged": [], "refused": []}
    async with await Store.open(path) as store:
        for number in range(60):
            try:
                await store.append("s", "k", b"%d" % number)
                report["acknowledged"].append(number)
            except StoreFull:
                report["refused"].append(number)
    sys.stdout.buffer.write(msgspec.json.encode(report))


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
