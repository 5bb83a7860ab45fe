"""The mail of a connected agent, in memory: what waits, what is in whose hands, who wants more.

It is made from the rows of ``mailbox`` when an agent connects and forgotten when the last of its
connections ends. What is decided here is written by the broker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from msgspec import UnsetType

from agentcanvas.hub.delivery import Letter, Schedule
from agentcanvas.hub.events import OnBehalfOf
from agentcanvas.hub.mailbox import Kept, Waiting
from agentcanvas.protocol.envelope import Envelope

Content = tuple[Envelope, OnBehalfOf | UnsetType, bytes]
"""A message, for whom it speaks, and how it is spelled in its own dialect, if that is at hand."""


class Contents:
    """Messages at hand, for all inboxes together, up to so many bytes of their written form.

    What does not fit is read back when its turn comes, so that slow readers cost no memory.
    """

    def __init__(self, most_bytes: int = 32 * 1024 * 1024) -> None:
        self._room = most_bytes
        self._held: dict[int, tuple[Content, int]] = {}

    def keep(self, kept: Kept) -> None:
        """Hold a message if there is room."""
        if kept.size <= self._room:
            self._room -= kept.size
            content = (kept.envelope, kept.on_behalf_of, kept.spelled)
            self._held[kept.letter.number] = (content, kept.size)

    def get(self, number: int) -> Content | None:
        """Return a letter's message if it is at hand."""
        found = self._held.get(number)
        return found[0] if found else None

    def drop(self, number: int) -> None:
        """Make room."""
        _, size = self._held.pop(number, (None, 0))
        self._room += size


class Hands:
    """The parcels that one connection has taken and not settled."""

    def __init__(self, window: int) -> None:
        self.numbers: set[int] = set()
        self.suspect: int | None = None
        self.stirred = asyncio.Event()
        self._window = window

    @property
    def free(self) -> int:
        """How many more fit; none beside a suspect."""
        return 0 if self.suspect is not None else self._window - len(self.numbers)

    def take(self, letter: Letter) -> None:
        """Hold a letter."""
        self.numbers.add(letter.number)
        if letter.suspect:
            self.suspect = letter.number

    def drop(self, number: int) -> None:
        """Hold a letter no longer."""
        self.numbers.discard(number)
        if self.suspect == number:
            self.suspect = None


class LiveInbox:
    """The letters of one agent; ``seconds`` turns the time of a row into that of the clock."""

    def __init__(
        self,
        waiting: Iterable[Waiting],
        contents: Contents,
        seconds: Callable[[int], float],
        now: float,
    ) -> None:
        self.schedule = Schedule()
        self.connections: set[Hands] = set()
        self._contents = contents
        self._seconds = seconds
        for letter in waiting:
            self._enter(letter, now)

    def add(self, kept: Kept, now: float) -> None:
        """Take in a letter that was just written; whoever waits is stirred afterwards."""
        self._contents.keep(kept)
        self._enter(kept.letter, now)

    def forget(self) -> None:
        """Let go of the contents, when nobody is connected any more."""
        for number in self.schedule:
            self._contents.drop(number)

    def hand_out(self, hands: Hands, most: int, now: float, settle_by: float) -> list[Letter]:
        """Put the next letters, if any may go, into somebody's hands."""
        letters: list[Letter] = []
        while len(letters) < most and hands.free > 0:
            letter = self.schedule.take(now, settle_by, suspects=not hands.numbers)
            if letter is None:
                break
            hands.take(letter)
            letters.append(letter)
        return letters

    def put_back(self, number: int, *, rest_until: float | None = None) -> None:
        """Take a letter out of whoever's hands it is in; it will come again."""
        self._out_of_hands(number)
        self.schedule.put_back(number, rest_until=rest_until)
        self.stir()

    def remove(self, number: int) -> None:
        """Forget a letter that was taken over or given up; whoever waits is stirred afterwards."""
        if self.schedule.remove(number):
            self._out_of_hands(number)
            self._contents.drop(number)

    def stir(self) -> None:
        """Let everybody who waits for mail look again."""
        for hands in self.connections:
            hands.stirred.set()

    def _out_of_hands(self, number: int) -> None:
        for hands in self.connections:
            hands.drop(number)

    def _enter(self, letter: Waiting, now: float) -> None:
        arrived = self._seconds(letter.at_ms)
        self.schedule.add(
            Letter(
                letter.number,
                (letter.session, letter.sender, letter.band),
                min(arrived, now),  # a wall clock that was set back must not make it wait
                None if letter.expires_ms is None else self._seconds(letter.expires_ms),
                letter.tries,
                bool(letter.seen),
                letter.returns,
                bool(letter.seen),
            )
        )
