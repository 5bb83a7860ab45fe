"""The schedule of an inbox: come what may, no letter is lost, starved or overtaken in its lane."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agentcanvas.hub.delivery import AGE_OF_A_BAND_S, TOP_BAND, Letter, Schedule, band_of

pytestmark = pytest.mark.req("D29")

FAR = 1e9


def letter(number: int, arrived: float = 0.0, band: int = 1, sender: str = "a") -> Letter:
    return Letter(number, ("s", sender, band), arrived)


def drained(schedule: Schedule, now: float = FAR) -> list[int]:
    taken = []
    while found := schedule.take(now, FAR):
        taken.append(found.number)
    return taken


@given(
    st.lists(
        st.tuples(st.floats(0, 10), st.integers(0, TOP_BAND), st.sampled_from("abc")), max_size=60
    )
)
def test_letters_leave_by_rank_and_in_order_within_a_lane(
    arrivals: list[tuple[float, int, str]],
) -> None:
    schedule, now, letters = Schedule(), 0.0, {}
    for number, (pause, band, sender) in enumerate(arrivals):
        now += pause
        letters[number] = letter(number, now, band, sender)
        schedule.add(letters[number])
    taken = [letters[number] for number in drained(schedule)]
    assert len(taken) == len(letters)
    assert [each.rank for each in taken] == sorted(each.rank for each in letters.values())
    for lane in {each.lane for each in taken}:
        numbers = [each.number for each in taken if each.lane == lane]
        assert numbers == sorted(numbers)


@given(st.integers(0, TOP_BAND), st.integers(0, TOP_BAND), st.floats(0, 300))
def test_a_letter_is_overtaken_only_by_those_that_came_soon_enough_after_it(
    band: int, other: int, later: float
) -> None:
    schedule = Schedule()
    schedule.add(letter(1, 0.0, band, "a"))
    schedule.add(letter(2, later, other, "b"))
    overtakes = drained(schedule) == [2, 1]
    assert overtakes == (later < AGE_OF_A_BAND_S * (other - band))


def test_nothing_starves_under_a_flood_of_the_highest_band() -> None:
    schedule, now, number = Schedule(), 0.0, 1
    schedule.add(letter(0, 0.0, 0, "patient"))
    while True:
        schedule.add(letter(number, now, TOP_BAND, "flood"))
        schedule.add(letter(number + 1, now, TOP_BAND, "flood"))  # faster than it is taken
        number += 2
        taken = schedule.take(now, FAR)
        assert taken is not None
        if taken.number == 0:
            break
        now += 1
    # A backlog of two for each one taken: those that came within 90 s are 180.
    assert now <= 2 * TOP_BAND * AGE_OF_A_BAND_S + 1


@pytest.mark.parametrize(
    ("priority", "band"), [(1, 0), (4, 0), (5, 1), (6, 1), (7, 2), (8, 2), (9, 3), (10, 3)]
)
def test_priorities_fall_into_four_bands(priority: int, band: int) -> None:
    assert band_of(priority) == band


def test_an_expired_letter_is_not_handed_out() -> None:
    schedule = Schedule()
    schedule.add(Letter(1, ("s", "a", 1), 0.0, expires=5.0))
    schedule.add(letter(2))
    assert drained(schedule, now=5.0) == [2]


class AnInbox(RuleBasedStateMachine):
    """Letters come, go out, are taken over, fail, are put back; a simple model knows them all."""

    def __init__(self) -> None:
        super().__init__()
        self.schedule = Schedule()
        self.now = 0.0
        self.number = 0
        self.waiting: dict[int, Letter] = {}
        self.out: dict[int, Letter] = {}
        self.gone: set[int] = set()
        self.first_out: dict[tuple[str, str, int], list[int]] = {}
        self.resting: dict[tuple[str, str, int], float] = {}

    @rule(band=st.integers(0, TOP_BAND), sender=st.sampled_from("ab"), pause=st.floats(0, 40))
    def come(self, band: int, sender: str, pause: float) -> None:
        self.now += pause
        self.number += 1
        new = letter(self.number, self.now, band, sender)
        self.waiting[new.number] = new
        self.schedule.add(new)

    @rule()
    def take(self) -> None:
        taken = self.schedule.take(self.now, self.now + 30)
        may_go = [
            each for each in self.waiting.values() if self.resting.get(each.lane, -1.0) <= self.now
        ]
        if taken is None:
            assert not may_go
            return
        assert taken in may_go
        del self.waiting[taken.number]
        self.out[taken.number] = taken
        lane_mates = [each for each in self.waiting.values() if each.lane == taken.lane]
        assert all(each.number > taken.number for each in lane_mates), "overtaken in its lane"
        if not taken.seen:
            self.first_out.setdefault(taken.lane, []).append(taken.number)

    @precondition(lambda self: self.out)
    @rule(data=st.data())
    def take_over(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.out)))
        assert self.schedule.remove(number) is self.out.pop(number)
        self.gone.add(number)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def give_up_one_that_waits(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.waiting)))
        assert self.schedule.remove(number) is self.waiting.pop(number)
        self.gone.add(number)

    @precondition(lambda self: self.out)
    @rule(data=st.data(), rest=st.one_of(st.none(), st.floats(0.1, 10)))
    def put_back(self, data: st.DataObject, rest: float | None) -> None:
        number = data.draw(st.sampled_from(sorted(self.out)))
        back = self.out.pop(number)
        self.waiting[number] = back
        until = None if rest is None else self.now + rest
        if until is not None:
            self.resting[back.lane] = max(until, self.resting.get(back.lane, until))
        self.schedule.put_back(number, rest_until=until)
        assert back.seen

    @rule(pause=st.floats(0, 60))
    def wait(self, pause: float) -> None:
        self.now += pause
        overdue = {each.number for each in self.schedule.overdue(self.now)}
        assert overdue <= set(self.out)

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        assert len(self.schedule) == len(self.waiting) + len(self.out)
        assert self.schedule.in_flight == len(self.out)
        assert self.number == len(self.waiting) + len(self.out) + len(self.gone)

    @invariant()
    def first_deliveries_of_a_lane_are_in_order(self) -> None:
        for numbers in self.first_out.values():
            assert numbers == sorted(numbers)

    def teardown(self) -> None:
        left = set(drained(self.schedule))
        assert left == set(self.waiting)


TestAnInbox = AnInbox.TestCase
