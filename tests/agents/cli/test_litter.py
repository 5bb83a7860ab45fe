"""What a CLI leaves in the folder it works in goes; what was there stays, and where links lead."""

from __future__ import annotations

from pathlib import Path

from agentcanvas.agents.cli.litter import sweep, there


def test_litter_is_swept_and_what_was_there_stays(tmp_path: Path) -> None:
    of_the_user, tree = tmp_path / "of-the-user", tmp_path / "tree"
    (tree / "old").mkdir(parents=True)
    of_the_user.mkdir()
    (of_the_user / "file").write_text("mine")
    litter = ("old", "file", "folder", "link", "none")
    before = there(tree, litter)
    (tree / "file").write_text("1")
    (tree / "folder" / "in").mkdir(parents=True)
    (tree / "link").symlink_to(of_the_user)
    sweep(tree, litter, before)
    assert [path.name for path in tree.iterdir()] == ["old"]
    assert (of_the_user / "file").read_text() == "mine"
