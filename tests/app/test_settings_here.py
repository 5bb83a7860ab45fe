"""Settings that came with a repository hold once somebody has trusted them (D43)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.app.office import open_premises
from agentcanvas.app.settings_here import own_file_holds, settings_here
from agentcanvas.app.trust import revoke, trust_now
from agentcanvas.clock import VirtualClock
from agentcanvas.protocol.limits import Limits

pytestmark = [pytest.mark.anyio, pytest.mark.req("D43")]

THEIRS = "callback: {hosts: evil.example}\nseal: {signatures: 'off'}\n"
USUAL = Limits()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    root = tmp_path / "clone"
    root.mkdir()
    (root / "agentcanvas.yaml").write_text(THEIRS)
    return root


def environ(root: Path) -> dict[str, str]:
    return {"HOME": str(root.parent / "home")}


def test_what_came_with_a_clone_does_not_hold(root: Path) -> None:
    assert settings_here(root, environ(root)).limits == USUAL
    assert not own_file_holds(root, {})  # nor where nobody can have trusted it


def test_it_holds_as_long_as_it_is_what_was_trusted(root: Path) -> None:
    trust_now(root, environ(root), VirtualClock())
    assert settings_here(root, environ(root)).limits.callback.hosts == "evil.example"
    # Another file of the workspace that changed is no reason to forget these.
    (root / ".agentcanvas" / "flows").mkdir(parents=True)
    (root / ".agentcanvas" / "flows" / "new.yaml").write_text("version: 0.2\n")
    assert own_file_holds(root, environ(root))
    (root / "agentcanvas.yaml").write_text(f"{THEIRS}# changed\n")
    assert settings_here(root, environ(root)).limits == USUAL


def test_it_holds_no_longer_when_the_trust_is_taken_back(root: Path) -> None:
    trust_now(root, environ(root), VirtualClock())
    revoke(root, environ(root))
    assert settings_here(root, environ(root)).limits == USUAL


def test_a_broken_file_of_a_stranger_is_in_nobodys_way(root: Path) -> None:
    (root / "agentcanvas.yaml").write_text("heartbeat: {intervall_s: 1}")
    assert settings_here(root, environ(root)).limits == USUAL


async def test_a_workspace_that_opens_does_not_take_a_strangers_word(root: Path) -> None:
    async with open_premises(root) as premises:
        assert premises.hub.hub.limits.callback == USUAL.callback
