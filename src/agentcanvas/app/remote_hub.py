"""The office of a hub in another process, over HTTP (D1)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any
from urllib.parse import quote

import msgspec

from agentcanvas.app.wire import Wire
from agentcanvas.hub.office import (
    AgentLine,
    Choice,
    DeadLine,
    Entry,
    NewToken,
    Sent,
    TaskOrder,
    TokenLine,
    TokenOrder,
)
from agentcanvas.protocol.person import PersonAnswer, PersonAsk
from agentcanvas.web import hub_views as v

_entries = msgspec.json.Decoder(Entry)
_sent = msgspec.json.Decoder(Sent)


class RemoteHub(Wire):
    """A ``HubOffice`` that asks a server: ``async with RemoteHub(info) as office``."""

    async def new_token(self, order: TokenOrder) -> NewToken:
        """Make a token, and its owner known to the others."""
        return await self.ask("POST", "/hub/tokens", NewToken, body=order)

    async def tokens(self) -> tuple[TokenLine, ...]:
        """Every token that was ever made, the oldest first."""
        return (await self.ask("GET", "/hub/tokens", v.TokensView)).tokens

    async def revoke(self, id_or_name: str) -> tuple[TokenLine, ...]:
        """Refuse a token, or all of one name's, from now on, and end their connections."""
        path = f"/hub/tokens/{quote(id_or_name, safe='')}"
        return (await self.ask("DELETE", path, v.TokensView)).tokens

    async def callback_key(self) -> str:
        """The public key by which those whom the hub calls know it."""
        return (await self.ask("GET", "/hub/callback-key", v.KeyView)).key

    async def agents(self, capabilities: Sequence[str] = ()) -> tuple[AgentLine, ...]:
        """Every agent that is known and can do all of this, by name."""
        query = {"capability": ",".join(capabilities)}
        return (await self.ask("GET", "/hub/agents", v.AgentsView, query)).agents

    async def send(self, message: bytes) -> Sent:
        """Hand in a message of any dialect, as the one it names as its sender."""
        return _sent.decode(await self.fetch("POST", "/hub/messages", body=message))

    async def assign(self, order: TaskOrder) -> Sent:
        """Give somebody a task."""
        return await self.ask("POST", "/hub/tasks", Sent, body=order)

    async def latest(self, choice: Choice, most: int) -> tuple[Entry, ...]:
        """The newest lines that are wanted, in order."""
        query = {**_query(choice), "most": most}
        return (await self.ask("GET", "/hub/record", v.EntriesView, query)).entries

    async def entries(self, choice: Choice, *, after: int) -> AsyncGenerator[Entry, None]:
        """Each wanted line after a number, and then every one as it happens."""
        query = {**_query(choice), "after": after}
        async with aclosing(self.follow("/hub/record/live", query)) as frames:
            async for frame in frames:
                yield _entries.decode(frame.data)

    async def thread(self, name: str) -> tuple[Entry, ...]:
        """All messages of a conversation, by its correlation id or the id of one of them."""
        path = f"/hub/threads/{quote(name, safe='')}"
        return (await self.ask("GET", path, v.EntriesView)).entries

    async def dead_letters(self, *, after: int = 0, limit: int = 100) -> tuple[DeadLine, ...]:
        """What could not be delivered, the oldest first."""
        query = {"after": after, "limit": limit}
        return (await self.ask("GET", "/hub/deadletters", v.LettersView, query)).letters

    async def dead_letter(self, number: int) -> DeadLine:
        """One of them."""
        return await self.ask("GET", f"/hub/deadletters/{number}", DeadLine)

    async def resend(self, number: int) -> None:
        """Put it back into its inbox, as if it had come now."""
        await self.fetch("POST", f"/hub/deadletters/{number}/resend")

    async def delete(self, number: int) -> None:
        """Give it up for good."""
        await self.fetch("DELETE", f"/hub/deadletters/{number}")

    async def asks(self) -> tuple[PersonAsk, ...]:
        """Everything that is not answered yet, the oldest first."""
        return (await self.ask("GET", "/hub/asks", v.HubAsksView)).asks

    async def answer(self, ask_id: str, answer: PersonAnswer) -> None:
        """Answer one of them."""
        await self.fetch("POST", f"/hub/asks/{quote(ask_id, safe='')}/answer", body=answer)


def _query(choice: Choice) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(choice).items() if value}
