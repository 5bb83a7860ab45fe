"""The address that a task names is called when the task has ended: once, signed, if permitted."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.clock import VirtualClock
from agentcanvas.hub.audit import EntryType, Trail
from agentcanvas.hub.background import beside
from agentcanvas.hub.callbacks import (
    PUBLIC_MARK,
    Callbacks,
    Signer,
    host_of,
    judge,
    why_not,
)
from agentcanvas.hub.events import CallOutcome, EventKind
from agentcanvas.hub.guard import Principal
from agentcanvas.hub.hub import Hub
from agentcanvas.protocol.kinds import Kind, TaskAssign, TaskReject
from agentcanvas.protocol.limits import CallbackLimits, Limits
from agentcanvas.protocol.values import freeze
from agentcanvas.store import Store
from tests.hub.helpers import a_hub, complete, events, of_kind

pytestmark = [pytest.mark.anyio, pytest.mark.req("H8", "C10")]

URL = "http://127.0.0.1:9/done?key=hidden"
LOOPBACK = CallbackLimits().hosts.split()


class Receiver:
    """Answers calls with what it was told to; ``answers`` are statuses, None is no answer."""

    def __init__(self, *answers: int | None) -> None:
        self.answers = list(answers)
        self.calls: list[tuple[str, dict[str, str], bytes]] = []

    async def __call__(self, url: str, headers: dict[str, str], body: bytes) -> int:
        self.calls.append((url, headers, body))
        answer = self.answers.pop(0) if self.answers else 204
        if answer is None:
            raise ConnectionError("nobody is there")
        return answer


@asynccontextmanager
async def calling(
    store: Store, clock: VirtualClock, receiver: Receiver, limits: Limits | None = None
) -> AsyncIterator[Hub]:
    async with (
        a_hub(store, clock) as hub,
        beside(Callbacks(store, clock, limits or Limits(), receiver).run),
    ):
        yield hub


async def ended(hub: Hub, task: str, url: str = URL, **fields: Any) -> None:
    """Have ``b`` do a task of ``a``."""
    body = TaskAssign(task_id=task, input=freeze("do it"), callback_url=url)
    await hub.send(Principal("a"), of_kind(Kind.TASK_ASSIGN, "a", "b", body, id=f"m-{task}"))
    await hub.send(Principal("b"), complete("b", "a", task, id=f"end-{task}", **fields))


async def outcomes(store: Store, number: int = 1) -> list[dict[str, Any]]:
    """Wait for as many calls to be settled."""
    while True:
        head = store.head
        if len(found := await events(store, EventKind.CALLBACK)) >= number:
            return found
        await store.wait_beyond(head)


async def test_the_end_of_a_task_is_told_to_its_address_signed_by_the_hub(
    store: Store, clock: VirtualClock
) -> None:
    receiver = Receiver()
    async with calling(store, clock, receiver) as hub:
        await ended(hub, "t1")
        (told,) = await outcomes(store)
    ((url, headers, body),) = receiver.calls
    assert url == URL
    message = json.loads(body)
    assert (message["type"], message["payload"]["task_id"]) == ("TASK_COMPLETE", "t1")
    assert (message["from"], message["message_id"]) == ("b", "end-t1")
    public = (await Signer.load(store)).public
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode()
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public.removeprefix(PUBLIC_MARK)))
    signature = base64.b64decode(headers["webhook-signature"].removeprefix("v1a,"))
    key.verify(signature, signed + body)
    with pytest.raises(InvalidSignature):
        key.verify(signature, signed + body + b" ")
    assert told == {
        "message_id": "m-t1",
        "host": "http://127.0.0.1:9",
        "outcome": "called",
        "tries": 1,
    }, "what is behind the host may be a secret"


async def test_a_task_that_is_refused_has_ended_too(store: Store, clock: VirtualClock) -> None:
    receiver = Receiver()
    async with calling(store, clock, receiver) as hub:
        body = TaskAssign(task_id="t1", callback_url=URL)
        await hub.send(Principal("a"), of_kind(Kind.TASK_ASSIGN, "a", "b", body))
        refusal = TaskReject(task_id="t1", reason="OVERLOADED")  # type: ignore[arg-type]
        await hub.send(Principal("b"), of_kind(Kind.TASK_REJECT, "b", "a", refusal))
        await outcomes(store)
    assert json.loads(receiver.calls[0][2])["type"] == "TASK_REJECT"


async def test_a_host_that_is_not_permitted_is_not_called_and_that_is_on_record(
    store: Store, clock: VirtualClock
) -> None:
    receiver = Receiver()
    async with calling(store, clock, receiver) as hub:
        await ended(hub, "t1", "https://example.com/in?key=hidden")
        (told,) = await outcomes(store)
        assert [each.envelope.task_id for each in await hub.broker.since("a")] == ["t1"]
    assert receiver.calls == []
    assert (told["outcome"], told["host"]) == ("skipped", "https://example.com")
    assert "callback.hosts" in told["reason"]
    assert "hidden" not in json.dumps(told)
    entries = [entry for _, entry in await Trail(store).entries()]
    assert [entry.status for entry in entries if entry.type is EntryType.CALLBACK] == ["skipped"]


@pytest.mark.parametrize(
    ("answers", "outcome", "tries"),
    [
        ([503, None, 200], "called", 3),
        ([429, 408, 204], "called", 3),
        ([500, 500, 500, 500, 200], "failed", 4),
        ([None] * 9, "failed", 4),
        ([404, 200], "failed", 1),
        ([302, 200], "failed", 1),
        ([100, 200], "failed", 1),
    ],
)
async def test_what_may_get_better_is_tried_again_with_growing_pauses(
    store: Store, clock: VirtualClock, answers: list[int | None], outcome: str, tries: int
) -> None:
    receiver = Receiver(*answers)
    began = clock.monotonic()
    async with calling(store, clock, receiver) as hub:
        await ended(hub, "t1")
        (told,) = await outcomes(store)
    assert (told["outcome"], told["tries"], len(receiver.calls)) == (outcome, tries, tries)
    assert len({headers["webhook-id"] for _, headers, _ in receiver.calls}) == 1
    assert clock.monotonic() - began >= sum(2**n for n in range(tries - 1))


async def test_a_call_that_was_due_when_the_hub_ended_is_made_by_the_next_one(
    store: Store, clock: VirtualClock
) -> None:
    receiver = Receiver()
    async with a_hub(store, clock) as hub:
        await ended(hub, "t1")
        await ended(hub, "t2", "nonsense")
    async with calling(store, clock, receiver):
        found = await outcomes(store, 2)
    assert sorted(each["outcome"] for each in found) == ["called", "skipped"]
    async with calling(store, clock, receiver) as hub:
        await ended(hub, "t3")
        await outcomes(store, 3)
    assert len(receiver.calls) == 2, "the first is not made again"


async def test_a_repeated_end_calls_once_and_tasks_without_an_address_never(
    store: Store, clock: VirtualClock
) -> None:
    receiver = Receiver()
    async with calling(store, clock, receiver) as hub:
        await ended(hub, "t1")
        end = complete("b", "a", "t1", id="end-t1")
        assert (await hub.send(Principal("b"), end)).repeated
        plain = TaskAssign(task_id="t2")
        await hub.send(Principal("a"), of_kind(Kind.TASK_ASSIGN, "a", "b", plain))
        await hub.send(Principal("b"), complete("b", "a", "t2"))
        await ended(hub, "t3")
        await outcomes(store, 2)
    assert [json.loads(body)["payload"]["task_id"] for *_, body in receiver.calls] == ["t1", "t3"]


async def test_a_slow_receiver_does_not_hold_up_the_others(
    store: Store, clock: VirtualClock
) -> None:
    first = anyio.Event()

    class Slow(Receiver):
        async def __call__(self, url: str, headers: dict[str, str], body: bytes) -> int:
            if b'"t1"' in body:
                await first.wait()
            else:
                first.set()
            return await super().__call__(url, headers, body)

    receiver = Slow()
    async with a_hub(store, clock) as hub:
        for task in ("t1", "t2"):
            await ended(hub, task)
    async with calling(store, clock, receiver):
        await outcomes(store, 2)
    assert len(receiver.calls) == 2


async def test_the_key_is_the_same_after_a_restart(store: Store) -> None:
    first, second = await Signer.load(store), await Signer.load(store)
    assert first.public == second.public
    assert first.public.startswith(PUBLIC_MARK)


# -- whom ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/x",
        "http://localhost:8080/",
        "https://LOCALHOST",
        "http://[::1]:80/x?y#z",
        "http://localhost./x",
    ],
)
def test_this_machine_is_permitted(url: str) -> None:
    assert why_not(url, LOOPBACK) == ""


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost",
        "//localhost/x",
        "ftp://localhost/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "http://",
        "http://:80/",
        "http://localhost:99999/",
        "http://localhost:x/",
        "http://user:word@localhost/",
        "http://localhost@example.com/",
        "http://example.com/localhost",
        "http://localhost.example.com/",
        "http://127.0.0.1.example.com/",
        "http://127.0.0.2/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://[::ffff:127.0.0.1]/",
        "http://0.0.0.0/",
        "http://169.254.169.254/",
        "http://localhost\\@example.com/",
        "http://localhost\n/",
        "http://local host/",
        "http://[::1/",
        "http://\u217cocalhost/",
    ],
)
def test_whatever_only_looks_like_this_machine_is_not(url: str) -> None:
    assert why_not(url, LOOPBACK)


@pytest.mark.parametrize(
    ("allowed", "url", "is_called"),
    [
        ("ci.example.com", "https://ci.example.com/x", True),
        ("ci.example.com", "https://ci.example.com:8443/x", True),
        ("ci.example.com:443", "https://ci.example.com/x", True),
        ("ci.example.com:443", "http://ci.example.com/x", False),
        ("ci.example.com:443", "https://ci.example.com:8443/x", False),
        ("*.example.com", "https://ci.example.com/x", True),
        ("*.example.com", "https://a.b.example.com/x", True),
        ("*.example.com", "https://example.com/x", False),
        ("*.example.com", "https://badexample.com/x", False),
        ("*", "https://example.com/x", False),
        ("none", "http://localhost/x", False),
    ],
)
def test_hosts_are_permitted_by_name_port_or_domain(
    allowed: str, url: str, is_called: bool
) -> None:
    assert (why_not(url, [allowed]) == "") is is_called


@given(st.text(max_size=60))
def test_no_text_breaks_the_judgement_or_names_what_is_behind_the_host(text: str) -> None:
    why_not(text, LOOPBACK)
    assert "?" not in host_of(f"http://host/{text}")
    for make in (lambda each: f"http://{each}/", lambda each: each):
        url = make(text)
        host_of(url)
        if not why_not(url, LOOPBACK):
            assert url.lower().startswith(("http://", "https://"))


def test_every_status_means_something() -> None:
    called: Callable[[int], bool] = lambda status: judge(status).outcome is CallOutcome.CALLED  # noqa: E731
    assert [status for status in range(100, 600) if called(status)] == list(range(200, 300))
    again = [status for status in range(100, 600) if judge(status).outcome is None]
    assert again == [408, 425, 429, *range(500, 600)]
