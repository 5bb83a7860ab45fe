"""What is said on a ``ScriptedStage`` without an answer, within the rate limit."""

from __future__ import annotations

from agentcanvas.pattern import Entry, Fate, Receipt
from agentcanvas.patterns.scripted.place import Place
from agentcanvas.patterns.scripted.script import MINUTE_MS


class Speech:
    """The messages of one interaction; what is over ``per_minute`` waits, or is refused."""

    def __init__(self, place: Place, per_minute: int | None, *, refuse: bool) -> None:
        self._place = place
        self._per_minute = per_minute
        self._refuse = refuse
        self._subscribers: dict[str, dict[str, None]] = {}
        self._sent: dict[tuple[str, str], list[int]] = {}

    def deliver(self, verb: str, to: str, message: str, by: str) -> Receipt:
        """Put a message on record, if the rate limit lets it."""
        world, place = self._place.world, self._place
        sent = self._sent.setdefault((by, to), [])
        if self._per_minute is not None and len(sent) >= self._per_minute:
            free_ms = sent[-self._per_minute] + MINUTE_MS
            if free_ms > world.now_ms and self._refuse:
                reason = f"rate limit: {self._per_minute} a minute"
                place.note(verb, to, message, reason, fate=Fate.REJECTED, by=by)
                return Receipt(to, delivered=False, reason=reason)
            world.now_ms = max(world.now_ms, free_ms)
            place.require_open()
        place.limits.spend(messages=1)
        sent.append(world.now_ms)
        place.note(verb, to, message, by=by)
        return Receipt(to)

    def subscribe(self, who: str, topic: str, missed: tuple[Entry, ...]) -> None:
        """Tell of what is published from now on, and of what was missed at once."""
        self._place.note("subscribe", who, topic)
        self._subscribers.setdefault(topic, {})[who] = None
        for entry in missed:
            self.deliver("notify", who, entry.text, entry.by)

    def unsubscribe(self, who: str, topic: str) -> None:
        """Tell of nothing more."""
        self._place.note("unsubscribe", who, topic)
        self._subscribers.get(topic, {}).pop(who, None)

    def notify(self, entry: Entry) -> tuple[Receipt, ...]:
        """Tell those who subscribed, but not whoever said it."""
        there = [who for who in self._subscribers.get(entry.topic, {}) if who != entry.by]
        return tuple(self.deliver("notify", who, entry.text, entry.by) for who in there)
