"""No change makes a folder of the workspace a git repository, in which git obeys its settings."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agentcanvas.errors import UnsafePatch
from agentcanvas.proposals.apply import Landing
from agentcanvas.proposals.embedded import repositories_in
from agentcanvas.proposals.policy import BreachKind
from agentcanvas.proposals.radar import Fitness, Radar, Waiting
from agentcanvas.proposals.running_files import Occasion
from agentcanvas.proposals.self_running import self_running
from agentcanvas.proposals.tree import Tree
from tests.proposals.workspaces import Files, Link, Script, diff, scene, shot, write_files

pytestmark = [pytest.mark.anyio, pytest.mark.req("S6")]

BARE: Files = {
    "HEAD": "ref: refs/heads/main\n",
    "config": "[core]\n\tbare = true\n",
    "objects/keep": "",
    "refs/keep": "",
}
FIXTURE: Files = {f"tests/repo.git/{path}": text for path, text in BARE.items()}
BECOMES = (
    "would become a git repository of its own, and git obeys the settings and hooks in it; "
    "make it while it is used, by the test that needs it, or keep it as an archive"
)
STEERS = (
    "says what git runs in the git repository tests/repo.git; "
    "set that while it is used, in the test that needs it"
)


def under(folder: str, files: Files) -> Files:
    return {f"{folder}/{path}": what for path, what in files.items()}


def without(files: Files, *paths: str) -> Files:
    return {path: what for path, what in files.items() if path not in paths}


MADE: dict[str, tuple[Files, Files, str, str]] = {
    "a whole one": ({}, under("docs", BARE), "docs", BECOMES),
    "one at the top": ({}, BARE, ".", BECOMES),
    "one without settings": ({}, under("docs", without(BARE, "config")), "docs", BECOMES),
    "its last part": (under("a/b", without(BARE, "refs/keep")), under("a/b", BARE), "a/b", BECOMES),
    "one that borrows the rest": (
        under("x", {"objects/keep": "", "refs/keep": "", "config": "[core]\n"}),
        {"docs/HEAD": "ref: refs/heads/main\n", "docs/commondir": "../x\n"},
        "docs",
        BECOMES,
    ),
    "one of links": (
        {"src/f": "f\n"},
        {"docs/HEAD": Link("refs/heads"), "docs/objects": Link("../src"), "docs/refs/heads": "x\n"},
        "docs",
        BECOMES,
    ),
    "one in small letters": (
        {},
        {"d/head": "x\n", "d/Objects/x": "", "d/refs./x": ""},
        "d",
        BECOMES,
    ),
    "a setting of one that is there": (
        FIXTURE,
        {"tests/repo.git/config": "[core]\n\tfsmonitor = x\n"},
        "tests/repo.git/config",
        STEERS,
    ),
    "a hook of one that is there": (
        FIXTURE,
        {"tests/repo.git/hooks/post-update": Script("#!/bin/sh\n")},
        "tests/repo.git/hooks/post-update",
        STEERS,
    ),
}


@pytest.mark.parametrize("case", MADE)
async def test_what_makes_or_steers_a_repository_is_refused_with_the_next_step(
    tmp_path: Path, case: str
) -> None:
    before, change, path, detail = MADE[case]
    ready = scene(tmp_path, {**before, "f": "f\n"}, {**before, "f": "f\n", **change})
    there = shot(ready.workspace)
    landing = Landing(ready.workspace)
    (breach,) = (await landing.check(ready.patch, ready.base)).breaches
    assert (breach.kind, breach.path) == (BreachKind.EMBEDDED_REPOSITORY, path)
    assert breach.detail == detail
    with pytest.raises(UnsafePatch, match="git repository"):
        await landing.apply("p1", ready.patch, ready.base)
    assert shot(ready.workspace) == there


HARMLESS: dict[str, tuple[Files, Files]] = {
    "contents of one that is there": (
        FIXTURE,
        {
            **FIXTURE,
            "tests/repo.git/HEAD": "ref: refs/heads/other\n",
            "tests/repo.git/objects/aa/" + "b" * 38: "x\n",
            "tests/repo.git/refs/heads/main": "a" * 40 + "\n",
        },
    ),
    "one that goes": (FIXTURE, {}),
    "one that goes in part": (FIXTURE, without(FIXTURE, "tests/repo.git/HEAD")),
    "one that becomes something else": (
        FIXTURE,
        {"tests/repo.git/config": "[core]\n", "tests/repo.git/objects/keep": "x\n"},
    ),
    "parts of the page": (
        {},
        {"ui/Head/x.tsx": "1\n", "ui/Objects/x.tsx": "2\n", "ui/refs/x.ts": "3\n"},
    ),
    "a head without a body": ({}, {"docs/HEAD": "x\n", "docs/refs/x": "x\n", "docs/config": "x\n"}),
}


@pytest.mark.parametrize("case", HARMLESS)
async def test_what_makes_none_lands(tmp_path: Path, case: str) -> None:
    before, after = HARMLESS[case]
    ready = scene(tmp_path, {**before, "f": "f\n"}, {**after, "f": "f\n"})
    await Landing(ready.workspace).apply("p1", ready.patch, ready.base)
    assert shot(ready.workspace) == shot(write_files(tmp_path / "expected", {**after, "f": "f\n"}))


OBEYED: dict[str, tuple[Files, bool]] = {
    "a whole one": (under("d", BARE), True),
    "one that borrows the rest": (
        {**under("x", without(BARE, "HEAD")), "d/HEAD": BARE["HEAD"], "d/commondir": "../x\n"},
        True,
    ),
    "no head": (under("d", without(BARE, "HEAD")), False),
    "no objects": (under("d", without(BARE, "objects/keep")), False),
    "no refs": (under("d", without(BARE, "refs/keep")), False),
}


@pytest.mark.parametrize("case", OBEYED)
def test_what_is_refused_is_what_git_obeys(tmp_path: Path, case: str) -> None:
    tree, obeyed = OBEYED[case]
    root = write_files(tmp_path / "root", tree)
    for config in root.glob("*/config"):
        config.write_text(f"[alias]\n\tlook = !touch {tmp_path}/harm\n")
    subprocess.run(["git", "look"], cwd=root / "d", capture_output=True, check=False)
    assert (tmp_path / "harm").exists() is obeyed
    with Tree(write_files(tmp_path / "base", {})) as base:
        found = repositories_in({path.encode() for path in tree}, (), base)
        assert bool(list(found)) is obeyed


async def test_two_changes_do_not_make_one_together(tmp_path: Path) -> None:
    before: Files = {"f": "f\n"}
    workspace, base = (write_files(tmp_path / name, before) for name in ("workspace", "base"))
    head, rest = {"d/HEAD": "ref: refs/heads/x\n"}, {"d/objects/x": "", "d/refs/x": ""}
    one, two = (diff(tmp_path / "d", before, {**before, **more}) for more in (head, rest))
    radar = Radar(workspace)
    radar.watch(Waiting("p2", two, base, generation=1))
    assert [look.fitness for look in await radar.recheck()] == [Fitness.CLEAN]
    await Landing(workspace).apply("p1", one, base)
    (look,) = await radar.recheck(changed=["d/HEAD"])
    assert (look.fitness, look.reason) == (Fitness.CONFLICTS, f"d: {BECOMES}")
    with pytest.raises(UnsafePatch, match="d: would become a git repository"):
        await Landing(workspace).apply("p2", two, base)


@pytest.mark.parametrize(
    "path",
    [
        "tests/repo.git/HEAD",
        "fixtures/bare/objects/pack/pack-1.idx",
        "fixtures/bare/refs/heads/main",
        "fixtures/bare/packed-refs",
    ],
)
def test_a_change_of_one_that_is_there_is_pointed_out(tmp_path: Path, path: str) -> None:
    (note,) = self_running(diff(tmp_path, {}, {path: "x\n"}))
    assert note.occasion is Occasion.GIT
    assert note.detail == "belongs to a git repository within the workspace, as git sees it there"
