"""What the host writes, reads and removes in folders of an agent: by no link, whatever it left."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from agentcanvas.agents.private import (
    clear_private,
    place_private,
    read_private,
    write_private,
)
from tests.sandbox.ordinary_user import as_ordinary_user

pytestmark = pytest.mark.req("S2", "D12")

NAME = ".claude/.credentials.json"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def of_the_user(tmp_path: Path) -> Path:
    folder = tmp_path / "of-the-user"
    folder.mkdir()
    (folder / ".credentials.json").write_text("mine")
    return folder


def test_files_are_for_their_owner_alone(home: Path) -> None:
    write_private(home, {NAME: "one"})
    place_private(home, "picture.png", io.BytesIO(b"\x89PNG"))
    assert (home / NAME).read_text() == "one"
    assert (home / NAME).stat().st_mode & 0o777 == 0o600
    assert (home / "picture.png").read_bytes() == b"\x89PNG"
    assert read_private(home, NAME, 3) == b"one"
    assert read_private(home, NAME, 2) is None, "more than wanted"


def test_what_is_no_file_is_not_read(home: Path) -> None:
    (home / "folder").mkdir()
    os.mkfifo(home / "pipe")
    for name in ("folder", "pipe", "none", "folder/none", "pipe/none"):
        assert read_private(home, name, 100) is None
        clear_private(home, name)
    assert list(home.iterdir()) == []


def test_no_link_on_the_way_is_followed(home: Path, of_the_user: Path) -> None:
    (home / ".claude").symlink_to(of_the_user)
    assert read_private(home, NAME, 100) is None
    clear_private(home, NAME)
    write_private(home, {NAME: "ours"})
    assert (of_the_user / ".credentials.json").read_text() == "mine"
    assert (home / NAME).read_text() == "ours"


def test_no_link_at_the_end_of_the_way_is_followed(home: Path, of_the_user: Path) -> None:
    theirs = of_the_user / ".credentials.json"
    (home / ".claude").mkdir()
    (home / NAME).symlink_to(theirs)
    assert read_private(home, NAME, 100) is None
    write_private(home, {NAME: "ours"})
    assert theirs.read_text() == "mine"
    (home / NAME).unlink()
    (home / NAME).symlink_to(theirs)
    clear_private(home, NAME)
    assert not (home / NAME).is_symlink()
    assert theirs.read_text() == "mine"


IN_THE_WAY = """
import sys
from pathlib import Path
from agentcanvas.agents.private import clear_private, read_private, write_private
home, name = Path(sys.argv[1]), ".claude/.credentials.json"

def plant():
    (home / name / "x" / "y").mkdir(parents=True)
    (home / name / "x" / "y" / "file").write_text("1")
    for folder in (home / name / "x" / "y", home / name / "x", home / name):
        folder.chmod(0)

plant()
clear_private(home, name)
print((home / name).exists())
plant()
write_private(home, {name: "ours"})
print((home / name).read_text())
for closed in (home / ".claude", home):
    closed.chmod(0)
    print(read_private(home, name, 100))
    closed.chmod(0)
    write_private(home, {name: "again"})
    print((home / name).read_text())
    closed.chmod(0)
    clear_private(home, name)
    print((home / name).exists())
"""


def test_what_an_agent_has_closed_is_opened_up(home: Path) -> None:
    said = as_ordinary_user(IN_THE_WAY, str(home)).splitlines()
    assert said == [
        *("False", "ours"),
        *("b'ours'", "again", "False"),
        *("None", "again", "False"),
    ]
