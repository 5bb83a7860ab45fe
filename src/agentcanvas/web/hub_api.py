"""The API under /api/v1/hub: what the person whom a hub belongs to can do with it (D26).

Each operation asks the hub's office and puts its answer on the wire. Agents have doors of their own
and do not come here: the server's token opens this, none of theirs.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw
from starlette.routing import Route

from agentcanvas.hub import office as h
from agentcanvas.hub.office import Entry, HubOffice, TaskOrder, TokenOrder
from agentcanvas.protocol.person import PersonAnswer
from agentcanvas.web import hub_views as v
from agentcanvas.web.following import Following
from agentcanvas.web.lines import one_line
from agentcanvas.web.operation import operation
from agentcanvas.web.stream import EventStream
from agentcanvas.web.views import FeedHeaders

_CREATED = 201


class HubApi:
    """All operations, over one hub's office."""

    def __init__(self, office: HubOffice, following: Following) -> None:
        self._office = office
        self._following = following

    def routes(self) -> list[Route]:
        """Every operation at its address; names and ids may hold slashes."""
        letter = "/hub/deadletters/{number:int}"
        return [
            operation("GET", "/hub/tokens", self.tokens),
            operation("POST", "/hub/tokens", self.new_token, status=_CREATED),
            operation("DELETE", "/hub/tokens/{token:path}", self.revoke),
            operation("GET", "/hub/callback-key", self.callback_key),
            operation("GET", "/hub/agents", self.agents),
            operation("POST", "/hub/messages", self.send, status=_CREATED),
            operation("POST", "/hub/tasks", self.assign, status=_CREATED),
            operation("GET", "/hub/record", self.record),
            operation("GET", "/hub/record/live", self.follow),
            operation("GET", "/hub/threads/{name:path}", self.thread),
            operation("GET", "/hub/deadletters", self.dead_letters),
            operation("GET", letter, self.dead_letter),
            operation("POST", f"{letter}/resend", self.resend),
            operation("DELETE", letter, self.delete),
            operation("GET", "/hub/asks", self.asks),
            operation("POST", "/hub/asks/{ask_id:path}/answer", self.answer),
        ]

    # -- tokens ----------------------------------------------------------------------------------

    async def tokens(self) -> v.TokensView:
        """Every token that was ever made."""
        return v.TokensView(await self._office.tokens())

    async def new_token(self, body: TokenOrder) -> h.NewToken:
        """Make a token; its text is in this answer and nowhere else."""
        return await self._office.new_token(body)

    async def revoke(self, path: v.TokenPath) -> v.TokensView:
        """Refuse a token, or all of one name's, from now on."""
        return v.TokensView(await self._office.revoke(path.token))

    async def callback_key(self) -> v.KeyView:
        """What those whom the hub calls check its signature with."""
        return v.KeyView(await self._office.callback_key())

    # -- agents and messages ---------------------------------------------------------------------

    async def agents(self, query: v.AgentsQuery) -> v.AgentsView:
        """Who is known, and how they are."""
        return v.AgentsView(await self._office.agents(query.wanted))

    async def send(self, body: Raw) -> h.Sent:
        """Hand in a message of any dialect, as the one it names as its sender."""
        return await self._office.send(bytes(body))

    async def assign(self, body: TaskOrder) -> h.Sent:
        """Give somebody a task."""
        return await self._office.assign(body)

    # -- the record ------------------------------------------------------------------------------

    async def record(self, query: v.RecordQuery) -> v.EntriesView:
        """The newest lines that are wanted."""
        return v.EntriesView(await self._office.latest(query.choice, query.most))

    async def follow(self, query: v.RecordQuery, headers: FeedHeaders) -> EventStream:
        """Each wanted line from a place on, and then every one as it happens."""
        after = await self._following.after(query, headers)
        entries = self._office.entries(query.choice, after=after)
        return self._following.stream(entries, lambda entry: entry.seq, _line)

    async def thread(self, path: v.ThreadPath) -> v.EntriesView:
        """All messages of a conversation."""
        return v.EntriesView(await self._office.thread(path.name))

    # -- dead letters ----------------------------------------------------------------------------

    async def dead_letters(self, query: v.LettersQuery) -> v.LettersView:
        """What could not be delivered."""
        found = await self._office.dead_letters(after=query.after, limit=query.limit)
        return v.LettersView(found)

    async def dead_letter(self, path: v.LetterPath) -> h.DeadLine:
        """One of them."""
        return await self._office.dead_letter(path.number)

    async def resend(self, path: v.LetterPath) -> None:
        """Put it back into its inbox."""
        await self._office.resend(path.number)

    async def delete(self, path: v.LetterPath) -> None:
        """Give it up for good."""
        await self._office.delete(path.number)

    # -- consent ---------------------------------------------------------------------------------

    async def asks(self) -> v.HubAsksView:
        """What waits for a person."""
        return v.HubAsksView(await self._office.asks())

    async def answer(self, path: v.HubAskPath, body: PersonAnswer) -> None:
        """Answer one of them."""
        await self._office.answer(path.ask_id, body)


def _line(entry: Entry) -> bytes:
    return one_line(msgspec.json.encode(entry))
