"""How each waiting proposal stands after an apply or an edit: clean, merges, stale, conflicts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcanvas.errors import ApplyFailed, ProposalMalformed, UnsafePatch
from agentcanvas.proposals import quarantine
from agentcanvas.proposals.apply import Landing, Standing
from agentcanvas.proposals.collisions import CollisionKind
from agentcanvas.proposals.footprint import footprint
from agentcanvas.proposals.hunks import surely_apart
from agentcanvas.proposals.merge import ConflictKind
from agentcanvas.proposals.radar import Fitness, Outlook, Radar, Waiting
from agentcanvas.proposals.tree import Entry, Mode
from tests.proposals.workspaces import Files, Link, Script, diff, shot, write_files

pytestmark = [pytest.mark.anyio, pytest.mark.req("D7", "D13")]

LINES = [f"line {n}\n" for n in range(1, 41)]
TEXT = "".join(LINES)
BASE: Files = {"f": TEXT, "g": TEXT, "blob": b"\0one", "gone": "gone\n", "tool": "#!/bin/sh\n"}


def changed(*numbers: int, word: str = "new") -> str:
    return "".join(f"{word} {n}\n" if n in numbers else line for n, line in enumerate(LINES, 1))


class Field:
    def __init__(self, folder: Path, before: Files = BASE) -> None:
        self.folder, self.before = folder, before
        self.workspace = write_files(folder / "workspace", before)
        self.base = write_files(folder / "base", before)
        self.radar = Radar(self.workspace)

    def waits(self, name: str, after: Files, *, evidence: int | None = None) -> bytes:
        patch = diff(self.folder / f"diff-{name}", self.before, after)
        self.radar.watch(Waiting(name, patch, self.base, generation=1, evidence=evidence))
        return patch

    async def looks(self, generation: int | None = None) -> dict[str, Outlook]:
        before = shot(self.workspace)
        found = {look.proposal_id: look for look in await self.radar.recheck(generation)}
        assert shot(self.workspace) == before, "a look changes nothing"
        return found


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path)


async def test_nothing_moved_is_clean(field: Field) -> None:
    field.waits("p1", {**BASE, "f": changed(3), "new": "new\n"}, evidence=1)
    assert (await field.looks(1))["p1"] == Outlook("p1", Fitness.CLEAN)


async def test_after_an_apply_each_waiting_one_stands_anew(field: Field) -> None:
    landed = field.waits("p1", {**BASE, "f": changed(3)})
    field.waits("p2", {**BASE, "f": changed(20)})
    field.waits("p3", {**BASE, "f": changed(3, word="else")})
    field.waits("p4", {**BASE, "g": changed(3)})
    field.waits("p5", {**BASE, "f": changed(3)})
    await Landing(field.workspace).apply("p1", landed, field.base)
    field.radar.forget("p1")
    looks = await field.looks()
    assert {name: look.fitness for name, look in looks.items()} == {
        "p2": Fitness.MERGES,
        "p3": Fitness.CONFLICTS,
        "p4": Fitness.CLEAN,
        "p5": Fitness.CLEAN,
    }
    assert looks["p2"].merged == ("f",)
    (conflict,) = looks["p3"].conflicts
    assert (conflict.path, conflict.kind) == ("f", ConflictKind.BOTH_CHANGED)
    await Landing(field.workspace).undo("p1")
    assert {look.fitness for look in (await field.looks()).values()} == {Fitness.CLEAN}


async def test_it_is_stale_when_its_evidence_was_made_on_something_else(field: Field) -> None:
    field.waits("p1", {**BASE, "f": changed(3)}, evidence=1)
    field.waits("p2", {**BASE, "g": changed(3)}, evidence=1)
    field.waits("p3", {**BASE, "f": changed(4)})
    (field.workspace / "f").write_text(changed(30))
    looks = await field.looks(1)
    assert looks["p1"].fitness is Fitness.STALE
    assert looks["p1"].moved == looks["p1"].merged == ("f",)
    assert looks["p1"].reason == "f changed since it was checked"
    assert looks["p2"].fitness is Fitness.CLEAN
    assert looks["p3"].fitness is Fitness.MERGES, "what was never checked cannot become stale"
    looks = await field.looks(2)
    assert looks["p2"].fitness is Fitness.STALE
    assert looks["p2"].reason == "it was checked on generation 1, and this is 2"
    field.waits("p1", {**BASE, "f": changed(3)}, evidence=2)
    assert (await field.looks(2))["p1"].fitness is Fitness.MERGES, "checked anew, it only merges"


EDITS: dict[str, tuple[str, str | bytes | None, Fitness]] = {
    "same line": ("f", changed(3, word="mine"), Fitness.CONFLICTS),
    "another line": ("f", changed(30), Fitness.MERGES),
    "the same edit": ("f", changed(3), Fitness.CLEAN),
    "deleted": ("f", None, Fitness.CONFLICTS),
    "edited, to be deleted": ("gone", "mine\n", Fitness.CONFLICTS),
    "deleted alike": ("gone", None, Fitness.CLEAN),
    "another new file": ("new/x", "mine\n", Fitness.CONFLICTS),
    "the same new file": ("new/x", "x\n", Fitness.CLEAN),
    "a file on the way": ("new", "mine\n", Fitness.CONFLICTS),
    "a binary file": ("blob", b"\0mine", Fitness.CONFLICTS),
    "an edit where the mode changes": ("tool", "#!/bin/bash\n", Fitness.MERGES),
    "another file": ("g", "mine\n", Fitness.CLEAN),
}
AFTER: Files = {
    "f": changed(3),
    "g": TEXT,
    "blob": b"\0two",
    "tool": Script("#!/bin/sh\n"),
    "new/x": "x\n",
    "link": Link("f"),
}


@pytest.mark.parametrize("case", EDITS)
async def test_an_edit_of_the_user_is_judged_as_the_apply_would(field: Field, case: str) -> None:
    path, content, fitness = EDITS[case]
    patch = field.waits("p1", AFTER)
    target = field.workspace / path
    if content is None:
        target.unlink()
    else:
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert (await field.looks())["p1"].fitness is fitness
    forecast = await Landing(field.workspace).check(patch, field.base)
    assert forecast.standing is Standing(fitness.value)


PUT_INSTEAD: dict[str, tuple[Callable[[Path], object], ConflictKind]] = {
    "a pipe": (os.mkfifo, ConflictKind.IN_THE_WAY),
    "an empty folder": (Path.mkdir, ConflictKind.USER_DELETED),
    "a folder": (lambda path: write_files(path, {"mine": "x\n"}), ConflictKind.IN_THE_WAY),
    "a link": (lambda path: path.symlink_to("g"), ConflictKind.BOTH_CHANGED),
}


@pytest.mark.parametrize("case", PUT_INSTEAD)
async def test_what_the_user_put_in_a_file_s_place_is_one_conflict_about_that_file(
    field: Field, case: str
) -> None:
    put, kind = PUT_INSTEAD[case]
    patch = field.waits("p1", {**BASE, "f": changed(3)})
    (field.workspace / "f").unlink()
    put(field.workspace / "f")
    look = (await field.looks())["p1"]
    forecast = await Landing(field.workspace).check(patch, field.base)
    for found in (look.conflicts, forecast.conflicts):
        assert [(conflict.kind, conflict.path) for conflict in found] == [(kind, "f")]


async def test_a_file_that_makes_room_for_a_folder_is_not_in_its_own_way(tmp_path: Path) -> None:
    field = Field(tmp_path, {"a": "a\n", "b/c": "c\n"})
    field.waits("p1", {"a/x": "a\n", "b": "b\n"})
    assert (await field.looks())["p1"].fitness is Fitness.CLEAN
    (field.workspace / "b" / "mine").write_text("mine\n")
    look = (await field.looks())["p1"]
    assert look.fitness is Fitness.CONFLICTS
    assert look.conflicts[0].path == "b"


async def test_only_those_near_a_change_are_looked_at_again(field: Field) -> None:
    field.waits("p1", {**BASE, "f": changed(3)})
    field.waits("p2", {**BASE, "g": changed(3)})
    await field.looks()
    (field.workspace / "f").write_text("mine\n")
    (field.workspace / "g").write_text("mine\n")
    looks = {x.proposal_id: x.fitness for x in await field.radar.recheck(changed=["f"])}
    assert looks == {"p1": Fitness.CONFLICTS, "p2": Fitness.CLEAN}
    looks = {x.proposal_id: x.fitness for x in await field.radar.recheck(changed=["g"])}
    assert looks == {"p1": Fitness.CONFLICTS, "p2": Fitness.CONFLICTS}


async def test_a_folder_in_the_way_is_near_too(field: Field) -> None:
    field.waits("p1", {**BASE, "new": "file\n"})
    field.waits("p2", {**BASE, "deep/er/x": "file\n"})
    await field.looks()
    write_files(field.workspace, {"new/mine": "x\n", "deep": "x\n"})
    looks = {x.proposal_id: x.fitness for x in await field.radar.recheck(changed=["new/mine"])}
    assert looks == {"p1": Fitness.CONFLICTS, "p2": Fitness.CLEAN}
    looks = {x.proposal_id: x.fitness for x in await field.radar.recheck(changed=["deep"])}
    assert looks["p2"] is Fitness.CONFLICTS


async def test_one_git_process_however_many_have_to_be_merged(
    field: Field, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        field.waits(f"p{number}", {**BASE, "f": changed(2 * number + 4), "g": changed(20)})
    (field.workspace / "f").write_text(changed(1, 39, word="mine"))
    (field.workspace / "g").write_text(changed(18, word="mine"))
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/count\nexec {shutil.which("git")} "$@"\n')
    shim.chmod(0o755)
    quarantine.git_version()
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    quarantine.git_path.cache_clear()
    try:
        looks = await field.looks()
    finally:
        quarantine.git_path.cache_clear()
    assert {look.fitness for look in looks.values()} == {Fitness.MERGES}
    assert (tmp_path / "count").read_text().split() == ["merge-tree"]


@pytest.mark.parametrize(
    ("landed", "waiting", "clash"),
    [
        ("Src/new.py", "src/other.py", "src/other.py: is the same as Src on"),
        ("README", "readme", "readme: is the same as README on"),
        ("deep/Er/x", "deep/er/y/z", "deep/er/y/z: is the same as deep/Er on"),
        ("src", "SRC/x", "SRC/x: is the same as src on"),
    ],
)
async def test_a_new_name_that_landing_would_refuse_cannot_land(
    field: Field, landed: str, waiting: str, clash: str
) -> None:
    first = field.waits("p1", {**BASE, landed: "1\n"})
    second = field.waits("p2", {**BASE, waiting: "2\n"})
    field.waits("p3", {**BASE, "f": changed(3), "other/x": "3\n"})
    assert {look.fitness for look in (await field.looks()).values()} == {Fitness.CLEAN}
    assert [met.kind for met in field.radar.collisions()] == [CollisionKind.NAME_CLASH]
    landing = Landing(field.workspace)
    await landing.apply("p1", first, field.base)
    field.radar.forget("p1")
    looks = {each.proposal_id: each for each in await field.radar.recheck(changed=[landed])}
    assert looks["p2"].fitness is Fitness.CONFLICTS
    assert looks["p2"].reason.startswith(clash)
    assert looks["p3"].fitness is Fitness.CLEAN
    with pytest.raises(UnsafePatch, match="is the same as"):
        await landing.apply("p2", second, field.base)
    await landing.undo("p1")
    looks = {each.proposal_id: each for each in await field.radar.recheck(changed=[landed])}
    assert looks["p2"].fitness is Fitness.CLEAN


async def test_nothing_is_read_through_a_link(field: Field, tmp_path: Path) -> None:
    field.waits("p1", {**BASE, "new/x": "x\n"})
    write_files(tmp_path / "elsewhere", {"x": "x\n"})
    (field.workspace / "new").symlink_to(tmp_path / "elsewhere")
    look = (await field.looks())["p1"]
    assert look.fitness is Fitness.CONFLICTS
    assert "a link, not a folder" in look.reason


async def test_the_radar_knows_the_collisions_of_those_who_wait(field: Field) -> None:
    field.waits("p1", {**BASE, "f": changed(3)})
    field.waits("p2", {**BASE, "f": changed(3, word="else")})
    assert [c.kind for c in field.radar.collisions()] == [CollisionKind.SAME_LINES]
    field.radar.forget("p2")
    field.radar.forget("p2")
    assert field.radar.collisions() == ()


@pytest.mark.parametrize("path", ["../x", ".git/config", "/etc/x", "a/../../x"])
async def test_a_patch_that_leads_out_is_not_watched(field: Field, path: str) -> None:
    patch = f"diff --git a/{path} b/{path}\nnew file mode 100644\n".encode()
    with pytest.raises((UnsafePatch, ProposalMalformed)):
        field.radar.watch(Waiting("p1", patch, field.base, generation=1))
    assert await field.radar.recheck() == ()


async def test_a_base_that_is_gone_is_one_clear_error(field: Field) -> None:
    field.waits("p1", {**BASE, "f": changed(3)})
    shutil.rmtree(field.base)
    with pytest.raises(ApplyFailed, match="could not be checked: No such file"):
        await field.radar.recheck()


@settings(max_examples=40)
@given(st.data())
async def test_what_is_found_without_git_is_what_git_finds(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Long files with few different lines, where a diff can slide far."""
    letters = st.sampled_from(["a\n", "b\n", "\n"])
    before = data.draw(st.lists(letters, min_size=10, max_size=40))

    def edited() -> str:
        at = data.draw(st.integers(0, len(before)))
        gone = data.draw(st.integers(0, 2))
        fresh = data.draw(st.lists(st.sampled_from(["a\n", "b\n", "\n", "c\n"]), max_size=3))
        return "".join([*before[:at], *fresh, *before[at + gone :]])

    text, after, mine = "".join(before), edited(), edited()
    patch = diff(tmp_path_factory.mktemp("d"), {"f": text}, {"f": after})
    if not patch:
        return
    spans = footprint(patch).files["f"].spans
    if surely_apart(text.encode(), mine.encode(), spans):
        with quarantine.Quarantine(largest_file=10**6) as git:
            sides = [{b"f": Entry(Mode.FILE, side.encode())} for side in (text, mine, after)]
            _, clashing = git.merge(*sides)
        assert not clashing


