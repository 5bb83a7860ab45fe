"""A hub that is killed while it works: prints every acknowledgement once it has it, one a line."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio

from agentcanvas.clock import SystemClock
from agentcanvas.hub.broker import Receipt, Settlement
from agentcanvas.hub.brokers.embedded import EmbeddedBroker
from agentcanvas.store import Store
from tests.hub.helpers import post, text_of, texts

SENDERS = 8


def say(*words: str) -> None:
    """Write lines at once: what is in the pipe survives us."""
    sys.stdout.write("".join(f"{word}\n" for word in words))
    sys.stdout.flush()


async def send(broker: EmbeddedBroker, sender: str, start: int) -> None:
    """Send for ever, each message when the last is safe."""
    number = start
    while True:
        text = f"{sender}/{number}"
        (outcome,) = await broker.post([post(sender, "b", text, id=text)])
        assert isinstance(outcome, Receipt)
        say(f"sent {text}")
        number += 1


async def receive(broker: EmbeddedBroker) -> None:
    """Take and acknowledge for ever; every third batch is left for later."""
    inbox = await broker.connect("b", window=200)
    turn = 0
    while True:
        parcels = await inbox.take(20)
        say(*(f"seen {text_of(each.envelope)} {int(each.redelivered)}" for each in parcels))
        turn += 1
        if turn % 3:
            await inbox.settle([parcel.number for parcel in parcels], Settlement.TAKEN)
            say(*(f"taken {text}" for text in texts(parcels)))


async def main(path: Path, start: int) -> None:
    """Work until killed."""
    async with (
        await Store.open(path) as store,
        EmbeddedBroker.open(store, clock=SystemClock()) as broker,
        anyio.create_task_group() as group,
    ):
        for number in range(SENDERS):
            group.start_soon(send, broker, f"s{number}", start)
        group.start_soon(receive, broker)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
