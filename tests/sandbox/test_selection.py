"""Which files make up a base, and what is said about those that do not (D7, S3)."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentcanvas.errors import PathRefused, SandboxError
from agentcanvas.proposals.apply import Landing
from agentcanvas.sandbox import selection
from agentcanvas.sandbox.changes import Change, Status
from agentcanvas.sandbox.diff import LARGEST_FILE, make_patch
from agentcanvas.sandbox.generation import edits_since, load_generation, take_generation
from agentcanvas.sandbox.globs import covered, fixed_part
from agentcanvas.sandbox.prepare import prepare_sandbox
from agentcanvas.sandbox.private_git import make_private_git, object_folders
from agentcanvas.sandbox.secret_names import looks_secret
from agentcanvas.sandbox.selection import HUGE, choice_of, select
from tests.sandbox.conftest import RUN, git, named, tree_of, write
from tests.sandbox.digging import dig
from tests.sandbox.ordinary_user import as_ordinary_user

pytestmark = pytest.mark.req("D7", "S3")


def with_submodule(workspace: Path, tmp_path: Path) -> Path:
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    write(inner, {"lib.py": "one\n", ".gitignore": "*.o\n"})
    git(inner, "add", "-A")
    git(inner, "commit", "-qm", "inner")
    allowed = ("-c", "protocol.file.allow=always")
    git(workspace, *allowed, "submodule", "add", "-q", str(inner), "third/sub")
    git(workspace, "commit", "-qm", "with a submodule")
    return workspace / "third/sub"


# Globs and what is brought -----------------------------------------------------------------------


async def test_only_what_the_globs_cover_is_taken_now_and_later(workspace: Path) -> None:
    base = await take_generation(workspace, RUN, only=["src/**/*.py", "*.md"])
    assert set(base.seen) == {b"README.md", b"src/app.py", b"src/deep/er/mod.py"}
    write(workspace, {"tool.sh": "changed", "src/new.py": "n"})
    assert await edits_since(base) == (Change(b"src/new.py", Status.ADDED),)
    later = await take_generation(workspace, RUN, previous=base)
    assert set(later.seen) == {*base.seen, b"src/new.py"}
    assert await load_generation(workspace, RUN, 1) == later


async def test_ignored_files_are_brought_by_glob_now_and_later(workspace: Path) -> None:
    write(
        workspace, {"build/gen/a.ts": "a", "build/gen/b.ts": "b", "build/c.ts": "c", "x.log": "l"}
    )
    write(workspace, {".env.test": "URL=local\n", ".gitignore": "*.log\nbuild/\n.env*\n"})
    base = await take_generation(workspace, RUN, bring=["build/gen/**", ".env.test"])
    brought = {b"build/gen/a.ts", b"build/gen/b.ts", b".env.test"}
    assert brought <= base.seen.keys()
    assert b"build/c.ts" not in base.seen
    write(workspace, {"build/gen/a.ts": "changed"})
    assert await edits_since(base) == (Change(b"build/gen/a.ts", Status.MODIFIED),)
    later = await take_generation(workspace, RUN, previous=base)
    assert brought <= later.seen.keys()
    sandbox = await prepare_sandbox(later, "coder")
    assert (sandbox.work_dir / ".env.test").read_text() == "URL=local\n"


async def test_a_whole_ignored_folder_is_brought_by_its_name(workspace: Path) -> None:
    write(workspace, {"build/a": "a", "build/deep/b": "b"})
    base = await take_generation(workspace, RUN, bring=["build"])
    assert {b"build/a", b"build/deep/b"} <= base.seen.keys()


async def test_what_may_hold_secrets_is_brought_only_by_its_full_name(workspace: Path) -> None:
    write(workspace, {".gitignore": ".env*\nkeys/\n", ".env": "TOKEN=1", ".env.test": "t"})
    write(workspace, {"keys/server.pem": "p", "keys/readme.txt": "r"})
    base = await take_generation(workspace, RUN, bring=[".env*", "keys"])
    assert {b".env.test", b"keys/readme.txt"} <= base.seen.keys()
    assert not {b".env", b"keys/server.pem"} & base.seen.keys()
    reason = "it may hold secrets; agents get it if it is named in full"
    assert f".env is left out: {reason}" in base.notes
    assert f"keys/server.pem is left out: {reason}" in base.notes
    named_in_full = select(workspace, choice_of(bring=[".env"]))
    assert b".env" in named_in_full.stamps


async def test_a_pattern_does_not_follow_a_link_out_of_the_workspace(
    workspace: Path, tmp_path: Path
) -> None:
    write(tmp_path, {"elsewhere/private.txt": "p", "elsewhere/deep/.env": "S"})
    write(workspace, {"build/own.txt": "o"})
    (workspace / "build/lnk").symlink_to(tmp_path / "elsewhere")
    bring = ["build/lnk/**", "build/lnk/private.txt", "build/*.txt"]
    base = await take_generation(workspace, RUN, bring=bring)
    assert {path for path in base.seen if path.startswith(b"build")} == {b"build/own.txt"}
    assert "build/lnk/** is left out: a link leads there" in base.notes
    assert not any(".env" in note for note in base.notes)


async def test_a_workspace_whose_path_breaks_lines_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "two\nlines"
    folder.mkdir()
    git(folder, "init", "-q")
    with pytest.raises(SandboxError, match="line break in it; rename"):
        await take_generation(folder, RUN)


async def test_a_pattern_that_brings_nothing_is_told_and_not_an_error(workspace: Path) -> None:
    base = await take_generation(workspace, RUN, bring=["generated/*.py", ".env.test"])
    assert "There is nothing to bring for 'generated/*.py'" in base.notes
    assert "There is nothing to bring for '.env.test'" in base.notes


@pytest.mark.parametrize(
    "name", ["../x", "/etc/*", ".git/**", "node_modules/x", "a/../../b", "dist"]
)
@pytest.mark.parametrize("how", ["only", "bring"])
async def test_a_pattern_that_leads_elsewhere_is_refused_by_name(
    workspace: Path, name: str, how: str
) -> None:
    only, bring = ([name], None) if how == "only" else (None, [name])
    with pytest.raises(PathRefused, match=r"internal|absolute|contains"):
        await take_generation(workspace, RUN, only=only, bring=bring)


async def test_nothing_internal_is_brought_by_a_wide_pattern(workspace: Path) -> None:
    write(workspace, {"build/node_modules/a.js": "a", "build/.git/config": "c", "build/b": "b"})
    base = await take_generation(workspace, RUN, bring=["**"])
    assert b"build/b" in base.seen
    assert not any(b".git/" in path or b"node_modules" in path for path in base.seen)


async def test_a_sandbox_is_given_what_its_globs_cover(workspace: Path) -> None:
    write(workspace, {"odd[1].txt": "o", "a*b.txt": "a"})
    base = await take_generation(workspace, RUN)
    sandbox = await prepare_sandbox(base, "coder", ["src/**/*.py", "odd[1].txt", "a*b.txt"])
    assert set(tree_of(sandbox.work_dir)) == {
        b"src/app.py",
        b"src/deep/er/mod.py",
        b"odd[1].txt",
        b"a*b.txt",
    }
    with pytest.raises(PathRefused, match="check the pattern"):
        await prepare_sandbox(base, "other", ["*.rs"])


GLOB_PARTS = st.sampled_from(["a", "b", "*", "?", "**", "{a,b}", "a*", ".", "[a]", "ab"])
NAMES = st.sampled_from(["a", "b", "ab", "[a]", ".", "c.py"])


@given(
    glob=st.lists(GLOB_PARTS, min_size=1, max_size=4).map("/".join),
    path=st.lists(NAMES.filter(lambda n: n != "."), min_size=1, max_size=4).map("/".join),
)
def test_all_that_a_glob_covers_lies_below_its_fixed_part(glob: str, path: str) -> None:
    """A walk that begins at the fixed part misses nothing."""
    start = fixed_part(glob.encode())
    if start and covered(path.encode(), (glob.encode(),)):
        assert (path + "/").encode().startswith(start + b"/")


SECRET = ".env .env.local prod.env a/id_rsa id_ed25519.pub x.PEM .npmrc my-secrets.yml .aws/config"
SECRET += " k8s/secrets/a.yml terraform.tfvars service-account.json .netrc api_key.txt"
ORDINARY = ".env.test .env.example env.py keyboard.py src/main.rs a.pub monkey.key.md"


@pytest.mark.parametrize("name", SECRET.split())
def test_names_for_secrets_are_known(name: str) -> None:
    assert looks_secret(name.encode())


@pytest.mark.parametrize("name", ORDINARY.split())
def test_other_names_are_not_taken_for_secrets(name: str) -> None:
    assert not looks_secret(name.encode())


async def test_secrets_that_git_does_not_ignore_go_along_and_are_told(workspace: Path) -> None:
    write(workspace, {".env": "TOKEN=1"})
    base = await take_generation(workspace, RUN)
    assert b".env" in base.seen
    assert any(note.startswith(".env: may hold secrets") for note in base.notes)


# Repositories inside -----------------------------------------------------------------------------


async def test_the_files_of_a_submodule_go_along_and_its_commit_stays(
    workspace: Path, tmp_path: Path
) -> None:
    sub = with_submodule(workspace, tmp_path)
    write(sub, {"loose.py": "untracked\n", "x.o": "ignored"})
    before = git(workspace, "ls-files", "-s", "third/sub")
    base = await take_generation(workspace, RUN)
    assert {b"third/sub/lib.py", b"third/sub/loose.py", b"third/sub/.gitignore"} <= base.seen.keys()
    assert not {b"third/sub", b"third/sub/x.o", b"third/sub/.git"} & base.seen.keys()
    assert (
        "third/sub is a repository of its own: its files go along, its commit does not"
        in base.notes
    )
    sandbox = await prepare_sandbox(base, "coder")
    await make_private_git(base, sandbox.work_dir, object_folders(base))
    write(sandbox.work_dir, {"third/sub/lib.py": "two\n", "third/sub/.git/config": "planted"})
    patch = await make_patch(sandbox)
    assert [change.path for change in patch.changes] == [b"third/sub/lib.py"]
    assert b"160000" not in patch.text
    await Landing(workspace).apply("t1", patch.text, base.tree)
    assert (sub / "lib.py").read_text() == "two\n"
    assert git(workspace, "ls-files", "-s", "third/sub") == before
    assert git(sub, "status", "--porcelain") == b" M lib.py\n?? loose.py\n"


async def test_a_submodule_that_is_not_checked_out_is_told_and_not_seen_as_deleted(
    workspace: Path, tmp_path: Path
) -> None:
    with_submodule(workspace, tmp_path)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(workspace), str(clone))
    base = await take_generation(clone, RUN)
    assert "third/sub is left out: a submodule that is not checked out" in base.notes
    sandbox = await prepare_sandbox(base, "coder")
    assert (await make_patch(sandbox)).changes == ()


async def test_a_repository_that_lies_in_the_workspace_goes_along_as_files(workspace: Path) -> None:
    nested = workspace / "nested"
    write(nested, {"a.py": "a", "deeper/b.py": "b"})
    git(nested, "init", "-q")
    git(nested / "deeper", "init", "-q")
    base = await take_generation(workspace, RUN)
    assert {b"nested/a.py", b"nested/deeper/b.py"} <= base.seen.keys()
    assert not any(b".git/" in path for path in base.seen)


async def test_a_nested_repository_that_git_cannot_read_is_told(workspace: Path) -> None:
    write(workspace, {"nested/a.py": "a"})
    git(workspace / "nested", "init", "-q")
    git(workspace / "nested", "config", "core.repositoryformatversion", "99")
    base = await take_generation(workspace, RUN)
    assert "nested is left out: a repository of its own that git cannot read" in base.notes


async def test_a_linked_worktree_is_a_workspace_like_any_other(
    workspace: Path, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    git(workspace, "worktree", "add", "-q", "-b", "side", str(linked))
    write(linked, {"src/app.py": "side\n"})
    base = await take_generation(linked, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    await make_private_git(base, sandbox.work_dir, object_folders(base))
    assert git(sandbox.work_dir, "branch", "--show-current") == b"side\n"
    assert git(sandbox.work_dir, "status", "--porcelain") == b" M src/app.py\n"
    assert tree_of(sandbox.work_dir) == {
        path: content for path, content in tree_of(linked).items() if path != b".git"
    }


async def test_another_working_tree_inside_the_workspace_is_left_out(workspace: Path) -> None:
    git(workspace, "worktree", "add", "-q", "-b", "side", str(workspace / "trees/side"))
    base = await take_generation(workspace, RUN)
    assert "trees/side is left out: another working tree of this repository" in base.notes
    assert not any(path.startswith(b"trees/") for path in base.seen)


async def test_a_tracked_file_that_became_a_folder_brings_the_files_in_it(workspace: Path) -> None:
    (workspace / "README.md").unlink()
    write(workspace, {"README.md/chapter": "one"})
    base = await take_generation(workspace, RUN)
    assert b"README.md/chapter" in base.seen
    assert base.notes == ()


# Sparse checkout, LFS ----------------------------------------------------------------------------


@pytest.mark.parametrize("sparse_index", ["true", "false"])
async def test_what_a_sparse_checkout_leaves_out_is_neither_read_nor_deleted(
    workspace: Path, sparse_index: str
) -> None:
    write(workspace, {"big/a.bin": "a", "big/deep/b.bin": "b"})
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "big")
    git(workspace, "config", "index.sparse", sparse_index)
    git(workspace, "sparse-checkout", "set", "--cone", "src")
    assert not (workspace / "big").exists()
    base = await take_generation(workspace, RUN)
    assert not any(path.startswith(b"big/") for path in base.seen)
    assert "2 files are not checked out (sparse checkout)" in base.notes
    assert await edits_since(base) == ()
    sandbox = await prepare_sandbox(base, "coder")
    await make_private_git(base, sandbox.work_dir, object_folders(base))
    assert git(sandbox.work_dir, "status", "--porcelain") == b""
    write(sandbox.work_dir, {"src/app.py": "changed\n"})
    patch = await make_patch(sandbox)
    assert [change.path for change in patch.changes] == [b"src/app.py"]


async def test_lfs_pointers_are_kept_as_they_are_and_told(workspace: Path) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 12345678\n"
    write(workspace, {".gitattributes": "*.bin filter=lfs diff=lfs -text\n", "model.bin": pointer})
    base = await take_generation(workspace, RUN)
    assert (base.tree / "model.bin").read_text() == pointer
    assert any(note.startswith("model.bin: Git LFS pointers") for note in base.notes)
    (workspace / ".gitattributes").unlink()
    assert not any("LFS" in note for note in select(workspace).notes)


# Names and kinds of files ------------------------------------------------------------------------

ODD = st.binary(min_size=1, max_size=40).filter(
    # A .git that is none is refused by name (below).
    lambda name: not set(name) & {0, 0x2F} and name not in {b".", b"..", b".git"}
)


@pytest.mark.parametrize("with_git", [True, False])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(st.lists(ODD, min_size=1, max_size=3).map(b"/".join), max_size=8))
async def test_every_name_that_a_disk_can_hold_comes_through(
    tmp_path_factory: pytest.TempPathFactory, with_git: bool, names: list[bytes]
) -> None:
    workspace = tmp_path_factory.mktemp("odd")
    if with_git:
        git(workspace, "init", "-q")
    for name in names:
        path = named(workspace, name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(name)
        except OSError:
            continue  # a file where a folder is needed, or the other way round
    chosen = select(workspace)
    base = await take_generation(workspace, RUN)
    assert set(base.seen) == set(chosen.stamps)
    assert tree_of(base.tree) == {
        path: content for path, content in tree_of(workspace).items() if path in base.seen
    }
    sandbox = await prepare_sandbox(base, "coder")
    assert tree_of(sandbox.work_dir) == tree_of(base.tree)
    assert (await make_patch(sandbox)).changes == ()
    assert await edits_since(base) == ()


async def test_a_git_file_that_leads_nowhere_is_refused_by_name(folder: Path) -> None:
    write(folder, {".git": "nonsense", "a": "a"})
    with pytest.raises(SandboxError, match="git cannot read this repository"):
        await take_generation(folder, RUN)


async def test_names_that_differ_in_case_only_are_kept_and_told(workspace: Path) -> None:
    write(workspace, {"readme.md": "small", "Straße": "s", "STRASSE": "S"})
    base = await take_generation(workspace, RUN)
    if (workspace / "README.md").read_text() == "small":
        pytest.skip("this disk ignores case")
    assert {b"readme.md", b"README.md"} <= base.seen.keys()
    clash = "README.md and readme.md differ in case only: on some disks they are one file"
    assert clash in base.notes
    sandbox = await prepare_sandbox(base, "coder")
    assert (sandbox.work_dir / "readme.md").read_text() == "small"
    assert (sandbox.work_dir / "README.md").read_text() == "hello\n"


async def test_on_a_disk_that_ignores_case_one_name_is_taken(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a disk shows one file under both names; a second name of the same file is as close."""
    (workspace / "readme.md").hardlink_to(workspace / "README.md")
    monkeypatch.setattr(selection, "_is_spelt", lambda _, path: path != b"readme.md")
    chosen = select(workspace)
    assert b"README.md" in chosen.stamps
    assert b"readme.md" not in chosen.stamps
    assert any(note.startswith("readme.md is left out: this disk") for note in chosen.notes)


