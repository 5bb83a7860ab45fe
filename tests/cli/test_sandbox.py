"""``agentcanvas sandbox``: made by hand, compared, cleaned up; unsettled work stays (D15)."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import anyio
import pytest
from typer.testing import Result

from agentcanvas.sandbox.confine import TAG
from agentcanvas.sandbox.disk import runs_on_disk
from agentcanvas.sandbox.generation import take_generation
from agentcanvas.sandbox.prepare import prepare_sandbox
from tests.cli import fake_office as fake
from tests.cli.commanding import Desk, desk
from tests.cli.fake_office import FakeOffice, Played
from tests.cli.pseudo_terminal import at_terminal

__all__ = ["desk"]

pytestmark = pytest.mark.req("S1", "D15")

RUN = "run_20260219_100000"


@pytest.fixture
def workspace(desk: Desk) -> Path:
    """Give the desk's workspace some files under git."""
    subprocess.run(["git", "init", "-q", "-b", "main"], check=True)
    desk.write("README.md", "hello\n")
    desk.write("src/app.py", "one\n")
    desk.write(".gitignore", "*.log\nnode_modules/\n.env*\n")
    desk.write(".agentcanvas/.gitignore", "/*\n")
    subprocess.run(["git", "add", "-A"], check=True)
    subprocess.run(["git", "commit", "-qm", "first"], check=True)
    return desk.root


def given(desk: Desk, *words: str, runs: list[Played] | None = None) -> Result:
    return desk.give(FakeOffice(*(runs or [])), "sandbox", *words)


def folder_of(said: Result, name: str) -> Path:
    found = re.search(rf"^  {name} +(.*)$", said.stdout, re.MULTILINE)
    assert found, said.output
    return Path(found[1])


def make_run(root: Path, run_id: str) -> Path:
    async def make() -> Path:
        sandbox = await prepare_sandbox(await take_generation(root, run_id), "coder")
        (sandbox.work_dir / "README.md").write_text("changed by the agent\n")
        (sandbox.paths.proposal_dir / "changes.patch").write_text("p")
        return sandbox.paths.root

    return anyio.run(make)


def test_a_sandbox_of_the_workspace_as_it_is_is_made_and_its_folders_are_said(
    desk: Desk, workspace: Path
) -> None:
    desk.write("src/app.py", "edited\n")
    said = given(desk, "make")
    assert said.exit_code == 0
    work = folder_of(said, "work")
    assert (work / "src/app.py").read_text() == "edited\n"
    assert (folder_of(said, "input") / "README.md").read_text() == "hello\n"
    assert folder_of(said, "proposal").is_dir()
    status = subprocess.run(
        ["git", "-C", work, "status", "--porcelain"], capture_output=True, check=True
    )
    assert status.stdout == b" M src/app.py\n"
    assert "3 files as they are now, g0 of run_" in said.stdout
    assert said.stdout.endswith("as a patch: agentcanvas sandbox diff\n")


def test_a_pattern_that_takes_nothing_is_told(desk: Desk, workspace: Path) -> None:
    said = given(desk, "make", "--only", "src/**", "--only", "scr/**/*.py")
    assert "1 files as they are now" in said.stdout
    assert "There is nothing to take for 'scr/**/*.py'" in said.stdout
    assert "'src/**'" not in said.stdout


def test_run_and_agent_are_as_named_and_a_changed_workspace_is_a_new_generation(
    desk: Desk, workspace: Path
) -> None:
    first = given(desk, "make", "--run", RUN, "--agent", "one")
    second = given(desk, "make", "--run", RUN, "--agent", "two")
    desk.write("README.md", "new\n")
    third = given(desk, "make", "--run", RUN, "--agent", "three")
    assert f"g0 of {RUN}" in first.stdout
    assert f"g0 of {RUN}" in second.stdout
    assert f"g1 of {RUN}" in third.stdout
    assert folder_of(second, "work").parts[-3:] == (RUN, "two", "work")
    again = given(desk, "make", "--run", RUN, "--agent", "one")
    assert again.exit_code == 1
    assert "already" in again.stderr


def test_ignored_files_and_dependencies_come_along_and_secrets_do_not(
    desk: Desk, workspace: Path
) -> None:
    desk.write(".env.test", "URL=local\n")
    desk.write(".env", "TOKEN=1\n")
    desk.write("package.json", "{}")
    desk.write("node_modules/pad/index.js", "pad")
    said = given(desk, "make", "--bring", ".env*", "--only", "src/**", "--only", "package.json")
    work = folder_of(said, "work")
    assert (work / ".env.test").exists()
    assert not (work / ".env").exists()
    assert not (work / "README.md").exists()
    assert (work / "node_modules/pad/index.js").read_text() == "pad"
    assert ".env is left out: it may hold secrets" in said.stdout


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["make", "--run", "../x"], "not of the form run_"),
        (["make", "--only", "../x"], "contains '..'"),
        (["make", "--bring", ".git/**"], "internal folder"),
        (["make", "--agent", ""], ""),
        (["diff", "--run", RUN], f"There is no sandbox in {RUN}"),
        (["diff", "--agent", "ghost"], "There is no sandbox of ghost"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    desk: Desk, workspace: Path, words: list[str], reason: str
) -> None:
    said = given(desk, *words)
    assert said.exit_code == (1 if reason else 0)
    assert reason in said.stderr


