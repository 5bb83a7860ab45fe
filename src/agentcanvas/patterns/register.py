"""A register: who can do what, for how long that holds, and how well each did so far."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agentcanvas.patterns.wording import listed


class Entry(msgspec.Struct):
    """What one has registered, how often it was asked since, and how often that was good."""

    abilities: tuple[str, ...] = ()
    until: int = 0
    good: int = 0
    asked: int = 0

    @property
    def success(self) -> float:
        """The share of good answers; who was never asked is taken to be as likely good as not."""
        return (self.good + 1) / (self.asked + 2)


class Register:
    """Everybody who may register, in their order; a lease that is over counts as none."""

    def __init__(self, names: Iterable[str]) -> None:
        self._entries = {name: Entry() for name in names}

    def due(self, now: int) -> list[str]:
        """Those whose lease is over, or never began."""
        return [name for name, entry in self._entries.items() if entry.until <= now]

    def enter(self, name: str, abilities: tuple[str, ...], until: int) -> None:
        """Take down what somebody can do; nothing takes it off the register."""
        entry = self._entries[name]
        entry.abilities, entry.until = abilities, until

    def note(self, name: str, *, good: bool) -> None:
        """Take down how somebody did."""
        self._entries[name].asked += 1
        self._entries[name].good += good

    def able(self, ability: str, now: int) -> list[str]:
        """Who can do it, the most successful first, and of equals as they are listed."""
        wanted = ability.casefold()
        able = [
            name
            for name, entry in self._entries.items()
            if entry.until > now and wanted in {each.casefold() for each in entry.abilities}
        ]
        return sorted(able, key=lambda name: -self._entries[name].success)

    @property
    def abilities(self) -> str:
        """All that somebody can do."""
        known = {each for entry in self._entries.values() for each in entry.abilities}
        return ", ".join(sorted(known))

    def described(self, names: Iterable[str]) -> str:
        """What these can do and how often they were right, a line each."""
        entries = [(name, self._entries[name]) for name in names]
        return listed(
            f"{name}: {', '.join(entry.abilities)} ({entry.success:.2f})" for name, entry in entries
        )
