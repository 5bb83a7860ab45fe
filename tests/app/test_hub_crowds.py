"""Thousands of connections of a hub in a process of its own: idle, coming and going, one too many.

Memory and open files are read off the process, so this is for Linux.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest

from tests.app.crowd import Look, Member, join, join_all
from tests.app.hub_process import hub_process, tokens_for
from tests.web.sockets import mac

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.req("H1", "H2"),
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc"),
]

IDLE = 2_000
RECONNECTS = 2_000
KB_EACH = 60
CONNECTIONS = 'agentcanvas_connections{door="websocket"}'


@pytest.fixture
def many_files() -> Iterator[int]:
    """Let this process open as many files as it may; return how many a hub may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < IDLE + 500:
        pytest.skip(f"only {hard} files may be open here: ulimit -Hn")
    wanted = 1 << 16 if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield wanted
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_two_thousand_idle_connections_live_are_reached_and_cost_little(
    tmp_path: Path, many_files: int
) -> None:
    names = [f"a{number}" for number in range(IDLE)]
    tokens = await tokens_for(tmp_path, "caller", *names)
    # A soft limit that is too low for them: the hub raises it to the hard one by itself.
    with hub_process(tmp_path, files=(256, many_files)) as (url, _):
        look = Look(tmp_path, url)
        caller = await join(url, "caller", tokens["caller"])
        files, before = look.files, look.resident_kb
        crowd = await join_all(url, tokens, names)
        each_kb = (look.resident_kb - before) / IDLE
        assert await look.metric(CONNECTIONS) == IDLE + 1
        assert each_kb <= KB_EACH
        assert look.files <= files + IDLE + 8

        caller.say(mac("caller", "broadcast", "b-1") | _broadcast("all"))
        (receipt,) = (await caller.hear())[0]["receipts"]
        assert len(receipt["numbers"]) == 1 + IDLE, "the broadcast, and a copy for each"
        for member in crowd:
            (came,) = await member.hear()
            assert came["payload"]["event"] == "all"
            member.say({"ack": [came["delivery"]["number"]], "ref": 1})
        for member in crowd:
            assert await member.hear() == [{"settled": [{"ref": 1, "news": 1}]}]

        for member in crowd:
            member.socket.close()
        await look.wait_for(CONNECTIONS, 1)
        assert look.files <= files + 8
        held = look.resident_kb
        for member in await join_all(url, tokens, names):  # what they leave behind is used again
            member.socket.close()
        await look.wait_for(CONNECTIONS, 1)
        assert (look.resident_kb - held) / IDLE <= KB_EACH / 6
        caller.say(mac("caller", "a7", "m-1"))
        assert "receipts" in (await caller.hear())[0]
        caller.socket.close()


def _broadcast(event: str) -> dict[str, Any]:
    return {"type": "BROADCAST", "payload": {"event": event, "message": ""}}


async def test_thousands_of_reconnects_lose_nothing_repeat_nothing_and_leave_nothing(
    tmp_path: Path,
) -> None:
    receivers = [f"r{number}" for number in range(20)]
    tokens = await tokens_for(tmp_path, *receivers, *(f"s{name}" for name in receivers))
    rounds = RECONNECTS // len(receivers)
    with hub_process(tmp_path) as (url, _):
        look = Look(tmp_path, url)
        await asyncio.gather(*(_visits(url, tokens, name, range(5)) for name in receivers))
        await look.wait_for(CONNECTIONS, 0)
        files, before = look.files, look.resident_kb
        again = range(5, 5 + rounds)
        found = await asyncio.gather(*(_visits(url, tokens, name, again) for name in receivers))
        await look.wait_for(CONNECTIONS, 0)
        for taken, unasked in found:
            assert taken == Counter(f"m-{number}" for number in again), "each once, and all of them"
            assert not unasked, "what comes again says so"
        assert look.files <= files + 4
        # They are on record by now: 20 agents and 4,000 connections later it holds no more of them.
        assert (look.resident_kb - before) / RECONNECTS <= 2
        assert await look.metric("agentcanvas_queue_depth") == 0
        assert await look.metric("agentcanvas_in_flight") == 0


async def _visits(
    url: str, tokens: dict[str, str], name: str, rounds: range
) -> tuple[Counter[str], list[str]]:
    """Come and go, taking a message over each time but hanging up on some of them first.

    Return what was taken over, and what came a second time without saying so.
    """
    (await join(url, name, tokens[name])).socket.close()  # from now on it is known
    sender = await join(url, f"s{name}", tokens[f"s{name}"])
    seen: set[str] = set()
    taken: Counter[str] = Counter()
    unasked: list[str] = []
    for number in rounds:
        sender.say(mac(f"s{name}", name, f"m-{number}"))
        assert "receipts" in (await sender.hear())[0]
        hangs_up = [True, False] if number % 4 == 0 else [False]
        for hanging_up in hangs_up:
            line = await join(url, name, tokens[name])
            (came,) = await line.hear()
            id_ = came["message_id"]
            if id_ in seen and not came["delivery"].get("redelivered"):
                unasked.append(id_)
            seen.add(id_)
            if not hanging_up:
                taken[id_] += await _settled(line, came["delivery"]["number"])
            line.socket.close()
    sender.socket.close()
    return taken, unasked


async def _settled(line: Member, number: int) -> int:
    line.say({"ack": [number], "ref": 1})
    (answer,) = await line.hear()
    news: int = answer["settled"][0]["news"]
    return news


async def test_one_connection_too_many_is_told_so_and_the_others_go_on(tmp_path: Path) -> None:
    names = [f"a{number}" for number in range(80)]
    tokens = await tokens_for(tmp_path, *names)
    with TemporaryFile("w+") as complaints:
        with hub_process(tmp_path, files=(128, 128), complaints=complaints) as (url, process):
            here = await join_all(url, tokens, names[:64])
            with pytest.raises(ConnectionError, match=r"503[\s\S]*64 connections and no room"):
                await join(url, names[64], tokens[names[64]])
            await _exchange(here[0], here[1])

            # Connections that never say what they are take the files that are left.
            host, port = url.removeprefix("http://").split(":")
            strangers = [socket.create_connection((host, int(port))) for _ in range(150)]
            await _exchange(here[2], here[3])
            for stranger in strangers:
                stranger.close()
            here.pop().socket.close()
            joining = asyncio.ensure_future(join(url, names[65], tokens[names[65]]))
            async with asyncio.timeout(60):
                here.append(await joining)
            await _exchange(here[-1], here[0])
            for member in here:
                member.socket.close()
            process.terminate()
            process.wait()
        complaints.seek(0)
        said = complaints.read()
    assert said.count("No more connections can be taken") == 1, said
    assert "ulimit -n" in said
    assert "Traceback" not in said


async def _exchange(one: Member, other: Member) -> None:
    """Send something from one to the other, and see it arrive."""
    one.say(mac(one.name, other.name, f"from {one.name}"))
    assert "receipts" in (await one.hear())[0]
    (came,) = await other.hear()
    assert came["from"] == one.name
