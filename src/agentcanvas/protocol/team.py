"""What a member can learn of its team while it works: who is in it, and what is on its board."""

from __future__ import annotations

from msgspec import Struct


class Mate(Struct, frozen=True):
    """Another member, and whether it may be addressed (D23)."""

    id: str
    name: str
    role: str
    reachable: bool = True


class TeamPost(Struct, frozen=True):
    """What was put on the team's board; ``number`` counts all posts of the run, from 1."""

    number: int
    topic: str
    text: str
    by: str
