"""CI says which back-ends ran, and having none is a failure."""

from __future__ import annotations

import anyio
import pytest

from tools.backends import NAMES, found, report

pytestmark = pytest.mark.req("S2")


def test_each_way_is_named_with_what_keeps_it_from_working() -> None:
    text, code = report({"bubblewrap": "", "landlock": "the kernel has ABI 1"})
    assert text.splitlines() == ["bubblewrap: works", "landlock: no (the kernel has ABI 1)"]
    assert code == 0


def test_none_at_all_is_a_failure() -> None:
    text, code = report(dict.fromkeys(NAMES, "not here"))
    assert text.endswith("nothing of the sandbox was tested.")
    assert code == 1


def test_this_machine_has_one() -> None:
    _, code = report(anyio.run(found))
    assert code == 0
