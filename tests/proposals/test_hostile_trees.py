"""What an agent may leave in its work/: it is refused by name, or it is not part of what lands.

The way of a real proposal: a sandbox, the tree an agent made of it, our own patch, and the landing
with its policy. Whatever is refused leaves the workspace as it was.
"""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from agentcanvas.errors import UnsafePatch
from agentcanvas.proposals.apply import Landing
from agentcanvas.proposals.policy import BreachKind, Policy
from agentcanvas.sandbox.diff import Patch, make_patch
from agentcanvas.sandbox.generation import take_generation
from agentcanvas.sandbox.prepare import Sandbox, prepare_sandbox
from tests.proposals.workspaces import Link, shot, write_files

pytestmark = [pytest.mark.anyio, pytest.mark.req("S5", "S6")]

RUN = "run_20260219_100000"
Plant = Callable[[Path], object]


def repository_inside(work: Path) -> None:
    subprocess.run(["git", "init", "-q", work / "sub"], check=True)
    (work / "sub" / "code.py").write_text("x = 1\n")
    (work / "sub" / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\ntouch /tmp/harm\n")


def special_files(work: Path) -> None:
    os.mkfifo(work / "pipe")
    os.mknod(work / "socket", stat.S_IFSOCK | 0o600)  # to bind one takes a short path


def private_git(work: Path) -> None:
    (work / ".git").mkdir(exist_ok=True)
    (work / ".git" / "config").write_text("[core]\n\tfsmonitor = touch /tmp/harm\n")


def shared_file(work: Path) -> None:
    outside = work.parent / "outside"
    outside.write_text("of somebody else\n")
    os.link(outside, work / "shared")


def link_instead(work: Path) -> None:
    (work / "src" / "a.py").unlink()
    (work / "src" / "a.py").symlink_to("/")


def setuid_program(work: Path) -> None:
    (work / "su").write_text("#!/bin/sh\n")
    (work / "su").chmod(0o6755)


async def sandbox_with(tmp_path: Path, plant: Plant) -> tuple[Sandbox, Patch]:
    """A sandbox whose agent has planted something, and the patch that we make of it."""
    workspace = write_files(tmp_path / "workspace", {"README.md": "hello\n", "src/a.py": "a\n"})
    sandbox = await prepare_sandbox(await take_generation(workspace, RUN), "coder")
    plant(sandbox.work_dir)
    return sandbox, await make_patch(sandbox)


async def land(sandbox: Sandbox, patch: Patch, policy: Policy | None = None) -> None:
    landing = Landing(sandbox.base.workspace)
    await landing.apply("p1", patch.text, sandbox.base.tree, policy=policy or Policy())


REFUSED: dict[str, tuple[Plant, BreachKind]] = {
    "a link to a file outside": (
        lambda work: (work / "l").symlink_to("/etc/passwd"),
        BreachKind.LINK_LEAVES,
    ),
    "a link that climbs out": (
        lambda work: (work / "src" / "l").symlink_to("../../x"),
        BreachKind.LINK_LEAVES,
    ),
    "links that lead out together": (
        lambda work: write_files(work, {"one": Link("two/.."), "two": Link("src/../..")}),
        BreachKind.LINK_LEAVES,
    ),
    "a link into the repository": (
        lambda work: (work / "l").symlink_to(".git/config"),
        BreachKind.LINK_INTO_INTERNAL,
    ),
    "a link in the place of a file": (link_instead, BreachKind.LINK_LEAVES),
    "submodules": (
        lambda work: (work / ".gitmodules").write_text('[submodule "x"]\n'),
        BreachKind.SUBMODULE,
    ),
    "names that clash": (
        lambda work: ((work / "New").write_text("1"), (work / "new").write_text("2")),
        BreachKind.NAME_CLASH,
    ),
    "a name that clashes with one that is there": (
        lambda work: write_files(work, {"SRC/b.py": "b\n"}),
        BreachKind.NAME_CLASH,
    ),
    "a name that is not text": (
        lambda work: Path(os.fsdecode(os.fsencode(work) + b"/caf\xe9")).write_text("x"),
        BreachKind.BAD_NAME,
    ),
    "a name with a line break": (
        lambda work: (work / "a\nb").write_text("x"),
        BreachKind.BAD_NAME,
    ),
    "a name that is shown backwards": (
        lambda work: (work / "txt\u202egpj.exe").write_text("x"),
        BreachKind.BAD_NAME,
    ),
    "a folder that is .git elsewhere": (
        lambda work: write_files(work, {".g\u200cit/config": "x", "src/git~1/x": "y"}),
        BreachKind.INTERNAL_FOLDER,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_a_hostile_tree_is_refused_with_its_reason(tmp_path: Path, case: str) -> None:
    plant, kind = REFUSED[case]
    sandbox, patch = await sandbox_with(tmp_path, plant)
    before = shot(sandbox.base.workspace)
    forecast = await Landing(sandbox.base.workspace).check(patch.text, sandbox.base.tree)
    assert kind in {breach.kind for breach in forecast.breaches}, forecast.breaches
    with pytest.raises(UnsafePatch):
        await land(sandbox, patch)
    assert shot(sandbox.base.workspace) == before


@pytest.mark.parametrize(
    ("policy", "kind"),
    [
        (Policy(max_files=2), BreachKind.TOO_MANY_FILES),
        (Policy(max_file_bytes=1000), BreachKind.FILE_TOO_LARGE),
        (Policy(max_total_bytes=4000), BreachKind.TOTAL_TOO_LARGE),
        (Policy(max_patch_bytes=100), BreachKind.PATCH_TOO_LARGE),
        (Policy(allowed=("docs",)), BreachKind.OUTSIDE_ALLOWED),
        (Policy(scope=("docs/**",)), BreachKind.OUTSIDE_SCOPE),
    ],
)
async def test_more_than_it_may_is_refused_with_its_reason(
    tmp_path: Path, policy: Policy, kind: BreachKind
) -> None:
    names = [f"src/{number}" for number in range(4)]
    sandbox, patch = await sandbox_with(
        tmp_path, lambda work: write_files(work, dict.fromkeys(names, "0123456789\n" * 150))
    )
    before = shot(sandbox.base.workspace)
    landing = Landing(sandbox.base.workspace)
    forecast = await landing.check(patch.text, sandbox.base.tree, policy=policy)
    assert {breach.kind for breach in forecast.breaches} == {kind}
    assert shot(sandbox.base.workspace) == before


LEFT_OUT: dict[str, tuple[Plant, set[str]]] = {
    "a repository with hooks": (repository_inside, {"sub/code.py"}),
    "pipes and sockets": (special_files, set()),
    "settings for git": (private_git, set()),
    "our own folder": (
        lambda work: write_files(work, {".agentcanvas/flows/x.yaml": "harm"}),
        set(),
    ),
    "a file that somebody else has too": (shared_file, {"shared"}),
    "rights beyond execution": (setuid_program, {"su"}),
}


@pytest.mark.parametrize("case", LEFT_OUT)
async def test_what_can_never_land_is_not_part_of_the_patch(tmp_path: Path, case: str) -> None:
    plant, stays = LEFT_OUT[case]
    sandbox, patch = await sandbox_with(tmp_path, plant)
    before = shot(sandbox.base.workspace)
    if patch.text:
        await land(sandbox, patch)
    after = shot(sandbox.base.workspace)
    assert after.keys() - before.keys() == stays
    landed = [sandbox.base.workspace / name for name in stays]
    assert all(path.stat().st_nlink == 1 for path in landed)
    assert all(path.stat().st_mode & 0o7000 == 0 for path in landed)
    assert not await anyio.Path("/tmp/harm").exists()