def test_the_patch_is_the_one_git_applies(desk: Desk, workspace: Path) -> None:
    work = folder_of(given(desk, "make"), "work")
    (work / "src/app.py").write_text("two\n")
    (work / "new.bin").write_bytes(bytes(range(256)))
    (work / "noise.log").write_text("ignored")
    (work / "node_modules").mkdir()
    (work / "node_modules/made.js").write_text("m")
    said = given(desk, "diff")
    assert said.exit_code == 0
    assert "ignored by a .gitignore" in said.stderr
    subprocess.run(["git", "apply", "-"], input=said.stdout_bytes, check=True)
    assert (workspace / "src/app.py").read_text() == "two\n"
    assert (workspace / "new.bin").read_bytes() == bytes(range(256))
    stat = given(desk, "diff", "--stat")
    assert stat.stdout.splitlines() == ["added     new.bin", "modified  src/app.py"]


def test_a_terminal_obeys_nothing_of_what_a_sandbox_holds(desk: Desk, workspace: Path) -> None:
    work = folder_of(given(desk, "make"), "work")
    (work / "README.md").write_text("\x1b]0;taken\x07over\n")
    with at_terminal("done", "sandbox", "diff", cwd=workspace) as person:
        person.sees("+\\x1b]0;taken\\x07over")
        assert person.leaves() == 0
        assert b"\x1b[31m-hello" in person.raw
        assert b"\x1b]0;" not in person.raw
    assert b"+\x1b]0;taken\x07over\n" in given(desk, "diff").stdout_bytes


def test_a_diff_without_a_name_is_of_the_newest_sandbox(desk: Desk, workspace: Path) -> None:
    given(desk, "make", "--run", RUN, "--agent", "one")
    newest = folder_of(given(desk, "make", "--run", RUN, "--agent", "two"), "work")
    (newest / "README.md").write_text("by two\n")
    assert "+by two" in given(desk, "diff").stdout
    none = given(desk, "diff", "--agent", "one")
    assert (none.stdout, none.stderr.strip()) == ("", "Nothing was changed.")


@pytest.mark.req("S2")
def test_nothing_is_read_where_a_process_of_the_sandbox_still_writes(
    desk: Desk, workspace: Path
) -> None:
    root = make_run(workspace, RUN)
    environment = {**os.environ, TAG: f"{root / 'home'}/1"}
    with subprocess.Popen(["cat"], env=environment, stdin=subprocess.PIPE) as process:
        said = given(desk, "diff", "--run", RUN)
        process.communicate()
    assert said.exit_code == 1
    assert said.stderr == (
        "agentcanvas: Processes of coder still run in it, so that its files may change while they "
        f"are read; wait for them, or end them: agentcanvas stop {RUN}\n"
    )
    assert "changed by the agent" in given(desk, "diff", "--run", RUN).stdout


def test_clean_says_what_goes_and_what_it_frees_and_then_does_it(
    desk: Desk, workspace: Path
) -> None:
    done = fake.finished(Played(RUN))
    root = make_run(workspace, RUN)
    dry = given(desk, "clean", "--dry-run", "--keep", "0", runs=[done])
    assert re.search(rf"goes   {RUN}  [\d.]+ kB\n(?s:.*)coder/work  ", dry.stdout)
    assert "This would free" in dry.stdout
    assert (root / "work").exists()
    clean = given(desk, "clean", "--keep", "0", runs=[done])
    assert "This frees" in clean.stdout
    assert sorted(path.name for path in root.iterdir()) == ["agent_id", "proposal"]
    again = given(desk, "clean", "--keep", "0", runs=[done])
    assert "There is nothing to clean up." in again.stdout


def test_the_newest_runs_stay_unless_all_are_meant(desk: Desk, workspace: Path) -> None:
    names = [f"run_202602{day:02}_100000" for day in range(1, 13)]
    runs = [fake.finished(Played(name)) for name in names]
    for name in names:
        make_run(workspace, name)
    said = given(desk, "clean", "--dry-run", runs=runs)
    assert re.findall(r"goes   (\w+)", said.stdout) == names[:2]
    assert len(re.findall(r"stays  ", said.stdout)) == 10
    assert given(desk, "clean", "--all", runs=runs).exit_code == 0
    assert not list(workspace.glob(".agentcanvas/sandboxes/*/*/work"))
    assert not list(workspace.glob(".agentcanvas/generations/*"))


