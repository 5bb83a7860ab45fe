"""A pass lets a browser in after a restart of the server, for a while, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcanvas.app.browser_key import NAME, browser_key
from agentcanvas.app.server import serve_beside
from agentcanvas.clock import VirtualClock
from agentcanvas.store import Store
from agentcanvas.web.passes import LASTS_S, Passes
from tests.web.office import FakeOffice

SECRET = b"s" * 32
RUNS = "/api/v1/runs"


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(jumps=False)


@pytest.mark.anyio
async def test_a_pass_is_good_until_its_time_is_over(clock: VirtualClock) -> None:
    passes = Passes(SECRET, clock)
    shown = passes.issue()
    assert passes.accept(shown)
    await clock.advance(LASTS_S)
    assert passes.accept(shown)
    await clock.advance(1)
    assert not passes.accept(shown)


def test_a_pass_of_another_workspace_is_refused(clock: VirtualClock) -> None:
    assert not Passes(b"t" * 32, clock).accept(Passes(SECRET, clock).issue())


@given(st.text() | st.from_regex(r"1\.[0-9]{1,13}\.[0-9a-f]{64}"))
def test_nothing_that_was_made_up_is_accepted(shown: str) -> None:
    assert not Passes(SECRET, VirtualClock(jumps=False)).accept(shown)


def test_the_moment_of_a_pass_cannot_be_changed(clock: VirtualClock) -> None:
    passes = Passes(SECRET, clock)
    version, issued, signature = passes.issue().split(".")
    assert not passes.accept(f"{version}.{int(issued) + 1}.{signature}")


def test_the_secret_stays_and_is_for_this_user_only(tmp_path: Path) -> None:
    key = browser_key(tmp_path)
    assert browser_key(tmp_path) == key
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize("spoil", ["short", "open", "link", "folder"])
def test_a_secret_that_others_could_know_is_replaced_or_not_used(
    tmp_path: Path, spoil: str
) -> None:
    path = tmp_path / NAME
    match spoil:
        case "short":
            path.write_bytes(b"x")
        case "open":
            path.write_bytes(b"x" * 32)
            path.chmod(0o644)
        case "link":
            (tmp_path / "other").write_bytes(b"x" * 32)
            (tmp_path / "other").chmod(0o600)
            path.symlink_to(tmp_path / "other")
        case _:
            path.mkdir()
    key = browser_key(tmp_path)
    assert len(key) == 32
    assert key != b"x" * 32


@pytest.mark.anyio
async def test_a_browser_is_let_in_after_a_restart_but_not_with_what_it_holds_as_a_token(
    tmp_path: Path,
) -> None:
    (tmp_path / ".agentcanvas").mkdir()
    async with (
        await Store.open(tmp_path / ".agentcanvas" / "agentcanvas.db") as store,
        httpx.AsyncClient(trust_env=False) as browser,
    ):
        office = FakeOffice(store)
        async with serve_beside(office, store, tmp_path, port=0, static=None) as info:
            await browser.get(info.link)
            port = int(info.url.rpartition(":")[2])
        async with serve_beside(office, store, tmp_path, port=port, static=None) as again:
            assert again.token != info.token
            assert (await browser.get(f"{again.url}{RUNS}")).status_code == 200
            (shown,) = browser.cookies.values()
            assert info.token not in shown
            headers = {"authorization": f"Bearer {shown}"}
            async with httpx.AsyncClient(trust_env=False, headers=headers) as thief:
                assert (await thief.get(f"{again.url}{RUNS}")).status_code == 401
            (tmp_path / ".agentcanvas" / NAME).unlink()
        async with serve_beside(office, store, tmp_path, port=port, static=None) as forgotten:
            assert (await browser.get(f"{forgotten.url}{RUNS}")).status_code == 401