WORDS = st.lists(st.sampled_from(["a\n", "b\n", "c\n"]), max_size=5).map("".join)
TREES = st.dictionaries(st.sampled_from(["f", "g", "d/h", "d"]), WORDS, max_size=3).filter(
    lambda tree: not {"d", "d/h"} <= tree.keys()
)


@settings(max_examples=40)
@given(TREES, TREES, TREES)
async def test_the_radar_and_the_apply_agree(
    tmp_path_factory: pytest.TempPathFactory, before: Files, after: Files, mine: Files
) -> None:
    folder = tmp_path_factory.mktemp("radar")
    patch = diff(folder / "diff", before, after)
    if not patch:
        return
    base = write_files(folder / "base", before)
    workspace = write_files(folder / "workspace", mine)
    radar = Radar(workspace)
    radar.watch(Waiting("p1", patch, base, generation=1))
    (look,) = await radar.recheck()
    forecast = await Landing(workspace).check(patch, base)
    assert (look.fitness is Fitness.CONFLICTS) == (forecast.standing is Standing.CONFLICTS)
    assert (look.fitness is Fitness.MERGES) == (forecast.standing is Standing.MERGES)


def test_two_attempts_at_one_task_never_meet_and_the_latest_meets_the_others(
    field: Field,
) -> None:
    files = {"a.r0": 3, "a.r2": 3, "a.r1": 3, "b.r0": 3}
    for name, line in files.items():
        patch = diff(field.folder / f"diff-{name}", BASE, {**BASE, "f": changed(line, word=name)})
        task, _, attempt = name.partition(".r")
        waiting = Waiting(name, patch, field.base, 1, task=task, attempt=int(attempt))
        field.radar.watch(waiting)
    (met,) = field.radar.collisions()
    assert met.proposals == ("a.r2", "b.r0")
    field.radar.forget("b.r0")
    assert field.radar.collisions() == ()
