"""Landing as a commit or on a branch: the touched paths and nothing else (D16)."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcanvas.clock import VirtualClock
from agentcanvas.errors import (
    AgentCanvasError,
    ApplyConflict,
    ApplyFailed,
    LandingRefused,
    UnsafePatch,
    ValidationError,
)
from agentcanvas.proposals.apply import Landing
from agentcanvas.proposals.journal import Action
from agentcanvas.proposals.ways import Branch, Commit, Message, Way, Worktree
from tests.proposals.repositories import (
    BRANCH,
    COMMIT,
    MESSAGE,
    commit_all,
    everything,
    files,
    git,
    init,
    message,
    parentless,
    repository,
    state,
    trailers,
)
from tests.proposals.workspaces import Files, Link, Scene, Script, diff, write_files

pytestmark = [pytest.mark.anyio, pytest.mark.req("D16", "S6")]

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
TOUCHED = [
    *("gone/deep/old.txt", "link", "new/deep/file.bin", "swap", "swap/inner", "swop"),
    *("swop/inner", "text.txt", "tool.sh"),
]


@pytest.fixture(autouse=True)
def only_the_configuration_says_who(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ.keys() & {
        f"GIT_{role}_{part}" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")
    }:
        monkeypatch.delenv(name)


@pytest.fixture
def ready(tmp_path: Path) -> Scene:
    return repository(tmp_path, BEFORE, AFTER)


async def land(ready: Scene, way: Way = COMMIT, name: str = "p1") -> str:
    receipt = await Landing(ready.workspace).apply(name, ready.patch, ready.base, way=way)
    assert receipt.commit is not None
    return receipt.commit


async def refused(
    ready: Scene, kind: type[AgentCanvasError], words: str, way: Way = COMMIT
) -> AgentCanvasError:
    """It is refused in these words, and nothing at all has changed."""
    before = everything(ready.workspace)
    with pytest.raises(kind, match=words) as told:
        await Landing(ready.workspace).apply("p1", ready.patch, ready.base, way=way)
    assert everything(ready.workspace) == before
    assert await Landing(ready.workspace).lookup("p1") is None
    return told.value


# A commit ----------------------------------------------------------------------------------------


async def test_a_commit_holds_the_touched_paths_and_says_where_they_come_from(
    ready: Scene, tmp_path: Path
) -> None:
    start = git(ready.workspace, "rev-parse", "HEAD").strip()
    clock = VirtualClock()
    landing = Landing(ready.workspace, clock=clock)
    receipt = await landing.apply("p1", ready.patch, ready.base, way=COMMIT)
    root = ready.workspace
    assert receipt.commit == git(root, "rev-parse", "HEAD").strip()
    assert receipt.ref == "refs/heads/main"
    assert git(root, "rev-parse", "HEAD~1").strip() == start
    assert git(root, "diff", "--name-only", "HEAD~1", "--no-renames").split() == TOUCHED
    assert git(root, "status", "--porcelain=v2") == "", "files, index and commit agree"
    assert files(root) == files(write_files(tmp_path / "after", AFTER))
    assert message(root) == (
        "Count from one\n\nUsers do.\n\nProposal: prop-1\nRun: run-1\nAgent: coder"
    )
    assert trailers(root) == {"Proposal": "prop-1", "Run": "run-1", "Agent": "coder"}
    when = str(clock.now_ms() // 1000)
    assert git(root, "log", "-1", "--format=%an <%ae> %cn %at %ct").split("\n")[0] == (
        f"Ada <ada@analytical.org> Ada {when} {when}"
    )
    assert "agentcanvas: Count from one" in git(root, "reflog", "-1")
    git(root, "fsck", "--strict")


async def test_edits_that_are_not_committed_stay_in_the_files_and_out_of_the_commit(
    ready: Scene,
) -> None:
    root = ready.workspace
    mine = TEN.replace("1\n", "one, by the user\n")
    (root / "text.txt").write_text(mine)
    (root / "keep.txt").write_text("staged\n")
    git(root, "add", "keep.txt")
    (root / "keep.txt").write_text("edited once more\n")
    (root / "mine.txt").write_text("untracked\n")
    await land(ready)
    assert git(root, "show", "HEAD:text.txt") == TEN.replace("7\n", "seven\n")
    assert git(root, "show", ":text.txt") == TEN.replace("7\n", "seven\n")
    assert (root / "text.txt").read_text() == mine.replace("7\n", "seven\n")
    assert git(root, "show", ":keep.txt") == "staged\n"
    assert (root / "keep.txt").read_text() == "edited once more\n"
    assert git(root, "status", "--porcelain") == "MM keep.txt\n M text.txt\n?? mine.txt\n"


async def test_a_base_with_edits_in_it_still_gives_a_commit_of_the_proposal_alone(
    tmp_path: Path,
) -> None:
    """g0 includes what is not committed (D7): the proposal was made on top of that."""
    mine = {"f": TEN.replace("1\n", "one, by the user\n")}
    ready = repository(tmp_path, {"f": TEN}, {"f": TEN.replace("8\n", "eight\n")})
    (ready.workspace / "f").write_text(mine["f"])
    both = {"f": mine["f"].replace("8\n", "eight\n")}
    on_mine = Scene(
        ready.workspace, write_files(tmp_path / "g0", mine), diff(tmp_path / "d", mine, both)
    )
    await land(on_mine)
    assert git(ready.workspace, "show", "HEAD:f") == TEN.replace("8\n", "eight\n")
    assert (ready.workspace / "f").read_text() == both["f"]


async def test_a_change_that_stands_on_uncommitted_lines_is_refused_by_name(tmp_path: Path) -> None:
    mine = {"f": TEN.replace("5\n", "five, by the user\n"), "new": "mine\n"}
    after = {"f": TEN.replace("5\n", "FIVE\n"), "new": "mine, and more\n"}
    ready = repository(tmp_path, {"f": TEN}, {"f": "x\n"})
    write_files(ready.workspace, mine)
    on_mine = Scene(
        ready.workspace, write_files(tmp_path / "g0", mine), diff(tmp_path / "d", mine, after)
    )
    error = await refused(on_mine, ApplyConflict, "does not fit your last commit")
    assert isinstance(error, ApplyConflict)
    assert set(error.conflicts) == {"f", "new"}


async def test_a_path_that_is_staged_differently_is_refused_by_name(ready: Scene) -> None:
    root = ready.workspace
    (root / "text.txt").write_text(TEN.replace("1\n", "one\n"))
    git(root, "add", "text.txt")
    (root / "text.txt").write_text(TEN)
    error = await refused(ready, ApplyConflict, r"text\.txt is staged differently")
    assert isinstance(error, ApplyConflict)
    assert error.conflicts == {"text.txt": "is staged differently"}


STAGED: dict[str, tuple[tuple[str, ...], str]] = {
    "removed from the index": (("rm", "-q", "--cached", "text.txt"), "text.txt"),
    "only its mode": (("update-index", "--chmod=+x", "text.txt"), "text.txt"),
    "a file of the same name": (("add", "-f", "link"), "link"),
    "meant to be added": (("add", "-N", "link"), "link"),
}


@pytest.mark.parametrize("case", STAGED)
async def test_whatever_way_it_is_staged_it_is_seen(ready: Scene, case: str) -> None:
    command, path = STAGED[case]
    if path == "link":
        (ready.workspace / "link").symlink_to("keep.txt")
    git(ready.workspace, *command)
    (ready.workspace / "link").unlink(missing_ok=True)
    before = everything(ready.workspace)
    with pytest.raises(ApplyConflict, match="staged differently"):
        await land(ready)
    assert everything(ready.workspace) == before


async def test_a_staged_file_below_a_name_that_becomes_a_file_is_not_lost(ready: Scene) -> None:
    """git would drop swop/mine from the index without a word."""
    blob = git(ready.workspace, "hash-object", "-w", "--stdin", stdin=b"mine\n").strip()
    git(ready.workspace, "update-index", "--add", "--cacheinfo", f"100644,{blob},swop/mine")
    await refused(ready, ApplyConflict, "swop is staged differently")


async def test_what_is_staged_as_the_commit_will_have_it_is_no_obstacle(tmp_path: Path) -> None:
    ready = repository(tmp_path, {"f": TEN}, {"f": TEN.replace("5\n", "five\n")})
    (ready.workspace / "f").write_text(TEN.replace("5\n", "five\n"))
    git(ready.workspace, "add", "f")
    await land(ready)
    assert git(ready.workspace, "status", "--porcelain") == ""


async def test_a_lock_of_the_users_git_is_respected_and_left(ready: Scene) -> None:
    lock = ready.workspace / ".git" / "index.lock"
    lock.write_text("somebody else's")
    await refused(ready, LandingRefused, r"git is at work in this repository.*index\.lock exists")
    assert lock.read_text() == "somebody else's"
    lock.unlink()
    await land(ready)


async def test_the_index_is_locked_for_others_while_it_lands(ready: Scene) -> None:
    seen: dict[str, bool] = {}

    def step(name: str) -> None:
        seen[name] = (ready.workspace / ".git" / "index.lock").exists()

    await Landing(ready.workspace, step=step).apply("p1", ready.patch, ready.base, way=COMMIT)
    assert seen["objects"]
    assert seen["move:0"]
    assert seen["ref"]
    assert not seen["sealed"]


async def test_hooks_filters_signing_and_configuration_take_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before: Files = {"f": TEN, ".gitattributes": "* filter=loud\n"}
    ready = repository(tmp_path, before, {**before, "f": TEN.replace("5\n", "five\n")})
    root, ran = ready.workspace, tmp_path / "ran"
    loud = tmp_path / "loud"
    loud.write_text(f"#!/bin/sh\necho $0 $@ >> {ran}\ncat\n")
    loud.chmod(0o755)
    for hook in (
        *("pre-commit", "commit-msg", "prepare-commit-msg", "post-commit", "post-index-change"),
        *("reference-transaction", "pre-auto-gc", "post-rewrite", "post-checkout"),
    ):
        shutil.copy(loud, root / ".git" / "hooks" / hook)
    hostile = tmp_path / "gitconfig"
    hostile.write_text(
        f"[user]\nname = Ada\nemail = ada@analytical.org\n[commit]\ngpgSign = true\n"
        f"template = {loud}\n[gpg]\nprogram = {loud}\n[core]\nfsmonitor = {loud}\n"
        f"[i18n]\ncommitEncoding = latin1\n[core]\nautocrlf = true\nhooksPath = {tmp_path}\n"
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(hostile))
    shutil.copy(loud, tmp_path / "reference-transaction")
    for key in ("core.fsmonitor", "filter.loud.clean", "filter.loud.smudge", "gpg.program"):
        git(root, "config", key, str(loud))
    git(root, "config", "commit.gpgSign", "true")
    (root / ".git" / "info" / "attributes").write_text("* filter=loud\n")
    ran.unlink(missing_ok=True)
    told = Message(summary="Zähle ab fünf", proposal_id="p", run_id="r", agent_id="a")
    await land(ready, Commit(told))
    assert not ran.exists(), ran.read_text()
    raw = git(root, "cat-file", "commit", "HEAD")
    assert "gpgsig" not in raw
    assert "encoding" not in raw
    assert "Zähle ab fünf" in raw
    assert git(root, "cat-file", "blob", "HEAD:f") == TEN.replace("5\n", "five\n")


async def test_without_an_identity_there_is_one_clear_error_and_no_guess(
    ready: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in ("user.name", "user.email"):
        git(ready.workspace, "config", "--unset", key)
    for name, value in parentless().items():
        monkeypatch.setenv(name, value)
    for way in (COMMIT, BRANCH):
        await refused(ready, LandingRefused, "git does not know who you are.*git config", way)
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Grace")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "grace@navy.org")
    await land(ready)
    assert git(ready.workspace, "log", "-1", "--format=%an %ae") == "Grace grace@navy.org\n"


async def test_outside_git_there_is_one_clear_error(tmp_path: Path) -> None:
    workspace = write_files(tmp_path / "workspace", {"f": "1\n"})
    base = write_files(tmp_path / "base", {"f": "1\n"})
    patch = diff(tmp_path / "d", {"f": "1\n"}, {"f": "2\n"})
    for way in (COMMIT, BRANCH):
        with pytest.raises(LandingRefused, match=r"not in a git working tree.*git init"):
            await Landing(workspace).apply("p1", patch, base, way=way)
    assert (workspace / "f").read_text() == "1\n"


@pytest.mark.parametrize("what", ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge"])
async def test_in_the_middle_of_a_merge_or_rebase_nothing_is_committed(
    ready: Scene, what: str
) -> None:
    place = ready.workspace / ".git" / what
    place.mkdir() if what.startswith("rebase") else place.write_text("0" * 40 + "\n")
    before = files(ready.workspace)
    with pytest.raises(LandingRefused, match="is under way"):
        await land(ready)
    assert files(ready.workspace) == before


async def test_a_detached_head_moves_alone(ready: Scene) -> None:
    start = git(ready.workspace, "rev-parse", "main").strip()
    git(ready.workspace, "checkout", "-q", "--detach")
    receipt = await Landing(ready.workspace).apply("p1", ready.patch, ready.base, way=COMMIT)
    assert receipt.ref == "HEAD"
    assert git(ready.workspace, "rev-parse", "main").strip() == start
    assert git(ready.workspace, "rev-parse", "HEAD").strip() == receipt.commit
    assert git(ready.workspace, "status", "--porcelain") == ""


@pytest.mark.parametrize("way", [COMMIT, BRANCH], ids=["commit", "branch"])
async def test_before_the_first_commit_it_becomes_the_first(tmp_path: Path, way: Way) -> None:
    workspace = init(tmp_path / "workspace")
    (workspace / "mine").write_text("staged\n")
    git(workspace, "add", "mine")
    base = write_files(tmp_path / "base", {"mine": "staged\n"})
    patch = diff(tmp_path / "d", {"mine": "staged\n"}, {"mine": "staged\n", "a/b": "new\n"})
    ready = Scene(workspace, base, patch)
    commit = await land(ready, way)
    assert git(workspace, "ls-tree", "-r", "--name-only", commit) == "a/b\n"
    assert git(workspace, "rev-list", "--count", commit) == "1\n"
    if way is COMMIT:
        assert git(workspace, "status", "--porcelain") == "A  mine\n"
    else:
        assert git(workspace, "status", "--porcelain") == "A  mine\n"
        assert not (workspace / "a").exists()


async def test_a_subfolder_of_a_bigger_repository_commits_below_itself(tmp_path: Path) -> None:
    top = init(tmp_path / "top")
    write_files(top, {"other/f": "other\n", "sub/dir/f": TEN})
    commit_all(top)
    (top / "other" / "f").write_text("edited\n")
    base = write_files(tmp_path / "base", {"f": TEN})
    patch = diff(tmp_path / "d", {"f": TEN}, {"f": TEN.replace("5\n", "five\n"), "g": "new\n"})
    ready = Scene(top / "sub" / "dir", base, patch)
    await land(ready)
    changed = git(top, "diff", "--name-only", "HEAD~1", "HEAD")
    assert changed == "sub/dir/f\nsub/dir/g\n"
    assert git(top, "status", "--porcelain", "-uno") == " M other/f\n"
    await Landing(ready.workspace).undo("p1")
    assert git(top, "diff", "--name-only", "HEAD~2", "HEAD") == ""


async def test_a_linked_worktree_has_its_own_index_and_branch(ready: Scene, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    git(ready.workspace, "worktree", "add", "-q", "-b", "side", str(linked))
    main = everything(ready.workspace)
    receipt = await Landing(linked).apply("p1", ready.patch, ready.base, way=COMMIT)
    assert receipt.ref == "refs/heads/side"
    assert git(linked, "status", "--porcelain", "-uno") == ""
    now = everything(ready.workspace)
    for untouched in ("files", "index", "status", "head", "lock", "ours"):
        assert now[untouched] == main[untouched]
    await Landing(linked).undo("p1")
    assert git(linked, "diff", "main", "side") == ""


async def test_a_sha256_repository_is_no_special_case(tmp_path: Path) -> None:
    ready = repository(tmp_path, BEFORE, AFTER, "--object-format=sha256")
    commit = await land(ready)
    assert len(commit) == 64
    assert git(ready.workspace, "status", "--porcelain") == ""
    git(ready.workspace, "fsck", "--strict")
    await Landing(ready.workspace).undo("p1")
    assert git(ready.workspace, "diff", "HEAD~2", "HEAD") == ""


async def test_a_split_index_and_an_old_index_version_are_taken(ready: Scene) -> None:
    git(ready.workspace, "update-index", "--index-version", "4")
    git(ready.workspace, "update-index", "--split-index")
    await land(ready)
    assert git(ready.workspace, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("name", "committed"),
    [
        ("TEXT.txt", "text.txt"),
        ("Gone/other.txt", "gone/deep/old.txt"),
        ("KEEP.TXT/below", "keep.txt"),
    ],
)
async def test_a_new_name_that_clashes_with_what_is_only_in_the_commit_is_refused(
    tmp_path: Path, name: str, committed: str
) -> None:
    """The user deleted the other one before the run, and has not committed that."""
    here = {path: content for path, content in BEFORE.items() if path != committed}
    ready = repository(tmp_path, BEFORE, AFTER)
    (ready.workspace / committed).unlink()
    base = write_files(tmp_path / "edited", here)
    patch = diff(tmp_path / "named", here, {**here, name: "new\n"})
    for way in (COMMIT, BRANCH):
        edited = Scene(ready.workspace, base, patch)
        await refused(edited, ApplyConflict, "on a case-insensitive disk", way)


async def test_a_new_name_that_some_disks_take_for_one_of_the_commit_is_refused(
    tmp_path: Path,
) -> None:
    ready = repository(tmp_path, BEFORE, AFTER)
    (ready.workspace / "keep.txt").unlink()
    here = {path: content for path, content in BEFORE.items() if path != "keep.txt"}
    patch = diff(tmp_path / "named", here, {**here, "keep.txt.": "new\n"})
    edited = Scene(ready.workspace, write_files(tmp_path / "edited", here), patch)
    await refused(edited, ApplyConflict, r"keep\.txt\. is keep\.txt on some disks")


async def test_a_submodule_is_never_entered(tmp_path: Path) -> None:
    ready = repository(tmp_path, {"f": "f\n"}, {"f": "f\n", "sub/x": "new\n"})
    head = git(ready.workspace, "rev-parse", "HEAD").strip()
    git(ready.workspace, "update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    git(ready.workspace, "commit", "-q", "-m", "a submodule")
    await refused(ready, ApplyConflict, "sub")


async def test_a_hostile_patch_makes_no_commit(ready: Scene) -> None:
    patch = b"diff --git a/.git/hooks/x b/.git/hooks/x\nnew file mode 100755\n"
    await refused(Scene(ready.workspace, ready.base, patch), UnsafePatch, "may not land")


async def test_a_change_that_head_holds_already_lands_without_a_commit(tmp_path: Path) -> None:
    ready = repository(tmp_path, {"f": "1\n"}, {"f": "2\n"})
    (ready.workspace / "f").write_text("2\n")
    head = commit_all(ready.workspace, "by hand")
    receipt = await Landing(ready.workspace).apply("p1", ready.patch, ready.base, way=COMMIT)
    assert receipt.commit is None
    assert git(ready.workspace, "rev-parse", "HEAD").strip() == head
    with pytest.raises(LandingRefused, match="holds this change already"):
        await Landing(ready.workspace).apply("p2", ready.patch, ready.base, way=BRANCH)


async def test_the_same_transaction_commits_once(ready: Scene) -> None:
    commit = await land(ready)
    assert await land(ready) == commit
    assert git(ready.workspace, "rev-list", "--count", "HEAD") == "2\n"
    looked_up = await Landing(ready.workspace).lookup("p1")
    assert looked_up is not None
    assert looked_up.commit == commit


async def test_a_failure_after_the_commit_takes_ref_index_and_files_back(ready: Scene) -> None:
    before = state(ready.workspace)

    def fail(name: str) -> None:
        if name == "journal:done":
            raise OSError(28, "No space left on device")

    with pytest.raises(ApplyFailed, match="No space left"):
        await Landing(ready.workspace, step=fail).apply("p1", ready.patch, ready.base, way=COMMIT)
    assert state(ready.workspace) == before
    assert not (ready.workspace / ".git" / "index.lock").exists()


async def test_a_ref_that_somebody_moves_in_the_last_moment_is_left(ready: Scene) -> None:
    root = ready.workspace
    other = git(root, "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "theirs").strip()
    start = files(root)

    def step(name: str) -> None:
        if name == "ref":
            git(root, "update-ref", "refs/heads/main", other)

    with pytest.raises(LandingRefused, match="main was changed by somebody else meanwhile"):
        await Landing(root, step=step).apply("p1", ready.patch, ready.base, way=COMMIT)
    assert git(root, "rev-parse", "HEAD").strip() == other
    assert files(root) == start
    assert git(root, "status", "--porcelain") == ""


# Undo of a commit --------------------------------------------------------------------------------


async def test_a_commit_is_taken_back_by_a_commit_that_says_so(ready: Scene) -> None:
    commit = await land(ready)
    undone = await Landing(ready.workspace).undo("p1")
    root = ready.workspace
    assert undone.action is Action.UNDO
    assert undone.commit == git(root, "rev-parse", "HEAD").strip()
    assert git(root, "diff", "HEAD~2", "HEAD") == ""
    assert git(root, "status", "--porcelain") == ""
    assert message(root).startswith('Revert "Count from one"')
    assert trailers(root)["Reverts"] == commit
    assert await Landing(root).undo("p1") == undone
    assert git(root, "rev-list", "--count", "HEAD") == "3\n"


async def test_what_was_committed_and_edited_since_is_kept_by_the_undo(ready: Scene) -> None:
    await land(ready)
    root = ready.workspace
    text = root / "text.txt"
    text.write_text(text.read_text().replace("1\n", "one, committed\n"))
    commit_all(root, "mine")
    text.write_text(text.read_text().replace("4\n", "four, not committed\n"))
    await Landing(root).undo("p1")
    committed = TEN.replace("1\n", "one, committed\n")
    assert git(root, "show", "HEAD:text.txt") == committed
    assert text.read_text() == committed.replace("4\n", "four, not committed\n")
    assert git(root, "status", "--porcelain") == " M text.txt\n"


async def test_an_undo_that_later_commits_stand_on_is_refused_and_changes_nothing(
    ready: Scene,
) -> None:
    await land(ready)
    root = ready.workspace
    text = root / "text.txt"
    text.write_text(text.read_text().replace("seven\n", "seven and a half\n"))
    commit_all(root, "mine")
    text.write_text(text.read_text().replace("seven and a half\n", "seven\n"))
    before = everything(root)
    with pytest.raises(ApplyConflict, match=r"does not fit your last commit: text\.txt"):
        await Landing(root).undo("p1")
    assert everything(root) == before


async def test_a_commit_that_was_rebased_can_still_be_taken_back(ready: Scene) -> None:
    await land(ready)
    root = ready.workspace
    git(root, "commit", "-q", "--amend", "-m", "in my own words")
    await Landing(root).undo("p1")
    assert git(root, "diff", "HEAD~2", "HEAD") == ""


async def test_a_commit_that_the_user_dropped_needs_no_other_to_be_taken_back(ready: Scene) -> None:
    await land(ready)
    root = ready.workspace
    git(root, "reset", "-q", "--soft", "HEAD~1")
    git(root, "reset", "-q")
    undone = await Landing(root).undo("p1")
    assert undone.commit is None
    assert git(root, "status", "--porcelain") == ""


# A branch ----------------------------------------------------------------------------------------


async def test_a_branch_holds_the_commit_and_all_else_is_as_it_was(ready: Scene) -> None:
    root = ready.workspace
    (root / "text.txt").write_text("edited, in conflict\n")
    (root / "keep.txt").write_text("staged\n")
    git(root, "add", "keep.txt")
    before = everything(root)
    receipt = await Landing(root).apply("p1", ready.patch, ready.base, way=BRANCH)
    now = everything(root)
    for untouched in ("files", "folders", "index", "status", "head", "lock", "ours"):
        assert now[untouched] == before[untouched], untouched
    assert receipt.ref == "refs/heads/agentcanvas/prop-1"
    assert receipt.changed_files == ()
    assert git(root, "rev-parse", "agentcanvas/prop-1").strip() == receipt.commit
    changed = git(root, "diff", "--name-only", "--no-renames", "main", "agentcanvas/prop-1")
    assert changed.split() == TOUCHED
    assert trailers(root, "agentcanvas/prop-1")["Run"] == "run-1"
    git(root, "fsck", "--strict")


@pytest.mark.parametrize(
    "name", ["", "-x", "a..b", "a b", "x.lock", "@{-1}", "HEAD~1", "a/", "refs heads", "a\nb"]
)
async def test_a_name_that_is_none_for_a_branch_is_refused(ready: Scene, name: str) -> None:
    await refused(ready, LandingRefused, "not a name that git allows", Branch(name, MESSAGE))


async def test_a_branch_that_exists_is_not_touched(ready: Scene) -> None:
    git(ready.workspace, "branch", "agentcanvas/prop-1")
    await refused(ready, LandingRefused, "There is a branch agentcanvas/prop-1 already", BRANCH)


async def test_a_branch_is_taken_back_while_it_is_as_it_was_made(ready: Scene) -> None:
    root = ready.workspace
    before = everything(root)
    await land(ready, BRANCH)
    await Landing(root).undo("p1")
    assert everything(root) == before
    await land(ready, BRANCH, "p2")
    tree = git(root, "commit-tree", "HEAD^{tree}", "-p", BRANCH.name, "-m", "more").strip()
    git(root, "update-ref", f"refs/heads/{BRANCH.name}", tree)
    before = everything(root)
    with pytest.raises(LandingRefused, match="holds more by now"):
        await Landing(root).undo("p2")
    assert everything(root) == before


async def test_a_branch_that_is_checked_out_is_not_taken_away(ready: Scene) -> None:
    await land(ready, BRANCH)
    git(ready.workspace, "checkout", "-q", BRANCH.name)
    before = everything(ready.workspace)
    with pytest.raises(LandingRefused, match="is checked out at"):
        await Landing(ready.workspace).undo("p1")
    assert everything(ready.workspace) == before
    git(ready.workspace, "checkout", "-q", "main")
    git(ready.workspace, "branch", "-q", "-D", BRANCH.name)
    assert (await Landing(ready.workspace).undo("p1")).commit is None


# Messages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["proposal_id", "run_id", "agent_id"])
async def test_a_name_cannot_bring_trailers_of_its_own(ready: Scene, field: str) -> None:
    names = {"proposal_id": "p", "run_id": "r", "agent_id": "a", field: "x\nProposal: other"}
    forged = Commit(Message(summary="s", **names))
    await refused(ready, ValidationError, "must be one plain line", forged)


@settings(max_examples=200)
@given(st.text(max_size=300))
def test_any_summary_makes_a_message_with_one_subject_and_our_trailers_last(summary: str) -> None:
    told = Message(summary=summary, proposal_id="p", run_id="r", agent_id="a")
    subject, blank, *_ = told.text.split("\n")
    assert 0 < len(subject) <= 72
    assert blank == ""
    assert told.text.endswith("\n\nProposal: p\nRun: r\nAgent: a\n")
    assert "\0" not in told.text
    told.text.encode()


# Any trees ---------------------------------------------------------------------------------------

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n"]), max_size=4).map("".join)
TREES = st.dictionaries(st.sampled_from(["f", "g", "d/h", "d/i"]), LINES, min_size=1, max_size=4)


@settings(max_examples=10)
@given(TREES, TREES, TREES, st.lists(st.sampled_from(["f", "g", "d/h", "d/i"]), unique=True))
async def test_whatever_was_committed_staged_or_edited_nothing_of_it_is_lost(
    tmp_path_factory: pytest.TempPathFactory,
    before: Files,
    after: Files,
    mine: Files,
    staged: list[str],
) -> None:
    folder = tmp_path_factory.mktemp("commit")
    patch = diff(folder / "diff", before, after)
    if not patch:
        return
    workspace = write_files(init(folder / "workspace"), before)
    commit_all(workspace)
    for name in before:
        (workspace / name).unlink()
    write_files(workspace, mine)
    for name in staged:
        git(workspace, "add", "-A", "--", name, fine=True)
    base = write_files(folder / "base", before)
    start, index = everything(workspace), git(workspace, "ls-files", "--stage").splitlines()
    landing = Landing(workspace)
    try:
        receipt = await landing.apply("p1", patch, base, way=COMMIT)
    except ApplyConflict:
        assert everything(workspace) == start
        return
    assert receipt.commit is not None
    committed = {
        name: git(workspace, "show", f"HEAD:{name}")
        for name in git(workspace, "ls-tree", "-r", "--name-only", "HEAD").split()
    }
    assert committed == after, "the commit is the proposal on top of the last commit"
    touched = {file.path for file in receipt.changed_files} | {
        name for name in {*before, *after} if before.get(name) != after.get(name)
    }
    now = git(workspace, "ls-files", "--stage").splitlines()
    assert [row for row in now if row.split("\t")[1] not in touched] == [
        row for row in index if row.split("\t")[1] not in touched
    ]
    assert git(workspace, "diff", "--cached", "--name-only", "--", *touched) == ""
    await landing.undo("p1")
    assert files(workspace) == start["files"]
    assert git(workspace, "diff", "HEAD~2", "HEAD") == ""


@pytest.mark.parametrize("way", [Worktree(), COMMIT, BRANCH], ids=lambda way: type(way).__name__)
def test_the_ways_are_told_apart_on_the_wire(way: Way) -> None:
    assert msgspec.json.Decoder(Worktree | Commit | Branch).decode(msgspec.json.encode(way)) == way
