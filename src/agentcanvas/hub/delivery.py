"""Which letter goes next: lanes, priority bands, ageing, back-off. Pure: times are arguments.

Order is FIFO in a lane, which is (session, sender, band) within one inbox. Of the lanes, that whose
first letter has the lowest *rank* goes: its arrival, put back by 30 s for each band (D29). So a
letter gains one band on newer ones for every 30 s that it waits, and only those that came within
90 s after it can ever overtake it: nothing starves, however much of a higher band keeps coming.

A letter that failed goes first in its lane and the lane rests meanwhile; letters of it that are in
the recipient's hands already are not called back. Keeping letters is left to ``mailbox``.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from random import Random

from msgspec import UNSET, Struct, UnsetType

from agentcanvas.protocol.limits import AcpRetry, Limits
from agentcanvas.protocol.priorities import PriorityWord, to_word

AGE_OF_A_BAND_S = 30.0
_DEFAULT_PRIORITY = 5
_BANDS = {word: band for band, word in enumerate(PriorityWord)}
TOP_BAND = len(_BANDS) - 1

LaneKey = tuple[str, str, int]


def band_of(priority: int | UnsetType) -> int:
    """Return 0 for low to 3 for critical."""
    return _BANDS[to_word(_DEFAULT_PRIORITY if priority is UNSET else priority)]


class DeliveryRules(Struct, frozen=True, kw_only=True):
    """How much, how often and how long."""

    inbox: int = Limits().queue.messages
    retries: int = Limits().delivery.retries
    pauses: AcpRetry = Limits().acp.retry
    jitter: float = 0.25
    """The part by which a pause may be longer, so that many do not come back at once."""

    settle_within_s: float = 30.0
    """How long a recipient may hold a parcel without a word."""

    remembered_ms: int = 24 * 3_600_000
    remembered_ids: int = 1_000_000
    """How long an id is known, to recognise its repeat (D30)."""

    @classmethod
    def of(cls, limits: Limits) -> DeliveryRules:
        """Take what the limits say."""
        return cls(
            inbox=limits.queue.messages,
            retries=limits.delivery.retries,
            pauses=limits.acp.retry,
        )

    def exhausted(self, tries: int) -> bool:
        """Tell whether a letter with so many failed tries is given up (C1: 1 + 3)."""
        return tries > self.retries

    def pause_s(self, tries: int, chance: Random) -> float:
        """Tell how long to wait after this many failed tries: 1 s, 2 s, 4 s, and a little more."""
        return self.pauses.pause_ms(tries) / 1000 * (1 + self.jitter * chance.random())


@dataclass(slots=True, eq=False)
class Letter:
    """A copy of a message that waits; times are seconds of the monotonic clock."""

    number: int
    lane: LaneKey
    arrived: float
    expires: float | None = None
    tries: int = 0
    seen: bool = False
    returns: int = 0
    """How often it was handed out again without a word about the time before."""

    doubtful: bool = False
    """Whether its recipient went away with it in hand, perhaps because of it."""

    settle_by: float | None = None
    """When it is in the recipient's hands: until when a word is expected."""

    @property
    def suspect(self) -> bool:
        """Whether it goes alone, so that innocent neighbours do not fall with it again."""
        return self.doubtful and self.returns > 0

    @property
    def rank(self) -> float:
        """What the letters of an inbox are ordered by."""
        return self.arrived - AGE_OF_A_BAND_S * self.lane[2]


@dataclass(slots=True, eq=False)
class _Lane:
    returned: list[Letter] = field(default_factory=list)
    """Those that were out before, in order; all came before any of ``fresh``."""

    fresh: deque[Letter] = field(default_factory=deque)
    rests_until: float = float("-inf")

    def first(self) -> Letter | None:
        if self.returned:
            return self.returned[0]
        return self.fresh[0] if self.fresh else None

    def pop(self) -> Letter:
        return self.returned.pop(0) if self.returned else self.fresh.popleft()


