"""What a board keeps, and for how long."""

from __future__ import annotations

import pytest

from agentcanvas.runs.board import Board, Retention

pytestmark = pytest.mark.req("I5", "I4a")

DAY_MS = 24 * 3_600_000


def post(board: Board, topic: str, text: str, at_ms: int = 0) -> None:
    board.put(board.next(topic, text, "ann", at_ms))


def texts(board: Board, topic: str) -> str:
    return "".join(entry.text for entry in board.read(topic))


def test_each_topic_keeps_its_latest_entries() -> None:
    board = Board(Retention(last_n=2))
    for text in "abc":
        post(board, "one", text)
    post(board, "other", "d")
    assert (texts(board, "one"), texts(board, "other"), texts(board, "none")) == ("bc", "d", "")


def test_a_hundred_are_kept_if_nothing_is_said() -> None:
    board = Board(Retention())
    for _ in range(150):
        post(board, "one", "x")
    assert [entry.number for entry in board.read("one")] == list(range(51, 151))


def test_entries_may_be_kept_for_days() -> None:
    board = Board(Retention(last_n=None, last_days=2))
    for day, text in enumerate("abcde"):
        post(board, "one", text, day * DAY_MS)
    assert texts(board, "one") == "cde"


def test_numbers_go_on_whatever_was_forgotten() -> None:
    board = Board(Retention(last_n=1))
    post(board, "one", "a")
    post(board, "one", "b")
    post(board, "other", "c")
    assert [entry.number for topic in ("one", "other") for entry in board.read(topic)] == [2, 3]
