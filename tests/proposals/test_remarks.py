"""Remarks about lines, as the worker reads them with the verdict."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.errors import ProposalMalformed
from agentcanvas.proposals.remarks import (
    MOST_REMARKS,
    Remark,
    Remarks,
    paths_in,
    quoted,
    with_remarks,
)

pytestmark = pytest.mark.req("U2")

PATCH = b"""\
diff --git a/src/a.py b/src/a.py
index 1111111..2222222 100644
--- a/src/a.py
+++ b/src/a.py
@@ -10,3 +10,3 @@ def f():
 kept
-gone
+come
 last
"""


def test_each_remark_stands_below_its_place_with_the_line_it_is_about() -> None:
    remarks = (
        Remark("src/a.py", "Is it ever empty?", line=11, quote="    come"),
        Remark("src/a.py", "Why?", line=11, side="old"),
        Remark("README.md", "Say it here, too."),
    )
    assert with_remarks("Not yet.", remarks) == (
        "Not yet.\n\n"
        "src/a.py:11\n> come\nIs it ever empty?\n\n"
        "src/a.py:11 (before the change)\nWhy?\n\n"
        "README.md\nSay it here, too."
    )


def test_remarks_alone_are_reason_enough() -> None:
    assert with_remarks("", [Remark("a", "b", line=1)]) == "a:1\nb"


@pytest.mark.parametrize(
    ("side", "line", "quote"), [("new", 11, "come"), ("old", 11, "gone"), ("new", 12, "last")]
)
def test_the_line_is_found_in_the_patch(side: str, line: int, quote: str) -> None:
    remark = msgspec.convert({"path": "src/a.py", "text": "?", "line": line, "side": side}, Remark)
    assert quoted(remark, PATCH).quote == quote


def test_a_line_that_the_patch_does_not_show_has_no_quote() -> None:
    assert quoted(Remark("src/a.py", "?", line=400), PATCH).quote == ""


def test_a_patch_names_its_files_and_a_broken_one_is_refused() -> None:
    assert paths_in(PATCH) == ("src/a.py",)
    with pytest.raises(ProposalMalformed):
        paths_in(b"nonsense\n")


@pytest.mark.parametrize(
    "said",
    [
        [{"path": "", "text": "x"}],
        [{"path": "a", "text": ""}],
        [{"path": "a", "text": "x", "line": -1}],
        [{"path": "a", "text": "x", "side": "left"}],
        [{"path": "a", "text": "x" * 4001}],
        [{"path": "a", "text": "x"}] * (MOST_REMARKS + 1),
        "text",
        [7],
    ],
)
def test_what_is_no_remark_is_refused(said: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(said, Remarks)


@given(st.text(min_size=1), st.text())
def test_a_name_or_a_quote_cannot_speak_as_a_line_of_its_own(path: str, quote: str) -> None:
    said = with_remarks("", [Remark(path, "text", line=3, quote=quote)])
    assert len(said.splitlines()) <= 3
    assert said.splitlines()[-1] == "text"
