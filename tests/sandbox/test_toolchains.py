"""Programs of the user's PATH are seen; the rest of the home folder is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentcanvas.sandbox.toolchains import toolchain_folders
from tests.sandbox.conftest import write

pytestmark = pytest.mark.req("PR4")


def opened(workspace: Path, folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> set[Path]:
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, [*folders, "/usr/bin", "relative", ""])))
    return set(toolchain_folders(workspace))


def test_an_installation_is_opened_by_its_program_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = tmp_path / ".nvm/versions/node/v20"
    write(node, {"bin/node": "", "lib/node_modules/x": "", "share/doc": "", "etc/npmrc": "token"})
    found = opened(tmp_path / "w", [node / "bin"], monkeypatch)
    assert found == {node / "bin", node / "lib"}


def test_logins_beside_the_programs_stay_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {".cargo/bin/cargo": "", ".cargo/credentials.toml": "token"})
    write(tmp_path, {".rustup/toolchains/x": "", ".local/bin/x": "", ".local/share/keyring": "k"})
    folders = [tmp_path / ".cargo/bin", tmp_path / ".local/bin"]
    found = opened(tmp_path / "w", folders, monkeypatch)
    assert found == {*folders, tmp_path / ".rustup"}


def test_programs_that_are_links_are_opened_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / ".local/share/pipx/venvs/tool"
    write(tool, {"bin/tool": "", "lib/python/x": "", "pyvenv.cfg": ""})
    (tmp_path / ".local/bin").mkdir(parents=True)
    (tmp_path / ".local/bin/tool").symlink_to(tool / "bin/tool")
    (tmp_path / ".local/bin/gone").symlink_to(tmp_path / "gone")
    (tmp_path / ".local/bin/sh").symlink_to("/bin/sh")
    found = opened(tmp_path / "w", [tmp_path / ".local/bin"], monkeypatch)
    assert found == {tmp_path / ".local/bin", tool / "bin", tool / "lib", tool / "pyvenv.cfg"}


def test_a_version_manager_is_opened_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {".pyenv/shims/python": "", ".pyenv/versions/3.12/bin/python": ""})
    found = opened(tmp_path / "w", [tmp_path / ".pyenv/shims"], monkeypatch)
    assert found == {tmp_path / ".pyenv"}


def test_the_workspace_and_the_home_folder_are_never_opened(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace = tmp_path / "w"
    write(workspace, {".venv/bin/python": "", ".venv/lib/x": ""})
    write(home, {"bin/mine": "", "lib/x": ""})
    found = opened(workspace, [workspace / ".venv/bin", home / "bin"], monkeypatch)
    assert found == {home / "bin"}
    for name in ("bin/mine", "lib/x"):
        (home / name).unlink()
        (home / name).parent.rmdir()


def test_a_folder_that_holds_the_home_or_the_workspace_is_never_opened(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, tools = tmp_path / "work/w", tmp_path / "tools"
    write(workspace, {"bin/x": ""})
    write(home, {"shims/x": "", ".ssh/id": "key"})
    tools.mkdir()
    for name, target in (("home", home), ("up", tmp_path), ("work", workspace / "bin")):
        (tools / name).symlink_to(target)
    folders = [home, home / "shims", home.parent, tmp_path, workspace.parent, Path("/"), tools]
    aliases = [tools / "home", tools / "up", tools / "work"]
    found = opened(workspace, [*folders, *aliases], monkeypatch)
    assert found == {home / "shims", tools}
