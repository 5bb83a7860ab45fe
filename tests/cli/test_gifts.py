"""What only AgentCanvas makes, brought along by a repository: refused, and not followed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agentcanvas.app.made_here import refuse_gifts
from agentcanvas.app.workspace import ensure_folder
from agentcanvas.errors import ResourceError
from tests.cli.test_flow import Place
from tests.proposals.workspaces import shot, write_files

pytestmark = pytest.mark.req("D42", "D43")

FOLDERS = ("apply", "blobs", "generations", "logs", "pool", "proposals", "runs", "sandboxes")
MADE = (*FOLDERS, "trash", "browser.key", "server.json", "server.lock")
STORE = ("agentcanvas.db", "agentcanvas.db-wal", "agentcanvas.db.lock", "AgentCanvas.DB")
COMMANDS = (
    ("run", "change it", "--command", "echo b > f.txt"),
    ("sandbox", "make"),
    ("sandbox", "list"),
    ("sandbox", "diff"),
    ("sandbox", "clean", "--all"),
    ("runs",),
    ("undo", "--yes"),
    ("review", "--list"),
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    git(made, "init", "-q")
    return made


def git(place: Place, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", *who, *words], cwd=place.root, capture_output=True, check=True)


def commit_all(place: Place) -> None:
    git(place, "add", "-fA")
    git(place, "commit", "-qm", "a gift")


@pytest.mark.parametrize("name", [*MADE, *STORE])
def test_a_link_in_the_place_of_what_is_made_here_is_refused(place: Place, name: str) -> None:
    (place.root / ".agentcanvas").mkdir()
    (place.root / ".agentcanvas" / name).symlink_to("../elsewhere")
    with pytest.raises(ResourceError, match=f"{name} is a link"):
        ensure_folder(place.root)


@pytest.mark.parametrize("name", [*MADE, *STORE])
def test_what_git_tracks_of_it_is_refused_until_it_is_removed(place: Place, name: str) -> None:
    inner = f"{name}/x" if name in FOLDERS else name
    write_files(place.root, {f".agentcanvas/{inner}": "{}", ".agentcanvas/flows/a.yaml": "x"})
    commit_all(place)
    with pytest.raises(ResourceError) as refused:
        ensure_folder(place.root)
    sentence, _, advice = str(refused.value).partition("Remove it: git ")
    assert f"git tracks .agentcanvas/{name}, which only AgentCanvas itself makes" in sentence
    git(place, *advice.split())
    ensure_folder(place.root)
    assert not (place.root / ".agentcanvas" / inner).exists()
    assert (place.root / ".agentcanvas/flows/a.yaml").exists(), "what a team shares stays"


def test_a_folder_in_other_letters_is_the_same_on_some_disks(place: Place) -> None:
    write_files(place.root, {".AgentCanvas/browser.key": "known to its giver"})
    commit_all(place)
    write_files(place.root, {".agentcanvas/browser.key": "what such a disk would show here"})
    with pytest.raises(ResourceError, match=r"git rm -r \.AgentCanvas/browser\.key$"):
        refuse_gifts(place.root)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        *(("trash", command) for command in COMMANDS),
        *((name, COMMANDS[0]) for name in ("pool", "sandboxes", "generations")),
    ],
)
def test_no_command_follows_such_a_link(
    place: Place, tmp_path: Path, name: str, command: tuple[str, ...]
) -> None:
    """Clean-up would remove what is behind it."""
    outside = write_files(
        tmp_path / "precious", {"file": "1", "run_20260101_000000/coder/input/file": "2"}
    )
    before = shot(outside)
    write_files(place.root, {"f.txt": "a\n"})
    (place.root / ".agentcanvas").mkdir()
    (place.root / ".agentcanvas" / name).symlink_to(outside)
    commit_all(place)
    done = place.run(*command)
    assert (done.returncode, f"{name} is a link" in done.stderr) == (1, True), done.stderr
    assert shot(outside) == before


def test_what_was_made_here_or_is_shared_is_used(place: Place) -> None:
    ensure_folder(place.root)
    write_files(place.root, {".agentcanvas/pool/x": "", ".agentcanvas/agentcanvas.db-wal": ""})
    refuse_gifts(place.root)
    git(place, "add", "-A")
    refuse_gifts(place.root)
