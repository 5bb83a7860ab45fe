"""A login of AgentCanvas's own: lent to one turn at a time, renewed, and never left behind."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import anyio
import pytest

from agentcanvas.agents.cli.own_login import Login
from tests.sandbox.ordinary_user import as_ordinary_user

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


KEPT = '{"account": "ann", "access": "a1", "refresh": "r1"}'


async def returned(login: Login, home: Path, content: str) -> list[str]:
    """What is said when this comes back in the place of ``KEPT``."""
    own = login.home / ".codex" / "auth.json"
    own.write_text(KEPT)
    said: list[str] = []
    async with login.lent_to(home, said.append):
        (home / ".codex" / "auth.json").write_text(content)
    return said


async def test_a_renewal_is_said_and_the_login_before_it_is_kept(login: Login, home: Path) -> None:
    own = login.home / ".codex"
    (said,) = await returned(login, home, KEPT.replace("r1", "r2"))
    assert said == f"The login of own was renewed; the one before it is {own}/auth.json.before."
    assert json.loads((own / "auth.json").read_text())["refresh"] == "r2"
    assert (own / "auth.json.before").read_text() == KEPT
    assert (own / "auth.json.before").stat().st_mode & 0o777 == 0o600
    assert await returned(login, home, KEPT) == [], "nothing was renewed"
    login.forget()
    assert list(own.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (KEPT.replace("ann", "eve").replace("r1", "r2"), "it is of another account"),
        ("{}", ""),
        ("[]", "it has another form"),
        ("\0", "it has another form"),
    ],
)
async def test_another_login_in_its_place_is_not_taken_back(
    login: Login, home: Path, content: str, why: str
) -> None:
    said = await returned(login, home, content)
    assert (login.home / ".codex" / "auth.json").read_text() == KEPT
    assert said == [
        f"What lay in the place of the login was not taken back: {why}. The agent may have put it "
        "there; if its CLI asks for a login now: agentcanvas login own"
    ] * bool(why)


async def test_one_file_of_another_account_holds_back_the_others(
    home: Path, tmp_path: Path
) -> None:
    login = Login(tmp_path / "accounts", ("tokens.json", "account.json"))
    login.home.mkdir()
    (login.home / "tokens.json").write_text('{"refresh": "r1"}')
    (login.home / "account.json").write_text('{"account": "ann"}')
    async with login.lent_to(home):
        (home / "tokens.json").write_text('{"refresh": "r2"}')
        (home / "account.json").write_text('{"account": "eve"}')
    assert (login.home / "tokens.json").read_text() == '{"refresh": "r1"}'


CLOSED = """
import sys
from pathlib import Path
import anyio
from agentcanvas.agents.cli.own_login import Login

own, home = Path(sys.argv[1]), Path(sys.argv[2])
login = Login(own, (".a/one.json", "two.json"))
(own / ".a").mkdir(parents=True)
for name in login.credentials:
    (own / name).write_text("token")

async def main():
    for _ in range(2):
        async with login.lent_to(home, print):
            print(sorted(path.name for path in home.rglob("*.json")))
            (home / ".a" / "one.json").unlink()
            (home / ".a" / "one.json" / "x").mkdir(parents=True)
            for closed in (".a/one.json/x", ".a/one.json", ".a"):
                (home / closed).chmod(0)
        print(sorted(path.name for path in home.rglob("*.json")))

anyio.run(main)
"""


async def test_what_an_agent_has_closed_costs_no_later_turn_its_login(
    home: Path, tmp_path: Path
) -> None:
    said = as_ordinary_user(CLOSED, str(tmp_path / "two"), str(home)).splitlines()
    assert said == ["['one.json', 'two.json']", "[]"] * 2


@contextmanager
def mounted(place: Path) -> Iterator[None]:
    """Put a folder there that cannot be removed while it is mounted."""
    place.unlink()
    place.mkdir()
    if subprocess.run(["mount", "--bind", str(place), str(place)], check=False).returncode:
        pytest.skip("only root can mount something")
    try:
        yield
    finally:
        subprocess.run(["umount", str(place)], check=True)


async def test_a_file_that_cannot_be_removed_keeps_no_other_one_there(
    login: Login, home: Path
) -> None:
    both = Login(login.home, (".codex/auth.json", "two.json"))
    (login.home / "two.json").write_text("token")
    said: list[str] = []
    with ExitStack() as mounts:
        async with both.lent_to(home, said.append):
            mounts.enter_context(mounted(home / ".codex" / "auth.json"))
    assert not (home / "two.json").exists()
    assert len(said) == 1
    assert said[0].startswith(".codex/auth.json could not be removed from home/ of the agent: ")


async def test_a_cancelled_turn_leaves_no_login_behind(login: Login, home: Path) -> None:
    async with anyio.create_task_group() as tasks:

        async def hang() -> None:
            async with login.lent_to(home):
                tasks.cancel_scope.cancel()
                await anyio.sleep_forever()

        tasks.start_soon(hang)
    assert list(home.rglob("*.json")) == []  # noqa: ASYNC240
