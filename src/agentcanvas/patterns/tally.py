"""Counting votes: who leads, by how much, and who said nothing.

What nobody said in a form that counts is an abstention; it is told, and no share is of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec


class Tally(msgspec.Struct, frozen=True):
    """The votes for each choice, in the order of the choices."""

    counts: dict[str, int]
    abstained: int = 0

    @property
    def cast(self) -> int:
        """How many votes count."""
        return sum(self.counts.values())

    @property
    def leaders(self) -> tuple[str, ...]:
        """The choices with the most votes; several of them are a tie, none is no vote at all."""
        most = max(self.counts.values(), default=0)
        return tuple(choice for choice, count in self.counts.items() if count == most and count)

    @property
    def share(self) -> float:
        """How much of the votes a leader has."""
        return max(self.counts.values()) / self.cast if self.cast else 0.0

    def __str__(self) -> str:
        """A line for the record."""
        silent = [f"{self.abstained} abstained"] if self.abstained else []
        return ", ".join([*(f"{choice}: {n}" for choice, n in self.counts.items()), *silent])


def count(votes: Iterable[str | None], choices: Sequence[str] = ()) -> Tally:
    """Count them; what is not among ``choices`` follows in the order it was first said."""
    counts = dict.fromkeys(choices, 0)
    abstained = 0
    for vote in votes:
        if vote is None:
            abstained += 1
        else:
            counts[vote] = counts.get(vote, 0) + 1
    return Tally(counts, abstained)


def alike(answer: str) -> str:
    """An answer so that those that mean the same look the same."""
    return answer.strip().rstrip(".").casefold()
