"""Any number of rows, in order, by a few statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import pytest

from agentcanvas.store.rows import Rows

pytestmark = pytest.mark.req("D2")


@pytest.mark.parametrize("number", [0, 1, 2, 3, 5, 11, 63, 65, 150, 235, 256, 257, 700])
def test_all_rows_are_written_in_order_by_a_few_statements(number: int) -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT, c BLOB)")
    statements = 0

    def execute(sql: str, values: Sequence[Any]) -> object:
        nonlocal statements
        statements += 1
        return connection.execute(sql, values)

    rows = [(index, None if index % 3 else str(index), bytes(index % 4)) for index in range(number)]
    Rows("t", "a", "b", "c").insert(execute, [value for row in rows for value in row])
    assert connection.execute("SELECT a, b, c FROM t").fetchall() == rows
    assert statements <= number // 256 + 4
    connection.close()
