"""``agentcanvas init``: a project becomes a workspace, and what is the user's stays so."""

from __future__ import annotations

import os
import stat
import subprocess
import threading
from pathlib import Path

import pytest

from agentcanvas.app.workspace import IGNORED, ensure_folder, store_path, user_data_folder
from agentcanvas.errors import ResourceError
from tests.cli.test_flow import Place

pytestmark = pytest.mark.req("D42")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def git(place: Place, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=place.root, capture_output=True, text=True, check=True
    )
    return done.stdout


def contents(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


def test_init_makes_the_folder_and_a_first_flow_and_says_so(place: Place) -> None:
    (place.root / "pytest.ini").write_text("[pytest]\n")
    done = place.run("init")
    assert done.returncode == 0
    assert "Made .agentcanvas/flows/solo.yaml: one coder; you review." in done.stdout
    assert "judged by what was found here: python3 -m pytest." in done.stdout
    assert 'agentcanvas run solo "what you want done"' in done.stdout
    assert place.trusted() == {".agentcanvas/flows/solo.yaml"}


def test_init_from_another_starter_makes_that_one(place: Place) -> None:
    place.run("init", "--from", "team")
    assert [path.name for path in place.flows.iterdir()] == ["team.yaml"]
    assert place.run("init", "--from", "nothing").returncode == 2


def test_the_second_time_changes_nothing_and_says_so(place: Place) -> None:
    place.run("init")
    before = contents(place.root)
    done = place.run("init", "--from", "team")
    assert done.returncode == 0
    assert "is a workspace already; nothing was changed." in done.stdout
    assert contents(place.root) == before


def test_without_tests_it_says_that_nothing_can_be_verified(place: Place) -> None:
    assert "No tests were found here" in place.run("init").stdout


def test_flows_of_the_repository_are_kept_and_none_is_added(place: Place) -> None:
    mine = place.write("mine", "version: 0.2\n")
    done = place.run("init")
    assert mine.read_text() == "version: 0.2\n"
    assert [path.name for path in place.flows.iterdir()] == ["mine.yaml"]
    assert "agentcanvas flow show mine" in done.stdout
    assert place.trusted() == set()


def test_a_flow_with_a_hostile_name_is_quoted_where_it_is_made_to_be_copied(place: Place) -> None:
    place.write("x; touch planted", "version: 0.2\n")
    assert "agentcanvas flow show 'x; touch planted'" in place.run("init").stdout


def test_git_sees_what_a_team_shares_and_nothing_else(place: Place) -> None:
    git(place, "init", "-q")
    (place.root / ".gitignore").write_text("*.tmp\n")
    place.run("init")
    folder = place.root / ".agentcanvas"
    shared = ["MEMORY.md", "memory/2026-03-01.md", "skills/s/SKILL.md", "patterns/p.py"]
    private = ["agentcanvas.db", "server.json", "runs/solo/r.jsonl", "sandboxes/r/a/x", "hooks/h"]
    for name in (*shared, *private):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    seen = git(place, "status", "--porcelain", "-uall").splitlines()
    expected = ["flows/solo.yaml", *shared]
    assert sorted(line[3:] for line in seen) == sorted(
        [".gitignore", *(f".agentcanvas/{name}" for name in expected)]
    )
    assert (place.root / ".gitignore").read_text() == "*.tmp\n"


def test_a_part_of_a_repository_can_be_a_workspace_of_its_own(place: Place) -> None:
    git(place, "init", "--quiet")
    part = place.root / "packages" / "one"
    part.mkdir(parents=True)
    done = place.run("init", "--here", cwd=part)
    assert done.returncode == 0
    assert f"{part.resolve()} is a workspace." in done.stdout
    assert (part / ".agentcanvas" / "flows" / "solo.yaml").exists()
    assert not (place.root / ".agentcanvas").exists()


def test_from_a_folder_below_the_top_of_the_repository_becomes_the_workspace(place: Place) -> None:
    git(place, "init", "-q")
    below = place.root / "src" / "deep"
    below.mkdir(parents=True)
    done = place.run("init", cwd=below)
    assert done.stdout.startswith(f"{place.root.resolve()} is a workspace.")
    assert (place.flows / "solo.yaml").exists()


def test_a_workspace_further_up_wins_over_a_nearer_repository(place: Place) -> None:
    place.run("init")
    inner = place.root / "inner"
    (inner / ".git").mkdir(parents=True)
    assert "nothing was changed" in place.run("init", cwd=inner).stdout
    assert not (inner / ".agentcanvas").exists()


def test_a_home_folder_does_not_become_one_workspace_by_accident(place: Place) -> None:
    done = place.run("init", cwd=place.home)
    assert done.returncode == 1
    assert "is no project: all of it would be copied" in done.stderr
    assert not (place.home / ".agentcanvas").exists()


def test_a_home_folder_that_is_a_repository_may_be_a_workspace(place: Place) -> None:
    (place.home / ".git").mkdir()
    assert place.run("init", cwd=place.home).returncode == 0


# The folder -------------------------------------------------------------------------------------


def test_a_file_in_the_way_is_named_and_stays(place: Place) -> None:
    (place.root / ".agentcanvas").write_text("mine")
    done = place.run("init")
    assert done.returncode == 1
    assert "is not a folder" in done.stderr
    assert (place.root / ".agentcanvas").read_text() == "mine"


@pytest.mark.parametrize("dangling", [True, False])
def test_a_link_in_the_way_is_not_followed(place: Place, tmp_path: Path, *, dangling: bool) -> None:
    elsewhere = tmp_path / "elsewhere"
    if not dangling:
        elsewhere.mkdir()
    (place.root / ".agentcanvas").symlink_to(elsewhere)
    with pytest.raises(ResourceError, match="is a link"):
        ensure_folder(place.root)
    assert not elsewhere.exists() or list(elsewhere.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc, where nobody may write")
def test_where_nothing_can_be_written_the_reason_and_a_way_out_are_said() -> None:
    with pytest.raises(ResourceError, match=r"cannot be made: .+ work in a folder that you may"):
        ensure_folder(Path("/proc/self"))


def test_a_folder_without_the_right_to_write_is_told(place: Place) -> None:
    folder = ensure_folder(place.root)
    folder.chmod(0o500)
    try:
        if os.access(folder, os.W_OK):
            pytest.skip("this user may write everywhere")
        with pytest.raises(ResourceError, match="cannot be written to"):
            ensure_folder(place.root)
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("cloned", [True, False])
def test_other_users_of_the_machine_are_kept_out(place: Place, *, cloned: bool) -> None:
    folder = place.root / ".agentcanvas"
    before = os.umask(0)
    try:
        if cloned:
            (folder / "flows").mkdir(parents=True)
        ensure_folder(place.root)
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_folder_that_was_opened_to_others_on_purpose_stays_open(place: Place) -> None:
    folder = ensure_folder(place.root)
    store_path(place.root).touch()
    folder.chmod(0o750)
    ensure_folder(place.root)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750


def test_many_at_once_make_one_folder_and_one_whole_ignore_file(tmp_path: Path) -> None:
    start = threading.Barrier(16)
    made: list[Path] = []

    def make() -> None:
        start.wait()
        made.append(ensure_folder(tmp_path))

    threads = [threading.Thread(target=make) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [tmp_path / ".agentcanvas"] * 16
    assert contents(tmp_path) == {".agentcanvas/.gitignore": IGNORED.encode()}


def test_an_ignore_file_that_is_there_is_the_users(tmp_path: Path) -> None:
    (ensure_folder(tmp_path) / ".gitignore").write_text("*\n")
    ensure_folder(tmp_path)
    assert (tmp_path / ".agentcanvas" / ".gitignore").read_text() == "*\n"


# The user's own folder --------------------------------------------------------------------------


def test_the_users_folder_follows_the_xdg_rules() -> None:
    home = {"HOME": "/home/me"}
    assert user_data_folder(home) == Path("/home/me/.local/share/agentcanvas")
    assert user_data_folder(home | {"XDG_DATA_HOME": "/data"}) == Path("/data/agentcanvas")
    assert user_data_folder(home | {"XDG_DATA_HOME": "data"}) == user_data_folder(home)


@pytest.mark.parametrize("environ", [{}, {"HOME": ""}, {"HOME": "relative"}])
def test_without_a_home_the_next_step_is_said(environ: dict[str, str]) -> None:
    with pytest.raises(ResourceError, match="set HOME"):
        user_data_folder(environ)