async def test_pipes_sockets_and_devices_are_left_out_and_told(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    kinds = ["pipe", "sock"]
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(folder)  # the path of a socket is short
        try:
            listener.bind("sock")
        finally:
            os.chdir(here)
        if os.geteuid() == 0:
            os.mknod(folder / "zero", 0o600 | 0o020000, os.makedev(1, 5))
            kinds.append("zero")
        base = await take_generation(folder, RUN)
    assert set(base.notes) == {f"{kind} is left out: neither a file nor a link" for kind in kinds}


async def test_hard_links_become_files_of_their_own(workspace: Path, tmp_path: Path) -> None:
    write(tmp_path, {"outside": "shared"})
    (workspace / "one").hardlink_to(tmp_path / "outside")
    (workspace / "two").hardlink_to(tmp_path / "outside")
    base = await take_generation(workspace, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    (sandbox.work_dir / "one").write_text("changed")
    assert (sandbox.work_dir / "two").read_text() == "shared"
    assert (tmp_path / "outside").read_text() == "shared"
    assert [c.path for c in (await make_patch(sandbox)).changes] == [b"one"]


async def test_a_huge_file_is_told_and_its_holes_cost_nothing(workspace: Path) -> None:
    assert HUGE == LARGEST_FILE
    with (workspace / "disk.img").open("wb") as file:
        file.write(b"begin")
        file.seek(3 * HUGE)
        file.write(b"end")
    base = await take_generation(workspace, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    assert any(note.startswith("disk.img: over 20 MB") for note in base.notes)
    for copy in (base.tree / "disk.img", sandbox.work_dir / "disk.img"):
        status = copy.stat()
        assert status.st_size == 3 * HUGE + 3
        assert status.st_blocks * 512 < 1_000_000
    with (sandbox.work_dir / "disk.img").open("rb") as file:
        assert file.read(6) == b"begin\0"
        file.seek(3 * HUGE - 1)
        assert file.read() == b"\0end"


async def test_paths_too_long_for_a_sandbox_are_left_out_and_told(folder: Path) -> None:
    dig(folder, 18, name="d" * 240)
    base = await take_generation(folder, RUN)
    assert 10 < len(base.seen) < 18
    assert any("its path is too long" in note for note in base.notes)
    sandbox = await prepare_sandbox(base, "coder")
    assert (await make_patch(sandbox)).changes == ()


async def test_deep_trees_come_through(workspace: Path) -> None:
    deep = "/".join(["d"] * 400) + "/file"
    write(workspace, {deep: "deep"})
    base = await take_generation(workspace, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    assert (sandbox.work_dir / deep).read_text() == "deep"


UNREADABLE = """
import os, sys, anyio
from pathlib import Path
from agentcanvas.sandbox.generation import take_generation
base = anyio.run(take_generation, Path(sys.argv[1]), "run_20260219_100000")
print(*sorted(map(os.fsdecode, base.seen)), *base.notes, sep="\\n")
"""


@pytest.mark.parametrize("with_git", [True, False])
def test_what_cannot_be_read_is_left_out_and_told(folder: Path, with_git: bool) -> None:
    write(folder, {"a.txt": "a", "closed.txt": "c", "shut/b.txt": "b", "dark/c.txt": "c"})
    if with_git:
        git(folder, "init", "-q")
        git(folder, "add", "-A")
    (folder / "closed.txt").chmod(0)
    (folder / "shut").chmod(0)
    (folder / "dark").chmod(0o400)  # names can be listed, files cannot be looked at
    try:
        said = as_ordinary_user(UNREADABLE, str(folder)).splitlines()
    finally:
        for name in ("shut", "dark"):
            (folder / name).chmod(0o700)
    assert said[0] == "a.txt"
    assert "closed.txt is left out: it cannot be read" in said
    assert "dark/c.txt is left out: it cannot be read" in said
    if not with_git:
        assert "shut is left out: it cannot be read" in said


def test_many_files_with_one_reason_are_told_in_one_sentence(folder: Path) -> None:
    for number in range(50):
        os.mkfifo(folder / f"pipe{number:02}")
    (note,) = select(folder).notes
    assert note.endswith("and 47 more are left out: neither a file nor a link")
