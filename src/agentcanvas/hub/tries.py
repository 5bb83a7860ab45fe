"""Letters that were handed out and not taken over: counted, put back, or given up (C1, D28).

A letter has two counts. One is of failures: its recipient said so, or said nothing in time. The
other is of returns: its recipient went away with it, or the whole hub did. What kills its recipient
would come back for ever without the second, so it is written before the letter goes out again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Sequence
from random import Random

from agentcanvas.clock import Clock
from agentcanvas.hub import deadletters, mailbox
from agentcanvas.hub.alarm import Alarm
from agentcanvas.hub.commits import Commits, Mail
from agentcanvas.hub.deadletters import Cause
from agentcanvas.hub.delivery import DeliveryRules, Letter
from agentcanvas.hub.inbox import LiveInbox


class Tries:
    """Counts them, on disk and in memory."""

    def __init__(
        self, commits: Commits, alarm: Alarm, clock: Clock, *, rules: DeliveryRules, chance: Random
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._commits = commits
        self._alarm = alarm
        self._clock = clock
        self._rules = rules
        self._chance = chance

    def fail(self, inbox: LiveInbox, letters: Sequence[Letter], cause: Cause) -> Awaitable[None]:
        """Use up one try of each letter; those that have none left are given up."""
        tries = {letter.number: letter.tries + 1 for letter in letters}
        hopeless = [number for number, times in tries.items() if self._rules.exhausted(times)]

        def work(mail: Mail) -> None:
            mailbox.note_tries(mail.transaction, tries)
            gone, told = deadletters.bury(
                mail.transaction, hopeless, cause, mail.rules, mail.now_ms
            )
            mail.changes.gone += gone
            mail.changes.kept += told

        def afterwards(done: asyncio.Future[None]) -> None:
            written = not done.cancelled() and done.exception() is None
            self.counts["dead"] += len(hopeless) if written else 0
            now = self._clock.monotonic()
            for letter in letters:
                if letter.number not in inbox.schedule:
                    continue  # taken over meanwhile, or given up
                if written:
                    letter.tries = tries[letter.number]
                rest_until = now + self._rules.pause_s(max(1, letter.tries), self._chance)
                inbox.put_back(letter.number, rest_until=rest_until)
                self._alarm.ring_by(rest_until)

        promise = self._commits.work(work)
        promise.add_done_callback(afterwards)
        return promise

    async def hand_out_again(self, inbox: LiveInbox, letters: Sequence[Letter]) -> Sequence[Letter]:
        """Count, on disk, what is handed out once more; return what still may be.

        A letter that kills its recipient, or the hub with it, would else come back for ever.
        """
        doubtful = [letter for letter in letters if letter.doubtful]
        if not doubtful:
            return letters
        hopeless = {
            letter.number for letter in doubtful if self._rules.exhausted(letter.returns + 1)
        }

        def work(mail: Mail) -> None:
            mailbox.note_returns(mail.transaction, [letter.number for letter in doubtful])
            if hopeless:
                gone, told = deadletters.bury(
                    mail.transaction, hopeless, Cause.ABANDONED, mail.rules, mail.now_ms
                )
                mail.changes.gone += gone
                mail.changes.kept += told

        await self._commits.work(work)
        self.counts["dead"] += len(hopeless)
        for letter in doubtful:
            letter.returns += 1
        return [letter for letter in letters if letter.number in inbox.schedule]

    async def forgive(self, letters: Sequence[Letter]) -> None:
        """Doubt letters no longer whose recipient lives and knows of them."""
        doubted = [letter for letter in letters if letter.returns]
        if doubted:
            for letter in doubted:
                letter.returns, letter.doubtful = 0, False
            numbers = [letter.number for letter in doubted]
            await self._commits.work(
                lambda mail: mailbox.forgive_returns(mail.transaction, numbers)
            )
