"""Proposals land whole or not at all, edits of the user survive, and all can be taken back."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcanvas.errors import (
    ApplyConflict,
    ApplyFailed,
    GitUnusable,
    ScopeViolation,
    UnknownTransaction,
    UnsafePatch,
    ValidationError,
)
from agentcanvas.proposals import quarantine
from agentcanvas.proposals.apply import Landing, Standing
from agentcanvas.proposals.journal import Action, Journal, JournalState, Mark, Move
from agentcanvas.proposals.merge import ConflictKind
from agentcanvas.proposals.policy import Policy
from agentcanvas.proposals.tree import Mode
from agentcanvas.protocol.records import ChangeStatus
from tests.proposals.test_patch import BASE, HOSTILE
from tests.proposals.workspaces import (
    Files,
    Link,
    Scene,
    Script,
    diff,
    scene,
    shot,
    write_files,
)

pytestmark = [pytest.mark.anyio, pytest.mark.req("S6", "D7", "D8")]

TEN = "".join(f"{n}\n" for n in range(10))
BEFORE: Files = {
    "keep.txt": "keep\n",
    "text.txt": TEN,
    "gone/deep/old.txt": "old\n",
    "tool.sh": "#!/bin/sh\n",
    "swap": "a file\n",
    "swop/inner": "a folder\n",
}
AFTER: Files = {
    "keep.txt": "keep\n",
    "text.txt": TEN.replace("7\n", "seven\n"),
    "new/deep/file.bin": bytes(range(256)),
    "tool.sh": Script("#!/bin/sh\n"),
    "swap/inner": "a folder now\n",
    "swop": "a file now\n",
    "link": Link("text.txt"),
}


@pytest.fixture(params=["git", "no git"])
def ready(request: pytest.FixtureRequest, tmp_path: Path) -> Scene:
    return scene(tmp_path, BEFORE, AFTER, git=request.param == "git")


def tree_of(workspace: Path) -> dict[str, tuple[str, bytes]]:
    return {k: v for k, v in shot(workspace).items() if not k.startswith(".git/")}


def expected(folder: Path, files: Files) -> dict[str, tuple[str, bytes]]:
    return shot(write_files(folder, files))


async def test_a_proposal_lands_whole_and_is_taken_back_whole(ready: Scene, tmp_path: Path) -> None:
    landing = Landing(ready.workspace)
    receipt = await landing.apply("p1", ready.patch, ready.base)
    assert tree_of(ready.workspace) == expected(tmp_path / "after", AFTER)
    assert not (ready.workspace / "gone").exists(), "emptied folders go, as with git"
    assert {(f.path, f.status) for f in receipt.changed_files} == {
        ("text.txt", ChangeStatus.MODIFIED),
        ("tool.sh", ChangeStatus.MODIFIED),
        ("gone/deep/old.txt", ChangeStatus.DELETED),
        ("swap", ChangeStatus.DELETED),
        ("swop/inner", ChangeStatus.DELETED),
        ("swap/inner", ChangeStatus.ADDED),
        ("swop", ChangeStatus.ADDED),
        ("new/deep/file.bin", ChangeStatus.ADDED),
        ("link", ChangeStatus.ADDED),
    }
    undone = await landing.undo("p1")
    assert undone.action is Action.UNDO
    assert tree_of(ready.workspace) == expected(tmp_path / "before", BEFORE)


async def test_the_index_the_hooks_and_the_head_of_the_user_take_no_part(tmp_path: Path) -> None:
    ready = scene(tmp_path, BEFORE, AFTER, git=True)
    (ready.workspace / "keep.txt").write_text("staged\n")
    await anyio.run_process(["git", "add", "keep.txt"], cwd=ready.workspace)
    ran = tmp_path / "ran"
    for hook in ("post-index-change", "pre-applypatch", "post-checkout"):
        path = ready.workspace / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {ran}\n")
        path.chmod(0o755)
    git = shot(ready.workspace / ".git")
    await Landing(ready.workspace).apply("p1", ready.patch, ready.base)
    await Landing(ready.workspace).undo("p1")
    assert shot(ready.workspace / ".git") == git
    assert not ran.exists()
    assert (ready.workspace / "keep.txt").read_text() == "staged\n"


@pytest.mark.req("D3")
async def test_the_same_transaction_is_done_once(ready: Scene) -> None:
    landing = Landing(ready.workspace)
    assert await landing.lookup("p1") is None
    first = await landing.apply("p1", ready.patch, ready.base)
    (ready.workspace / "text.txt").write_text("edited since\n")
    assert await landing.apply("p1", ready.patch, ready.base) == first
    assert await landing.lookup("p1") == first
    assert (ready.workspace / "text.txt").read_text() == "edited since\n"


async def test_an_undo_is_done_once_and_only_of_what_landed(ready: Scene, tmp_path: Path) -> None:
    landing = Landing(ready.workspace)
    with pytest.raises(UnknownTransaction, match="p1"):
        await landing.undo("p1")
    await landing.apply("p1", ready.patch, ready.base)
    first = await landing.undo("p1")
    (ready.workspace / "text.txt").write_text("edited since\n")
    assert await landing.undo("p1") == first
    assert await landing.lookup("p1.undo") == first
    assert (ready.workspace / "text.txt").read_text() == "edited since\n"


async def test_a_forgotten_transaction_cannot_be_undone(ready: Scene) -> None:
    landing = Landing(ready.workspace)
    await landing.apply("p1", ready.patch, ready.base)
    await landing.forget("p1")
    with pytest.raises(UnknownTransaction):
        await landing.undo("p1")


async def test_edits_elsewhere_in_the_same_file_are_merged_and_survive_the_undo(
    ready: Scene,
) -> None:
    text = ready.workspace / "text.txt"
    text.write_text(TEN.replace("1\n", "one, by the user\n"))
    landing = Landing(ready.workspace)
    assert (await landing.check(ready.patch, ready.base)).standing is Standing.MERGES
    receipt = await landing.apply("p1", ready.patch, ready.base)
    assert receipt.merged == ("text.txt",)
    assert text.read_text() == TEN.replace("1\n", "one, by the user\n").replace("7\n", "seven\n")
    text.write_text(text.read_text() + "more, by the user\n")
    await landing.undo("p1")
    assert text.read_text() == TEN.replace("1\n", "one, by the user\n") + "more, by the user\n"


CONFLICTS: dict[str, tuple[str, str | None, ConflictKind]] = {
    "the same line": ("text.txt", TEN.replace("7\n", "VII\n"), ConflictKind.BOTH_CHANGED),
    "deleted by the user": ("text.txt", None, ConflictKind.USER_DELETED),
    "changed, to be deleted": ("gone/deep/old.txt", "mine\n", ConflictKind.USER_CHANGED),
    "another new file": ("new/deep/file.bin", "mine\n", ConflictKind.USER_ADDED),
    "a folder in the way": ("link/mine", "mine\n", ConflictKind.IN_THE_WAY),
    "a file on the way": ("new", "mine\n", ConflictKind.IN_THE_WAY),
    "more in a folder that becomes a file": ("swop/mine", "mine\n", ConflictKind.IN_THE_WAY),
}


@pytest.mark.parametrize("case", CONFLICTS)
async def test_a_conflict_is_refused_by_name_and_nothing_is_touched(
    ready: Scene, case: str
) -> None:
    path, content, kind = CONFLICTS[case]
    mine = ready.workspace / path
    if content is None:
        mine.unlink()
    else:
        mine.parent.mkdir(parents=True, exist_ok=True)
        mine.write_text(content)
    before = shot(ready.workspace)
    landing = Landing(ready.workspace)
    forecast = await landing.check(ready.patch, ready.base)
    assert forecast.standing is Standing.CONFLICTS
    assert kind in {conflict.kind for conflict in forecast.conflicts}
    with pytest.raises(ApplyConflict) as refused:
        await landing.apply("p1", ready.patch, ready.base)
    assert shot(ready.workspace) == before
    assert {path.split("/")[0] for path in refused.value.conflicts} == {path.split("/")[0]}
    assert await landing.lookup("p1") is None


async def test_a_parent_folder_that_the_user_made_a_link_is_not_written_through(
    ready: Scene, tmp_path: Path
) -> None:
    elsewhere = write_files(tmp_path / "elsewhere", {"deep/file.bin": "mine\n"})
    (ready.workspace / "new").symlink_to(elsewhere)
    with pytest.raises(ApplyConflict, match="a link, not a folder"):
        await Landing(ready.workspace).apply("p1", ready.patch, ready.base)
    assert shot(elsewhere) == shot(write_files(tmp_path / "same", {"deep/file.bin": "mine\n"}))


async def test_what_the_user_did_alike_is_no_conflict(ready: Scene, tmp_path: Path) -> None:
    (ready.workspace / "text.txt").write_text(TEN.replace("7\n", "seven\n"))
    (ready.workspace / "gone/deep/old.txt").unlink()
    receipt = await Landing(ready.workspace).apply("p1", ready.patch, ready.base)
    assert tree_of(ready.workspace) == expected(tmp_path / "after", AFTER)
    assert "text.txt" not in {file.path for file in receipt.changed_files}


async def test_attributes_do_not_decide_how_edits_are_merged(tmp_path: Path) -> None:
    """``merge=union`` would keep both lines of a conflict."""
    before = {".gitattributes": "* merge=union\n", "a": "1\n"}
    ready = scene(tmp_path, before, {".gitattributes": "* merge=union\n\n", "a": "2\n"}, git=True)
    (ready.workspace / "a").write_text("3\n")
    (ready.workspace / ".gitattributes").write_text("\n* merge=union\n")
    with pytest.raises(ApplyConflict):
        await Landing(ready.workspace).apply("p1", ready.patch, ready.base)


async def test_permissions_of_the_user_stay_and_only_execution_follows_the_patch(
    ready: Scene,
) -> None:
    (ready.workspace / "text.txt").chmod(0o640)
    (ready.workspace / "tool.sh").chmod(0o640)
    landing = Landing(ready.workspace)
    await landing.apply("p1", ready.patch, ready.base)
    modes = {n: stat.S_IMODE((ready.workspace / n).stat().st_mode) for n in ("text.txt", "tool.sh")}
    assert modes == {"text.txt": 0o640, "tool.sh": 0o750}
    await landing.undo("p1")
    assert stat.S_IMODE((ready.workspace / "tool.sh").stat().st_mode) == 0o640


async def test_proposals_on_the_same_file_can_be_undone_in_any_order(tmp_path: Path) -> None:
    first = {"f": TEN.replace("1\n", "one\n")}
    second = {"f": first["f"].replace("8\n", "eight\n")}
    ready = scene(tmp_path, {"f": TEN}, first)
    landing = Landing(ready.workspace)
    await landing.apply("p1", ready.patch, ready.base)
    await landing.apply(
        "p2", diff(tmp_path / "d2", first, second), write_files(tmp_path / "g1", first)
    )
    await landing.undo("p1")
    assert (ready.workspace / "f").read_text() == TEN.replace("8\n", "eight\n")
    await landing.undo("p2")
    assert (ready.workspace / "f").read_text() == TEN


async def test_an_undo_that_later_work_builds_on_is_refused_by_name(tmp_path: Path) -> None:
    ready = scene(tmp_path, {"f": TEN}, {"f": TEN.replace("5\n", "five\n")})
    landing = Landing(ready.workspace)
    await landing.apply("p1", ready.patch, ready.base)
    (ready.workspace / "f").write_text(TEN.replace("5\n", "five and a half\n"))
    with pytest.raises(ApplyConflict) as refused:
        await landing.undo("p1")
    assert list(refused.value.conflicts) == ["f"]
    assert (ready.workspace / "f").read_text() == TEN.replace("5\n", "five and a half\n")


@pytest.mark.parametrize("case", HOSTILE)
async def test_a_hostile_patch_leaves_the_workspace_and_all_around_it_unchanged(
    tmp_path: Path, case: str
) -> None:
    ready = scene(tmp_path, BASE, BASE)
    before = shot(tmp_path)
    with pytest.raises(UnsafePatch):
        await Landing(ready.workspace).apply("p1", HOSTILE[case][0].encode(), ready.base)
    shutil.rmtree(ready.workspace / ".agentcanvas")
    assert shot(tmp_path) == before


@pytest.mark.req("S8")
async def test_a_change_outside_the_scope_does_not_land(ready: Scene) -> None:
    before = shot(ready.workspace)
    with pytest.raises(ScopeViolation):
        await Landing(ready.workspace).apply(
            "p1", ready.patch, ready.base, policy=Policy(scope=("docs/**",))
        )
    assert shot(ready.workspace) == before


async def test_two_at_once_take_turns(tmp_path: Path) -> None:
    """Each is asked for many times over and from many threads; each lands exactly once."""
    names = [f"p{n}" for n in range(6)]
    before: Files = {"shared.txt": "".join(f"line {n}\n\n\n\n" for n in range(6))}
    ready = scene(tmp_path, before, before)
    inside: list[str] = []

    def step(name: str) -> None:
        if name == "locked":
            inside.append("in")

    async def land(number: int) -> None:
        text = str(before["shared.txt"]).replace(f"line {number}\n", f"LINE {number}\n")
        patch = diff(tmp_path / f"d{number}", before, {"shared.txt": text})
        landing = Landing(ready.workspace, step=step)
        async with anyio.create_task_group() as group:
            for _ in range(2):
                group.start_soon(landing.apply, names[number], patch, ready.base)

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(land, number)
    assert (ready.workspace / "shared.txt").read_text() == str(before["shared.txt"]).upper()
    assert len(inside) == 12


async def test_a_cancelled_caller_does_not_leave_half_a_proposal(
    ready: Scene, tmp_path: Path
) -> None:
    with anyio.CancelScope() as scope:

        def cancel_in_the_middle(name: str) -> None:
            if name == "move:3":
                anyio.from_thread.run_sync(scope.cancel)

        receipt = await Landing(ready.workspace, step=cancel_in_the_middle).apply(
            "p1", ready.patch, ready.base
        )
    assert scope.cancel_called
    assert tree_of(ready.workspace) == expected(tmp_path / "after", AFTER)
    assert await Landing(ready.workspace).lookup("p1") == receipt


async def test_a_file_that_changes_in_the_last_moment_is_kept(ready: Scene) -> None:
    text = ready.workspace / "text.txt"

    def edit(name: str) -> None:
        if name == "move:0":
            text.write_text("in the last moment\n")

    before = shot(ready.workspace) | {"text.txt": ("file", b"in the last moment\n")}
    with pytest.raises(ApplyConflict, match=r"text\.txt was changed while"):
        await Landing(ready.workspace, step=edit).apply("p1", ready.patch, ready.base)
    assert shot(ready.workspace) == before


@pytest.mark.parametrize("step", ["backup:0", "contents", "move:0"])
@pytest.mark.parametrize("what", ["link", "file", "pipe", "nothing"])
async def test_a_folder_that_makes_room_for_something_else_meanwhile_is_a_conflict(
    ready: Scene, tmp_path: Path, step: str, what: str
) -> None:
    folder, outside = ready.workspace / "gone/deep", tmp_path / "outside"
    write_files(outside, {"old.txt": "precious\n"})

    def replace(name: str) -> None:
        if name != step:
            return
        folder.rename(tmp_path / "moved")
        if what == "link":
            folder.symlink_to(outside)
        elif what == "file":
            folder.write_text("mine\n")
        elif what == "pipe":
            os.mkfifo(folder)

    with pytest.raises(ApplyConflict, match=r"gone/deep/old\.txt was changed while"):
        await Landing(ready.workspace, step=replace).apply("p1", ready.patch, ready.base)
    assert folder.is_symlink() is (what == "link")
    assert shot(outside) == {"old.txt": ("file", b"precious\n")}
    rest = {path for path in shot(ready.base) if not path.startswith("gone/")}
    assert {k: v for k, v in tree_of(ready.workspace).items() if k in rest} == {
        k: v for k, v in shot(ready.base).items() if k in rest
    }
    assert [path.name for path in (ready.workspace / ".agentcanvas/apply").iterdir()] == ["lock"]


async def test_few_git_processes_even_with_edits_to_merge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {f"f{n}": TEN for n in range(30)}
    ready = scene(
        tmp_path, before, {name: text.replace("7\n", "x\n") for name, text in before.items()}
    )
    for name in list(before)[:20]:
        (ready.workspace / name).write_text(TEN.replace("1\n", "one\n"))
    shim = tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/count\nexec {shutil.which("git")} "$@"\n')
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
    quarantine.git_path.cache_clear()
    quarantine.git_version.cache_clear()
    try:
        receipt = await Landing(ready.workspace).apply("p1", ready.patch, ready.base)
        used = (tmp_path / "count").read_text().split()
    finally:
        quarantine.git_path.cache_clear()
    assert len(receipt.merged) == 20
    assert len(used) <= 4, used


async def test_an_old_git_merges_nothing_but_says_so(
    ready: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quarantine, "git_version", lambda: (2, 34, 1))
    (ready.workspace / "text.txt").write_text(TEN.replace("1\n", "one\n"))
    with pytest.raises(GitUnusable, match=r"2\.38 or newer; this is 2\.34\.1"):
        await Landing(ready.workspace).apply("p1", ready.patch, ready.base)


async def test_without_git_there_is_one_clear_error(
    ready: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    quarantine.git_path.cache_clear()
    try:
        with pytest.raises(GitUnusable, match="git is not on the PATH"):
            await Landing(ready.workspace).apply("p1", ready.patch, ready.base)
    finally:
        quarantine.git_path.cache_clear()


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x.undo", "ü", "x" * 300])
async def test_a_transaction_name_that_is_no_folder_name_is_refused(
    ready: Scene, name: str
) -> None:
    with pytest.raises(ValidationError):
        await Landing(ready.workspace).apply(name, ready.patch, ready.base)


async def test_a_journal_that_came_with_the_repository_leads_nowhere(
    ready: Scene, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    folder = ready.workspace / ".agentcanvas" / "apply" / "evil"
    (folder / "new").mkdir(parents=True)
    mark = Mark(Mode.FILE, "0" * 64)
    for path in ("../victim", str(victim), ".git/config"):
        journal = Journal(
            "evil", Action.APPLY, JournalState.COMMITTING, (Move(path, old=mark, new=None),)
        )
        (folder / "journal.json").write_bytes(msgspec.json.encode(journal))
        with pytest.raises(ApplyFailed, match="was not written by AgentCanvas"):
            await Landing(ready.workspace).recover()
    (folder / "journal.json").write_text("{}")
    with pytest.raises(ApplyFailed, match="was not written by AgentCanvas"):
        await Landing(ready.workspace).apply("p1", ready.patch, ready.base)
    assert victim.read_text() == "precious\n"


async def test_a_state_folder_that_is_a_link_is_refused(ready: Scene, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (ready.workspace / ".agentcanvas").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ApplyFailed, match="is a link"):
        await Landing(ready.workspace).apply("p1", ready.patch, ready.base)
    with pytest.raises(ApplyFailed, match="is a link"):
        await Landing(ready.workspace).recover()
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_a_new_folder_goes_when_what_it_was_made_for_fails(tmp_path: Path) -> None:
    ready = scene(tmp_path, {"a": "a\n"}, {"a": "a\n", "new/deep/b": "b\n", "new/c": "c\n"})

    def fail(name: str) -> None:
        if name == "sync":
            raise OSError(28, "No space left on device")

    with pytest.raises(ApplyFailed, match="left as it was: No space left"):
        await Landing(ready.workspace, step=fail).apply("p1", ready.patch, ready.base)
    assert {path.name for path in ready.workspace.iterdir()} == {"a", ".agentcanvas"}


async def test_what_is_kept_for_an_undo_is_for_the_user_alone(ready: Scene) -> None:
    await Landing(ready.workspace).apply("p1", ready.patch, ready.base)
    state = ready.workspace / ".agentcanvas" / "apply"
    assert stat.S_IMODE(state.stat().st_mode) == 0o700


async def test_a_missing_base_is_one_clear_error(ready: Scene, tmp_path: Path) -> None:
    with pytest.raises(ApplyFailed, match="left as it was"):
        await Landing(ready.workspace).apply("p1", ready.patch, tmp_path / "nowhere")


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n"]), max_size=4).map("".join)
TREES = st.dictionaries(st.sampled_from(["f", "g", "d/h", "d/i"]), LINES, max_size=4)


@settings(max_examples=40)
@given(TREES, TREES, TREES)
async def test_nothing_of_the_user_is_ever_lost(
    tmp_path_factory: pytest.TempPathFactory, before: Files, after: Files, mine: Files
) -> None:
    folder = tmp_path_factory.mktemp("three-way")
    patch = diff(folder / "diff", before, after)
    if not patch:
        return
    base = write_files(folder / "base", before)
    workspace = write_files(folder / "workspace", mine)
    landing, start = Landing(workspace), shot(workspace)
    try:
        await landing.apply("p1", patch, base)
    except ApplyConflict:
        assert shot(workspace) == start
        return
    for name in {*before, *after, *mine}:
        now = shot(workspace).get(name)
        text = now[1].decode() if now else None
        if mine.get(name) == before.get(name):
            assert text == after.get(name)
        elif before.get(name) == after.get(name):
            assert text == mine.get(name)
    await landing.undo("p1")
    assert shot(workspace) == start
