"""A repository of its own inside work/ and the evidence copy (D10).

Coding tools and build tools ask git where they are. They find the user's HEAD, index and tags, the
objects by reference, and neither remotes, hooks nor settings of the user. Nothing that happens in
it is read back: the diff does not see it, and no git of ours ever runs in it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio.to_thread

from agentcanvas.sandbox import git
from agentcanvas.sandbox.generation import Generation
from agentcanvas.sandbox.selection import Repository
from agentcanvas.sandbox.trees import remove_path

# The index is the user's: its mtimes and sizes hold for the copy too, inodes and ctimes do not.
_CONFIG = """\
[core]
\trepositoryformatversion = {version}
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
\ttrustctime = false
\tcheckStat = minimal
\tfsmonitor = false
\tuntrackedCache = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[user]
\tname = agent
\temail = agent@agentcanvas.invalid
"""
_SHA256 = "[extensions]\n\tobjectformat = sha256\n"


async def make_private_git(base: Generation, tree: Path, objects: Sequence[Path]) -> bool:
    """Put a fresh private repository into ``tree``; False where the workspace has none.

    ``objects`` are the folders of ``object_folders`` *as the confined process will see them*.
    """
    return await anyio.to_thread.run_sync(partial(_make, base, tree, objects))


def object_folders(base: Generation) -> tuple[Path, ...]:
    """List the object stores that the repository of a generation reads from, its own first."""
    found: list[Path] = []
    waiting = [base.repository.objects] if base.repository else []
    while waiting:
        folder = waiting.pop(0)
        if folder in found or not folder.is_dir():
            continue
        found.append(folder)
        alternates = folder / "info" / "alternates"
        lines = alternates.read_text("utf-8", "surrogateescape") if alternates.is_file() else ""
        named = (line for line in lines.splitlines() if line and not line.startswith("#"))
        waiting += [(folder / line).resolve() for line in named]
    return tuple(found)


def _make(base: Generation, tree: Path, objects: Sequence[Path]) -> bool:
    repository = base.repository
    if not repository:
        return False
    # Made outside the tree, because git must not run where an agent could have written.
    growing = Path(tempfile.mkdtemp(prefix="git-", dir=tree.parent))
    try:
        _lay_out(growing, repository, object_folders(base))
        head = _head_commit(growing, repository)
        _write_refs(growing, base, head)
        _write_index(growing, base, head)
        _refer_to(growing, objects)
        remove_path(tree / ".git")
        growing.chmod(0o755)
        growing.rename(tree / ".git")
    finally:
        remove_path(growing)
    return True


def _lay_out(growing: Path, repository: Repository, objects: Sequence[Path]) -> None:
    for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
        (growing / folder).mkdir(parents=True)
    sha256 = repository.object_format == "sha256"
    config = _CONFIG.format(version=1 if sha256 else 0) + (_SHA256 if sha256 else "")
    (growing / "config").write_text(config)
    (growing / "HEAD").write_text("ref: refs/heads/main\n")
    _refer_to(growing, objects)
    shallow = repository.objects.parent / "shallow"
    if shallow.is_file():
        shutil.copy(shallow, growing / "shallow")


def _refer_to(growing: Path, objects: Sequence[Path]) -> None:
    lines = b"".join(os.fsencode(folder) + b"\n" for folder in objects)
    (growing / "objects/info/alternates").write_bytes(lines)


def _head_commit(growing: Path, repository: Repository) -> str | None:
    """Give the commit to stand on; for a folder inside a larger repository, one of that folder."""
    if not repository.prefix or not repository.head:
        return repository.head
    tree = f"{repository.head}:{repository.prefix.rstrip('/')}"
    known = git.plumbing(["rev-parse", "-q", "--verify", tree], git_dir=growing, fine=(0, 1))
    if not known:
        return None
    told = git.plumbing(
        ["commit-tree", known.decode().strip(), "-m", f"{repository.prefix} at {repository.head}"],
        git_dir=growing,
    )
    return told.decode().strip()


def _write_refs(growing: Path, base: Generation, head: str | None) -> None:
    repository = base.repository
    assert repository
    branch = os.fsencode(repository.branch or "")
    refs = []
    if branch.startswith(b"refs/heads/"):
        (growing / "HEAD").write_bytes(b"ref: " + branch + b"\n")
        if head:
            refs.append(head.encode() + b" " + branch)
    elif head:
        (growing / "HEAD").write_text(head + "\n")
    if base.tags.is_file():
        refs += base.tags.read_bytes().splitlines()
    if refs:
        (growing / "packed-refs").write_bytes(b"".join(ref + b"\n" for ref in refs))


def _write_index(growing: Path, base: Generation, head: str | None) -> None:
    if base.index.is_file():
        shutil.copy2(base.index, growing / "index")
    elif head:
        git.plumbing(["read-tree", head], git_dir=growing)
