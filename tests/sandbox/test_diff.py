"""The patch of a sandbox: git's own, whatever the tree holds and whatever anybody set (S5)."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agentcanvas.errors import SandboxError, Unpatchable
from agentcanvas.sandbox import diff
from agentcanvas.sandbox import git as git_here
from agentcanvas.sandbox.changes import Change, Status
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.generation import Generation, take_generation
from agentcanvas.sandbox.prepare import Sandbox, open_sandbox, prepare_sandbox
from agentcanvas.sandbox.trees import remove_path
from tests.sandbox.conftest import RUN, git, named, tree_of, write

pytestmark = pytest.mark.req("S5", "D14")

Apply = Callable[[Generation, bytes], Path]
Edit = Callable[[Path], object]

NUL = bytes(range(256)) * 40


async def sandbox_on(workspace: Path) -> Sandbox:
    return await prepare_sandbox(await take_generation(workspace, RUN), "coder")


def git_says(sandbox: Sandbox) -> bytes:
    """Compare input/ and work/ as the specification says it, without anybody's settings."""
    options = ["--binary", "--no-renames", "--full-index"]
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(sandbox.paths.root.parent),
    }
    done = subprocess.run(
        ["git", "diff", "--no-index", *options, "input", "work"],
        cwd=sandbox.paths.root,
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    return re.sub(rb"(?m)^(diff --git |--- |\+\+\+ )(.*)$", _normalised, done.stdout)


def _normalised(header: re.Match[bytes]) -> bytes:
    names = re.sub(rb'("?[ab])/(?:input|work)/', rb"\1/", header[2])
    return header[1] + names


def by_file(patch: bytes) -> list[bytes]:
    """Split a patch into files; git orders a folder and a file beside it in two ways."""
    return sorted(part for part in re.split(rb"(?m)^(?=diff --git )", patch) if part)


def replaced(content: str) -> Edit:
    def change(path: Path) -> None:
        path.unlink()
        path.write_text(content)
        path.chmod(0o600)

    return change


def link(target: str) -> Edit:
    def change(path: Path) -> None:
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    return change


EDITS: dict[str, dict[str, Edit | str | bytes | None]] = {
    "nothing": {},
    "one line": {"README.md": "hello you\n"},
    "no newline at the end": {"README.md": "hello", "src/app.py": "print('one')\n\n"},
    "an empty file": {"empty": "", "README.md": ""},
    "a new file in a new folder": {"new/folder/file.py": "x = 1\n"},
    "a deleted file": {"README.md": None},
    "a deleted folder": {"src/app.py": None, "src/deep/er/mod.py": None},
    "a binary file": {"picture.png": NUL, "README.md": b"\0" + NUL},
    "a binary file deleted": {"seed.bin": None},
    "a binary file changed": {"seed.bin": NUL[::-1]},
    "modes": {"tool.sh": lambda p: p.chmod(0o644), "README.md": lambda p: p.chmod(0o755)},
    "a mode and a content": {"tool.sh": replaced("x\n")},
    "links": {"link": link("README.md"), "dangling": link("no/where"), "seed.link": link("src")},
    "a file becomes a link": {"README.md": link("tool.sh")},
    "a link becomes a file": {"seed.link": replaced("now a file\n")},
    "a link is deleted": {"seed.link": None},
    "a file becomes a folder": {"README.md": None, "README.md/inner": "i\n"},
    "a folder becomes a file": {"src/app.py": None, "src/deep/er/mod.py": None, "src": "f"},
    "carriage returns": {"README.md": "hello\r\nyou\r\n"},
    "a rename": {"README.md": None, "READ.md": "hello\n"},
    "words with spaces": {"two words/and more.txt": "x\n", "trailing ": "y\n"},
    "a tab and a newline in names": {"t\tab": "t\n", "new\nline": "n\n", 'quo"te\\': "q\n"},
    "letters beyond ASCII": {"ünï/😀.txt": "x\n", "README.md": "ünïcode 😀\n"},
    "a name that looks like an option": {"--help": "x\n", "-": "y\n"},
    "a file beside a folder of nearly its name": {"src.py": "x\n", "src-x": "y\n", "src/a": "z\n"},
    "attributes that would hide a change": {
        ".gitattributes": "* -diff binary\n*.md filter=evil diff=evil\n",
        "README.md": "changed\n",
    },
    "patch-like text": {"README.md": "--- a/x\n+++ b/x\n@@ -1 +1 @@\ndiff --git a/x b/x\n"},
    "a very long line": {"README.md": "x" * 300_000},
}


def remove_empty(folder: Path) -> None:
    while not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


@pytest.mark.parametrize("case", EDITS)
async def test_the_patch_is_gits_own_and_leads_to_work(
    workspace: Path, applied: Apply, case: str
) -> None:
    write(workspace, {"seed.bin": NUL})
    (workspace / "seed.link").symlink_to("README.md")
    sandbox = await sandbox_on(workspace)
    for name, edit in EDITS[case].items():
        path = sandbox.work_dir / name
        if edit is None:
            path.unlink()
            remove_empty(path.parent)
        elif callable(edit):
            edit(path)
        else:
            write(sandbox.work_dir, {name: edit})

    patch = await make_patch(sandbox)

    if case != "attributes that would hide a change":  # there git itself would be led astray
        assert by_file(patch.text) == by_file(git_says(sandbox))
    assert tree_of(applied(sandbox.base, patch.text)) == tree_of(sandbox.work_dir)
    assert bool(patch.text) == bool(patch.changes) == (case != "nothing")
    assert b"\nrename from" not in patch.text
    assert b"\ncopy from" not in patch.text


async def test_names_that_are_not_text_survive(workspace: Path, applied: Apply) -> None:
    named(workspace, b"old\xff").write_text("old\n")
    sandbox = await sandbox_on(workspace)
    named(sandbox.work_dir, b"old\xff").write_text("changed\n")
    named(sandbox.work_dir, b"new\xfe\x01").write_text("new\n")
    patch = await make_patch(sandbox)
    assert [change.path for change in patch.changes] == [b"new\xfe\x01", b"old\xff"]
    assert tree_of(applied(sandbox.base, patch.text)) == tree_of(sandbox.work_dir)


async def test_every_change_has_its_status(workspace: Path) -> None:
    sandbox = await sandbox_on(workspace)
    write(sandbox.work_dir, {"README.md": "x", "new": "n"})
    (sandbox.work_dir / "src/app.py").unlink()
    os.utime(sandbox.work_dir / "tool.sh")  # touched, not changed
    assert (await make_patch(sandbox)).changes == (
        Change(b"README.md", Status.MODIFIED),
        Change(b"new", Status.ADDED),
        Change(b"src/app.py", Status.DELETED),
    )


async def test_a_file_made_without_having_seen_the_one_that_is_there_counts_as_new(
    workspace: Path,
) -> None:
    base = await take_generation(workspace, RUN)
    sandbox = await prepare_sandbox(base, "coder", ["src"])
    write(sandbox.work_dir, {"README.md": "blindly\n"})
    patch = await make_patch(sandbox)
    assert patch.changes == (Change(b"README.md", Status.ADDED),)
    assert b"new file mode" in patch.text


async def test_an_edit_that_restores_size_and_time_is_found(workspace: Path) -> None:
    sandbox = await sandbox_on(workspace)
    file = sandbox.work_dir / "README.md"
    times = file.stat()
    with file.open("r+") as opened:
        opened.write("HELLO")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert file.stat().st_size == times.st_size
    assert file.stat().st_mtime_ns == times.st_mtime_ns
    assert b"+HELLO" in (await make_patch(sandbox)).text


@pytest.mark.req("D18")
async def test_a_restart_still_finds_the_changes(workspace: Path) -> None:
    sandbox = await sandbox_on(workspace)
    write(sandbox.work_dir, {"README.md": "cut off\n"})
    found = await open_sandbox(workspace, RUN, "coder")
    assert await make_patch(found) == await make_patch(sandbox)


async def test_internal_folders_and_the_private_git_are_not_seen(workspace: Path) -> None:
    sandbox = await sandbox_on(workspace)
    write(
        sandbox.work_dir,
        {
            ".git/config": "x",
            "node_modules/a/b.js": "x",
            "dist/c.js": "x",
            ".agentcanvas/d": "x",
            "src/.git/e": "x",
            "src/node_modules/f.js": "x",
        },
    )
    patch = await make_patch(sandbox)
    assert patch.text == b""
    assert patch.changes == ()


async def test_new_files_that_are_ignored_are_left_out_and_counted(workspace: Path) -> None:
    sandbox = await sandbox_on(workspace)
    write(
        sandbox.work_dir,
        {
            "run.log": "x",
            "build/a.o": "x",
            "src/build/b.o": "x",
            "src/.gitignore": "*.tmp\n!kept.tmp\n",
            "src/c.tmp": "x",
            "src/kept.tmp": "x",
            "c.tmp": "x",
        },
    )
    patch = await make_patch(sandbox)
    assert [c.path for c in patch.changes] == [b"c.tmp", b"src/.gitignore", b"src/kept.tmp"]
    assert patch.notes == ("4 new files are left out: ignored by a .gitignore",)


async def test_what_tools_leave_behind_is_no_part_of_a_change(workspace: Path) -> None:
    write(workspace, {"old/__pycache__/kept.pyc": "tracked or not, it was there"})
    sandbox = await sandbox_on(workspace)
    write(
        sandbox.work_dir,
        {
            "src/__pycache__/a.cpython-311.pyc": "x",
            ".pytest_cache/v/cache/lastfailed": "{}",
            "src/.DS_Store": "x",
            "old/__pycache__/kept.pyc": "changed",
            "src/pycache.py": "x",
        },
    )
    patch = await make_patch(sandbox)
    assert [c.path for c in patch.changes] == [b"old/__pycache__/kept.pyc", b"src/pycache.py"]
    assert patch.notes == ("3 new files are left out: caches of tools",)


async def test_names_that_git_takes_for_instructions_are_names(workspace: Path) -> None:
    sandbox = await sandbox_on(workspace)
    names = [":(glob)a", ":!README.md", ":/x", ":(exclude)*.txt", ":x", "*", "-z", "[a]"]
    write(sandbox.work_dir, {**dict.fromkeys(names, "x"), ":/x.log": "x", ":(top)b.log": "x"})
    patch = await make_patch(sandbox)
    assert [c.path for c in patch.changes] == sorted(name.encode() for name in names)
    assert patch.notes == ("2 new files are left out: ignored by a .gitignore",)


async def test_rules_that_keep_git_busy_for_ever_are_named(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = await sandbox_on(workspace)
    write(sandbox.work_dir, {".gitignore": "/" + "**/a/" * 14 + "b\n", "a/" * 100 + "c": "x"})
    monkeypatch.setattr(git_here, "DEADLINE_OF_RULES_S", 0.3)
    with pytest.raises(Unpatchable, match=r"The \.gitignore files take more than 0\.3 s"):
        await make_patch(sandbox)
    assert not list(sandbox.paths.root.glob("diff-*"))


async def test_more_rules_than_are_copied_are_named(workspace: Path) -> None:
    sandbox = await sandbox_on(workspace)
    for number in range(17):
        rules = sandbox.work_dir / str(number) / ".gitignore"
        rules.parent.mkdir()
        with rules.open("wb") as file:
            file.truncate(1024 * 1024)
    with pytest.raises(Unpatchable, match=r"The 18 \.gitignore files have 17\.0 MiB"):
        await make_patch(sandbox)


async def test_an_ignored_file_of_the_base_is_compared(workspace: Path) -> None:
    write(workspace, {"kept.log": "tracked\n"})
    git(workspace, "add", "-f", "kept.log")
    sandbox = await sandbox_on(workspace)
    write(sandbox.work_dir, {"kept.log": "changed\n"})
    assert (await make_patch(sandbox)).changes == (Change(b"kept.log", Status.MODIFIED),)


def make_socket(path: Path) -> None:
    # The name of a socket has 108 bytes at most, so it is made elsewhere and moved.
    with socket.socket(socket.AF_UNIX) as listener, tempfile.TemporaryDirectory() as short:
        listener.bind(f"{short}/s")
        Path(short, "s").rename(path)


async def test_pipes_and_sockets_are_left_out_and_told(workspace: Path) -> None:
    sandbox = await sandbox_on(workspace)
    os.mkfifo(sandbox.work_dir / "pipe")
    (sandbox.work_dir / "README.md").unlink()
    os.mkfifo(sandbox.work_dir / "README.md")
    make_socket(sandbox.work_dir / "socket")
    patch = await make_patch(sandbox)
    assert patch.changes == (Change(b"README.md", Status.DELETED),)
    assert len(patch.notes) == 3


async def test_files_and_folders_closed_to_their_owner_are_read(workspace: Path) -> None:
    sandbox = await sandbox_on(workspace)
    write(sandbox.work_dir, {"closed/file": "x\n", "README.md": "y\n"})
    (sandbox.work_dir / "closed/file").chmod(0)
    (sandbox.work_dir / "closed").chmod(0)
    (sandbox.work_dir / "README.md").chmod(0)
    changed = [change.path for change in (await make_patch(sandbox)).changes]
    assert changed == [b"README.md", b"closed/file"]


async def test_a_file_too_large_for_a_patch_is_refused_by_name(workspace: Path) -> None:
    sandbox = await sandbox_on(workspace)
    with (sandbox.work_dir / "huge.bin").open("wb") as file:
        file.truncate(diff.LARGEST_FILE + 1)
    with pytest.raises(
        Unpatchable, match=r"'huge\.bin' has 20\.0 MiB, and a patch carries at most"
    ):
        await make_patch(sandbox)


async def test_a_change_that_would_not_fit_into_memory_is_refused_by_name(workspace: Path) -> None:
    """Holes take no disk, so nothing else counts them."""
    sandbox = await sandbox_on(workspace)
    for number in range(12):
        with (sandbox.work_dir / f"hole-{number:02}").open("wb") as file:
            file.truncate(diff.LARGEST_FILE - number)
    with pytest.raises(
        Unpatchable, match=r"12 changed files have 240\.0 MiB.*such as hole-00"
    ) as one:
        await make_patch(sandbox)
    assert "at most 200.0 MiB" in str(one.value)


async def test_a_work_folder_that_is_gone_is_one_clear_error(workspace: Path) -> None:
    sandbox = await sandbox_on(workspace)
    remove_path(sandbox.work_dir)
    with pytest.raises(SandboxError, match=r"What was changed in .*work cannot be read"):
        await make_patch(sandbox)


def forged(frozen: Path) -> None:
    frozen.chmod(0o644)
    frozen.write_text("forged\n")


@pytest.mark.parametrize("tamper", [forged, lambda frozen: frozen.chmod(0o755)])
async def test_a_base_that_was_tampered_with_is_noticed(
    workspace: Path, tamper: Callable[[Path], object]
) -> None:
    sandbox = await sandbox_on(workspace)
    tamper(sandbox.paths.input_dir / "README.md")
    write(sandbox.work_dir, {"README.md": "mine\n"})
    with pytest.raises(SandboxError, match=r"frozen 'README\.md' of g0 was changed"):
        await make_patch(sandbox)


SETTINGS = """
[diff]
    noprefix = true
    mnemonicPrefix = true
    context = 0
    external = false
    algorithm = patience
    renames = copies
    suppressBlankEmpty = true
[core]
    abbrev = 4
    quotePath = false
    attributesFile = {attributes}
    excludesFile = {excludes}
    autocrlf = true
[color]
    ui = always
"""


async def test_the_users_settings_do_not_change_a_patch(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = await sandbox_on(workspace)
    write(sandbox.work_dir, {"README.md": "a\n\nhello\n", "ü": "x\n", "b.txt": "a\r\n"})
    plain = await make_patch(sandbox)
    (tmp_path / "attributes").write_text("* binary\n")
    (tmp_path / "excludes").write_text("*.txt\n")
    settings = tmp_path / "gitconfig"
    settings.write_text(
        SETTINGS.format(attributes=tmp_path / "attributes", excludes=tmp_path / "excludes")
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(settings))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    monkeypatch.setenv("GIT_DIFF_OPTS", "-u0")
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    git_config = workspace / ".git/config"
    git_config.write_text(git_config.read_text() + settings.read_text())
    assert await make_patch(sandbox) == plain


async def test_what_an_agent_plants_for_git_does_not_run(workspace: Path, tmp_path: Path) -> None:
    sandbox = await sandbox_on(workspace)
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/sprung\n")
    trap.chmod(0o755)
    planted = (
        f"[core]\n\tfsmonitor = {trap}\n\thooksPath = {tmp_path}\n\tpager = {trap}\n"
        f'[diff]\n\texternal = {trap}\n[diff "evil"]\n\tcommand = {trap}\n\ttextconv = {trap}\n'
        f'[filter "evil"]\n\tclean = {trap}\n\tsmudge = {trap}\n'
    )
    for folder in (sandbox.work_dir, sandbox.work_dir / "src"):
        write(folder, {".git/config": planted, ".git/HEAD": "ref: refs/heads/x\n"})
        write(folder, {".git/objects/.keep": "", ".git/refs/.keep": ""})
        write(folder, {".gitattributes": "* diff=evil filter=evil\n", "new": "n\n"})
    write(sandbox.work_dir, {"README.md": "changed\n", ".gitignore": "*.nothing\n"})
    patch = await make_patch(sandbox)
    assert len(patch.changes) == 6
    assert not (tmp_path / "sprung").exists()


async def test_nothing_is_left_beside_the_sandbox(workspace: Path) -> None:
    sandbox = await sandbox_on(workspace)
    before = set(sandbox.paths.root.iterdir())
    write(sandbox.work_dir, {"a": "b"})
    await make_patch(sandbox)
    assert set(sandbox.paths.root.iterdir()) == before


async def test_a_workspace_that_is_reached_over_a_link_is_compared_as_any_other(
    workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(workspace)
    sandbox = await prepare_sandbox(await take_generation(tmp_path / "link", RUN), "coder")
    write(sandbox.work_dir, {"new": "n\n"})
    assert [change.path for change in (await make_patch(sandbox)).changes] == [b"new"]