class Schedule:
    """The letters of one inbox, waiting or in its owner's hands."""

    def __init__(self) -> None:
        self._letters: dict[int, Letter] = {}
        self._lanes: dict[LaneKey, _Lane] = {}
        self._ready: list[tuple[float, int, LaneKey]] = []
        """The first letters of lanes; entries that are no longer true are skipped."""
        self._resting: list[tuple[float, LaneKey]] = []
        self._expected: list[tuple[float, int]] = []
        self._out = 0

    def __len__(self) -> int:
        return len(self._letters)

    def __contains__(self, number: int) -> bool:
        return number in self._letters

    def __iter__(self) -> Iterator[int]:
        return iter(self._letters)

    def __getitem__(self, number: int) -> Letter:
        return self._letters[number]

    @property
    def in_flight(self) -> int:
        """How many letters are in the recipient's hands."""
        return self._out

    def add(self, letter: Letter) -> None:
        """Put a letter at the end of its lane."""
        self._letters[letter.number] = letter
        lane = self._lane(letter.lane)
        lane.fresh.append(letter)
        if lane.first() is letter:
            self._offer(letter.lane, lane)

    def take(self, now: float, settle_by: float, *, suspects: bool = True) -> Letter | None:
        """Hand out the next letter, if one may go now; a suspect holds the others up."""
        self.wake(now)
        while self._ready:
            _, number, key = heappop(self._ready)
            lane = self._lanes.get(key)
            letter = lane.first() if lane else None
            if lane is None or letter is None or letter.number != number or lane.rests_until > now:
                continue
            if letter.suspect and not suspects:
                heappush(self._ready, (letter.rank, number, key))
                return None
            lane.pop()
            if self._is_due(letter, now):
                letter.settle_by = settle_by
                heappush(self._expected, (settle_by, number))
                self._out += 1
                self._offer(key, lane)
                return letter
            self._offer(key, lane)
        return None

    def hold(self, number: int, settle_by: float) -> None:
        """Expect word of a letter later than was said."""
        letter = self._letters.get(number)
        if letter and letter.settle_by is not None:
            letter.settle_by = settle_by
            heappush(self._expected, (settle_by, number))

    def put_back(self, number: int, *, rest_until: float | None = None) -> None:
        """Let a letter that was out go first in its lane, after a rest or at once.

        Without a rest nothing was said about it: its recipient has gone.
        """
        letter = self._letters.get(number)
        if letter is None or letter.settle_by is None:
            return
        letter.settle_by = None
        letter.seen = True
        letter.doubtful = rest_until is None
        self._out -= 1
        lane = self._lane(letter.lane)
        insort(lane.returned, letter, key=lambda each: each.number)
        if rest_until is not None:
            lane.rests_until = max(lane.rests_until, rest_until)
            heappush(self._resting, (lane.rests_until, letter.lane))
        self._offer(letter.lane, lane)

    def remove(self, number: int) -> Letter | None:
        """Forget a letter, wherever it is."""
        letter = self._letters.pop(number, None)
        if letter is None:
            return None
        if letter.settle_by is not None:
            letter.settle_by = None
            self._out -= 1
        elif (lane := self._lanes.get(letter.lane)) and lane.first() is letter:
            lane.pop()
            self._offer(letter.lane, lane)
        return letter

    def overdue(self, now: float) -> list[Letter]:
        """Return the letters whose recipient should have said something by now, each once."""
        found = []
        while self._expected and self._expected[0][0] <= now:
            moment, number = heappop(self._expected)
            letter = self._letters.get(number)
            if letter and letter.settle_by == moment:
                found.append(letter)
        return found

    def wake(self, now: float) -> None:
        """Let lanes go on whose rest is over."""
        while self._resting and self._resting[0][0] <= now:
            _, key = heappop(self._resting)
            lane = self._lanes.get(key)
            if lane and lane.rests_until <= now:
                lane.rests_until = float("-inf")
                self._offer(key, lane)

    def next_moment(self) -> float | None:
        """Tell when time alone changes something: a rest ends, or a word is overdue."""
        while self._expected:
            moment, number = self._expected[0]
            letter = self._letters.get(number)
            if letter and letter.settle_by == moment:
                break
            heappop(self._expected)
        heads = [heap[0][0] for heap in (self._expected, self._resting) if heap]
        return min(heads, default=None)

    def _lane(self, key: LaneKey) -> _Lane:
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane()
        return lane

    def _is_due(self, letter: Letter, now: float) -> bool:
        """Tell whether a letter at the head of its lane is still there to be delivered."""
        if self._letters.get(letter.number) is not letter:
            return False  # removed while it was not the first
        return letter.expires is None or letter.expires > now

    def _offer(self, key: LaneKey, lane: _Lane) -> None:
        """Enter the lane's first letter into the race, or drop a lane that has none."""
        while (first := lane.first()) and self._letters.get(first.number) is not first:
            lane.pop()
        if first is None:
            if not lane.fresh and lane.rests_until == float("-inf"):
                self._lanes.pop(key, None)
            return
        heappush(self._ready, (first.rank, first.number, key))
