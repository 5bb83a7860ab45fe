"""CI says which back-ends ran, and having none is a failure."""

from __future__ import annotations

import anyio
import pytest

from agentcanvas.sandbox.confine import ON_A_MAC
from agentcanvas.sandbox.pick import NAMES
from tools.backends import found, report

pytestmark = pytest.mark.req("S2")


def test_each_way_is_named_with_what_keeps_it_from_working() -> None:
    text, code = report({"bubblewrap": "", "landlock": "the kernel has ABI 1"})
    assert text.splitlines() == ["bubblewrap: works", "landlock: no (the kernel has ABI 1)"]
    assert code == 0


def test_none_at_all_is_a_failure() -> None:
    text, code = report(dict.fromkeys(NAMES, "not here"))
    assert text.endswith("nothing of the sandbox was tested.")
    assert code == 1


def test_this_machine_has_one_and_not_those_of_another() -> None:
    backends = anyio.run(found)
    assert tuple(backends) == NAMES
    assert report(backends)[1] == 0
    assert backends["landlock" if ON_A_MAC else "seatbelt"] == (
        "Linux only" if ON_A_MAC else "macOS only"
    )
