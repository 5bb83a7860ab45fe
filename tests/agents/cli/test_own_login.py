"""A login of AgentCanvas's own: lent to one turn at a time, renewed, and never left behind."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from agentcanvas.agents.cli.own_login import Login

pytestmark = [pytest.mark.anyio, pytest.mark.req("D12")]


@pytest.fixture
def login(tmp_path: Path) -> Login:
    own = Login(tmp_path / "own", (".codex/auth.json",))
    (own.home / ".codex").mkdir(parents=True)
    (own.home / ".codex" / "auth.json").write_text("token 1")
    return own


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


async def test_it_is_there_for_the_turn_and_gone_afterwards(login: Login, home: Path) -> None:
    lent = home / ".codex" / "auth.json"
    async with login.lent_to(home):
        assert lent.read_text() == "token 1"
        assert lent.stat().st_mode & 0o777 == 0o600
    assert list(home.rglob("*.json")) == []  # noqa: ASYNC240


async def test_what_was_renewed_meanwhile_is_brought_back(login: Login, home: Path) -> None:
    async with login.lent_to(home):
        (home / ".codex" / "auth.json").write_text("token 2")
    async with login.lent_to(home):
        assert (home / ".codex" / "auth.json").read_text() == "token 2"


async def test_two_turns_have_it_one_after_the_other(login: Login, tmp_path: Path) -> None:
    homes = [tmp_path / "a", tmp_path / "b"]
    for home in homes:
        home.mkdir()
    inside: list[Path] = []

    async def use(home: Path) -> None:
        async with login.lent_to(home):
            inside.append(home)
            assert len(inside) == 1
            await anyio.lowlevel.checkpoint()
            (home / ".codex" / "auth.json").write_text(f"renewed by {home.name}")
            inside.remove(home)

    async with anyio.create_task_group() as tasks:
        for home in homes:
            tasks.start_soon(use, home)
    assert (login.home / ".codex" / "auth.json").read_text().startswith("renewed by")


async def test_a_link_that_an_agent_plants_in_its_place_is_not_followed(
    login: Login, home: Path, tmp_path: Path
) -> None:
    stolen = tmp_path / "stolen"
    stolen.write_text("not a token")
    async with login.lent_to(home):
        lent = home / ".codex" / "auth.json"
        lent.unlink()
        lent.symlink_to(stolen)
    assert (login.home / ".codex" / "auth.json").read_text() == "token 1"
    assert stolen.read_text() == "not a token"
    assert not (home / ".codex" / "auth.json").is_symlink()


async def test_a_cancelled_turn_leaves_no_login_behind(login: Login, home: Path) -> None:
    async with anyio.create_task_group() as tasks:

        async def hang() -> None:
            async with login.lent_to(home):
                tasks.cancel_scope.cancel()
                await anyio.sleep_forever()

        tasks.start_soon(hang)
    assert list(home.rglob("*.json")) == []  # noqa: ASYNC240
