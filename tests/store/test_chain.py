"""A hash chain notices every change to its history (D37)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.store.chain import GENESIS, first_break, link

pytestmark = pytest.mark.req("D37")

Entry = tuple[bytes, bytes, bytes]


def chained(bodies: list[bytes]) -> list[Entry]:
    entries: list[Entry] = []
    previous = GENESIS
    for body in bodies:
        entries.append((previous, body, link(previous, body)))
        previous = entries[-1][2]
    return entries


BODIES = st.lists(st.binary(max_size=30), min_size=2, max_size=8)


@given(BODIES)
def test_an_untouched_chain_holds_whole_and_from_any_point(bodies: list[bytes]) -> None:
    entries = chained(bodies)
    assert first_break(entries) is None
    for (_, _, before), _ in pairwise(entries):
        index = next(i for i, entry in enumerate(entries) if entry[2] == before)
        assert first_break(entries[index + 1 :], after=before) is None


@given(BODIES, st.data())
def test_a_changed_dropped_inserted_or_moved_entry_is_found(
    bodies: list[bytes], data: st.DataObject
) -> None:
    entries = chained(bodies)
    index = data.draw(st.integers(0, len(entries) - 2))
    match data.draw(st.sampled_from(["change", "drop", "insert", "swap"])):
        case "change":
            previous, body, stored = entries[index]
            entries[index] = (previous, body + b"!", stored)
        case "drop":
            del entries[index]
        case "insert":
            entries.insert(index, entries[index + 1])
        case _:
            entries[index], entries[index + 1] = entries[index + 1], entries[index]
    assert first_break(entries) == index


def test_a_chain_that_was_made_anew_after_a_change_does_not_follow_on() -> None:
    old, new = chained([b"a", b"b", b"c"]), chained([b"x", b"b", b"c"])
    assert first_break(new[1:], after=old[0][2]) == 0
