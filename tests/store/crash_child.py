"""Writes for ever from several tasks, and prints the number and body of each acknowledged event."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path

import anyio

from agentcanvas.store import Store, Transaction, projector
from tests.store.helpers import PerStream


async def main(path: Path, writers: int, events_a_record: int) -> None:
    """Write until killed; a line is printed only after the store has acknowledged."""
    projector._EVENTS_A_RECORD = events_a_record
    store = await Store.open(path, projections=[PerStream()])
    life = store.head

    async def append(name: str) -> None:
        for turn in range(1_000_000):
            body = f'"{life}/{name}/{turn}"'
            seq = await store.append(f"run/{name}", "k", body.encode())
            tell(f"{seq} {body}")

    async def transact(name: str) -> None:
        for turn in range(1_000_000):
            body = f'"{life}/{name}/{turn}"'
            seq = await store.transact(partial(pair, name=name, body=body))
            tell(f"{seq} {body}")

    async with anyio.create_task_group() as group:
        for number in range(writers):
            group.start_soon(append, f"a{number}")
            group.start_soon(transact, f"t{number}")


def pair(transaction: Transaction, name: str, body: str) -> int:
    """Write an event and a row that belongs to it."""
    seq = transaction.append(f"run/{name}", "pair", body.encode())
    transaction.execute("INSERT INTO meta VALUES (?, ?)", (f"pair {seq}", body))
    return seq


def tell(line: str) -> None:
    """Print at once, whole lines only."""
    os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
