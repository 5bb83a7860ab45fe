"""The board of a ``ScriptedStage``: it forgets what is over its retention."""

from __future__ import annotations

from agentcanvas.pattern import Entry


class Board:
    """What was posted, the latest ``keep_last_n`` of each topic."""

    def __init__(self, keep_last_n: int) -> None:
        self._keep_last_n = keep_last_n
        self._posts: list[Entry] = []
        self._count = 0

    def put(self, topic: str, text: str, by: str, replaces: int = 0) -> Entry:
        """Post something, in the place of another entry if that is still there."""
        there = any(entry.number == replaces for entry in self.read(topic))
        self._count += 1
        entry = Entry(self._count, topic, text, by, replaces, bool(replaces) and not there)
        if there:
            self._posts = [each for each in self._posts if each.number != replaces]
        self._posts.append(entry)
        return entry

    def read(self, topic: str) -> tuple[Entry, ...]:
        """The latest entries of a topic."""
        return tuple(entry for entry in self._posts if entry.topic == topic)[-self._keep_last_n :]
