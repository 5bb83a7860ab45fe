"""A signed message counts once and only while it is fresh, whatever the traffic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.errors import Repeated, Replayed
from agentcanvas.protocol.seal import ReplayGuard, skew_note

pytestmark = pytest.mark.req("C9")

NOW = 1_769_594_400_000
WINDOW = 300_000


def admit(
    guard: ReplayGuard,
    message_id: str,
    *,
    sender: str = "alice",
    sent: int = NOW,
    now: int = NOW,
    content: bytes = b"content",
) -> None:
    guard.admit(sender, message_id, timestamp_ms=sent, fingerprint=content, now_ms=now)


def test_a_fresh_message_is_admitted_once() -> None:
    guard = ReplayGuard()
    admit(guard, "1")
    with pytest.raises(Repeated, match="'1' was received before"):
        admit(guard, "1")
    with pytest.raises(Repeated):
        admit(guard, "1", now=NOW + WINDOW)


def test_a_resend_is_told_from_another_message_under_the_same_id() -> None:
    guard = ReplayGuard()
    admit(guard, "1", content=b"one")
    with pytest.raises(Repeated):
        admit(guard, "1", content=b"one")
    with pytest.raises(Replayed, match="used before for another message") as caught:
        admit(guard, "1", content=b"two")
    assert not isinstance(caught.value, Repeated)


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        (
            NOW - WINDOW - 1500,
            r"timestamp is 301\.500 s behind the receiver's clock.* within 300 s",
        ),
        (NOW + WINDOW + 1, r"timestamp is 300\.001 s ahead of the receiver's clock.* within 300 s"),
    ],
)
def test_a_message_outside_the_window_is_refused_with_the_amount(sent: int, sentence: str) -> None:
    with pytest.raises(Replayed, match=sentence):
        admit(ReplayGuard(), "1", sent=sent)


def test_the_edges_of_the_window_are_inside() -> None:
    guard = ReplayGuard()
    admit(guard, "1", sent=NOW - WINDOW)
    admit(guard, "2", sent=NOW + WINDOW)


def test_a_message_from_the_future_cannot_be_replayed_when_its_time_comes() -> None:
    guard = ReplayGuard()
    admit(guard, "1", sent=NOW + WINDOW)
    admit(guard, "2", sent=NOW + WINDOW + 1, now=NOW + WINDOW + 1)
    with pytest.raises(Repeated):
        admit(guard, "1", sent=NOW + WINDOW, now=NOW + 2 * WINDOW)
    with pytest.raises(Replayed):
        admit(guard, "1", sent=NOW + WINDOW, now=NOW + 2 * WINDOW + 1)


def test_a_refused_message_uses_up_no_id() -> None:
    guard = ReplayGuard()
    with pytest.raises(Replayed):
        admit(guard, "1", sent=NOW - WINDOW - 1)
    admit(guard, "1")


def test_a_sender_who_was_silent_for_long_is_remembered_again_from_the_first_message() -> None:
    guard = ReplayGuard()
    admit(guard, "1")
    later = NOW + 10 * WINDOW
    admit(guard, "2", sent=later, now=later)
    with pytest.raises(Repeated):
        admit(guard, "2", sent=later, now=later)


def test_a_full_memory_refuses_what_it_cannot_tell_from_a_replay_and_admits_what_is_new() -> None:
    guard = ReplayGuard(capacity=3)
    for number in range(5):
        admit(guard, str(number), sent=NOW + number)
    assert guard.remembered == 3
    for forgotten in (0, 1):
        with pytest.raises(Replayed):
            admit(guard, str(forgotten), sent=NOW + forgotten)
    for kept in (2, 3, 4):
        with pytest.raises(Repeated):
            admit(guard, str(kept), sent=NOW + kept)
    with pytest.raises(Replayed, match="very many messages"):
        admit(guard, "late", sent=NOW + 1)
    admit(guard, "new", sent=NOW + 5)


def test_a_very_long_id_is_known_again_without_being_kept() -> None:
    guard = ReplayGuard()
    admit(guard, "x" * 100_000)
    admit(guard, "x" * 100_001)
    with pytest.raises(Repeated) as caught:
        admit(guard, "x" * 100_000)
    assert len(str(caught.value)) < 200


def test_a_loud_sender_takes_nothing_from_the_others() -> None:
    guard = ReplayGuard(capacity=3)
    admit(guard, "quiet", sender="bob", sent=NOW - 1000)
    for number in range(100):
        admit(guard, str(number), sent=NOW + number)
    with pytest.raises(Repeated):
        admit(guard, "quiet", sender="bob", sent=NOW - 1000)
    admit(guard, "other", sender="bob", sent=NOW - 1000)


def test_memory_is_given_back_when_messages_and_senders_grow_old() -> None:
    guard = ReplayGuard()
    for number in range(500):
        now = NOW + number * 10_000
        admit(guard, "1", sender=f"run-{number}", sent=now, now=now)
    assert guard.remembered <= 2 * (WINDOW // 10_000) + 2


@st.composite
def traffic(draw: st.DrawFn) -> list[tuple[int, str, str, int]]:
    now = 0
    steps = []
    for _ in range(draw(st.integers(1, 60))):
        now += draw(st.integers(0, 40))
        sender, message_id = draw(st.sampled_from("ab")), draw(st.sampled_from("123456789"))
        steps.append((now, sender, message_id, now + draw(st.integers(-120, 120))))
    return steps


@given(steps=traffic(), capacity=st.integers(0, 6))
def test_whatever_comes_nothing_is_admitted_twice_and_memory_stays_bounded(
    steps: list[tuple[int, str, str, int]], capacity: int
) -> None:
    guard = ReplayGuard(window_ms=100, capacity=capacity)
    admitted: set[tuple[str, str, int]] = set()
    for now, sender, message_id, sent in steps:
        try:
            guard.admit(
                sender, message_id, timestamp_ms=sent, fingerprint=bytes([sent % 251]), now_ms=now
            )
        except Replayed:
            continue
        assert abs(now - sent) <= 100
        # The same message is the same in sender, id and timestamp; all three are signed.
        assert (sender, message_id, sent) not in admitted
        admitted.add((sender, message_id, sent))
        assert guard.remembered <= 2 * capacity


@given(steps=traffic())
def test_with_room_enough_only_old_and_known_messages_are_refused(
    steps: list[tuple[int, str, str, int]],
) -> None:
    guard = ReplayGuard(window_ms=100)
    seen: dict[tuple[str, str], int] = {}
    for now, sender, message_id, sent in steps:
        known = seen.get((sender, message_id))
        fresh = abs(now - sent) <= 100 and (known is None or known < now - 100)
        try:
            guard.admit(sender, message_id, timestamp_ms=sent, fingerprint=b"", now_ms=now)
        except Replayed:
            assert not fresh
        else:
            assert fresh
            seen[sender, message_id] = sent


def test_skew_of_an_unsigned_message_is_a_remark_and_no_more() -> None:
    assert skew_note(NOW - WINDOW, now_ms=NOW) is None
    assert skew_note(NOW - 3_600_000, now_ms=NOW) == (
        "timestamp is 3600.000 s behind the receiver's clock"
    )
    assert skew_note(NOW + 10, now_ms=NOW, window_ms=9) == (
        "timestamp is 0.010 s ahead of the receiver's clock"
    )