def test_runs_that_go_on_or_have_unjudged_work_stay_even_when_all_are_meant(
    desk: Desk, workspace: Path
) -> None:
    running, waiting = "run_20260201_100000", "run_20260202_100000"
    roots = [make_run(workspace, name) for name in (running, waiting)]
    runs = [fake.at_work(Played(running)), fake.propose(Played(waiting))]
    said = given(desk, "clean", "--all", runs=runs)
    assert said.stdout.count("not settled yet") == 2
    assert "There is nothing to clean up." in said.stdout
    assert all((root / "work/README.md").exists() for root in roots)


def test_a_sandbox_made_by_hand_stays_while_there_is_work_in_it(
    desk: Desk, workspace: Path
) -> None:
    work = folder_of(given(desk, "make"), "work")
    (work / "README.md").write_text("my own\n")
    said = given(desk, "clean", "--all")
    assert "you has changes that were never handed in" in said.stdout
    assert (work / "README.md").read_text() == "my own\n"
    (work / "README.md").write_text("hello\n")
    assert given(desk, "clean", "--all").exit_code == 0
    assert runs_on_disk(workspace) == []


def test_work_in_a_sandbox_made_by_hand_goes_when_it_is_discarded_by_name(
    desk: Desk, workspace: Path
) -> None:
    kept, gone = (folder_of(given(desk, "make"), "work") for _ in range(2))
    for work in (kept, gone):
        (work / "README.md").write_text("my own\n")
    run = gone.parents[1].name
    assert f"--discard {run}" in given(desk, "clean").stdout
    assert gone.exists()
    said = given(desk, "clean", "--discard", run)
    assert re.search(rf"goes   {run} ", said.stdout)
    assert runs_on_disk(workspace) == [kept.parents[1].name]
    assert (kept / "README.md").read_text() == "my own\n"


def test_only_what_was_made_by_hand_is_discarded(desk: Desk, workspace: Path) -> None:
    root = make_run(workspace, RUN)
    waiting = fake.propose(Played(RUN))
    said = given(desk, "clean", "--discard", RUN, runs=[waiting])
    assert said.exit_code == 1
    assert f"{RUN} was not made by hand" in said.stderr
    assert (root / "work/README.md").exists()
    unknown = given(desk, "clean", "--discard", "run_20260219_999999")
    assert (unknown.exit_code, f"did you mean {RUN}?" in unknown.stderr) == (1, True)


@pytest.mark.parametrize("words", [["--keep", "-1"], ["--keep", "1", "--all"], ["--keep", "x"]])
def test_wrong_usage_ends_with_2(desk: Desk, workspace: Path, words: list[str]) -> None:
    assert given(desk, "clean", *words).exit_code == 2


def test_a_folder_that_is_no_workspace_has_nothing_to_clean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = Desk(tmp_path, monkeypatch)
    assert not os.path.lexists(tmp_path / ".agentcanvas")
    assert "nothing to clean up" in given(bare, "clean").stdout
    assert not os.path.lexists(tmp_path / ".agentcanvas")


def test_an_empty_list_says_how_to_make_one(desk: Desk, workspace: Path) -> None:
    assert "make one with: agentcanvas sandbox make" in given(desk, "list").stdout


def test_the_list_says_what_sandboxes_take_with_the_largest_folders(
    desk: Desk, workspace: Path
) -> None:
    assert given(desk, "make").exit_code == 0
    said = given(desk, "list")
    assert said.exit_code == 0, said.output
    assert "/g0 " in said.stdout
    assert said.stdout.splitlines()[-1].endswith("agentcanvas sandbox clean")
    assert workspace.name not in said.stdout


def test_a_clean_up_does_not_list_a_proposal_among_what_goes(desk: Desk, workspace: Path) -> None:
    (make_run(workspace, RUN) / "proposal" / "big.patch").write_bytes(b"x" * 900_000)
    said = given(desk, "clean", "--all", runs=[fake.finished(Played(RUN))]).stdout
    assert f"goes   {RUN}" in said
    assert "/work" in said
    assert "/proposal" not in said
    assert "/proposal" in given(desk, "list").stdout


def test_the_list_has_one_folder_a_line(desk: Desk, workspace: Path) -> None:
    make_run(workspace, RUN)
    lines = given(desk, "list").stdout.splitlines()
    assert all(line.count(".agentcanvas/") <= 1 for line in lines)


def test_a_diff_takes_a_part_of_the_runs_id_as_other_commands_do(
    desk: Desk, workspace: Path
) -> None:
    make_run(workspace, RUN)
    make_run(workspace, "run_20260219_110000")
    assert "changed by the agent" in given(desk, "diff", "--run", "100000").stdout
    several = given(desk, "diff", "--run", "run_20260219")
    assert several.exit_code == 1
    assert "may be any of these" in several.stderr
    assert "There is no sandbox" in given(desk, "diff", "--run", "999999").stderr


def test_make_can_print_the_work_folder_alone(desk: Desk, workspace: Path) -> None:
    done = given(desk, "make", "--quiet", "--bring", "nothing.cfg")
    (line,) = done.stdout.splitlines()
    assert (Path(line) / "README.md").read_text() == "hello\n"
    assert "nothing.cfg" in done.stderr
