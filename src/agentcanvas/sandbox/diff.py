"""The patch: what an agent changed in work/, in the form that ``git apply`` takes (S5, D14).

The stat manifest names the suspects, so that a diff costs what changed and not the tree. Only
changed contents go to git, through a scratch repository of ours: no attributes, filters, hooks or
configuration of the user or of the agent take part. Whether a patch may land is left to
``agentcanvas.proposals``.
"""

# ruff: noqa: PTH101, PTH115, PTH123 -- paths are bytes here; pathlib has only text

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import anyio.to_thread
import msgspec

from agentcanvas.errors import SandboxError, Unpatchable
from agentcanvas.sandbox import git
from agentcanvas.sandbox.changes import Change, Side, Status, changes_between, git_mode
from agentcanvas.sandbox.folders import folders_of
from agentcanvas.sandbox.generation import told
from agentcanvas.sandbox.limits import shown_bytes
from agentcanvas.sandbox.manifest import Manifest, differing, is_patchable, scan
from agentcanvas.sandbox.notes import some_of
from agentcanvas.sandbox.paths import shown
from agentcanvas.sandbox.prepare import Sandbox
from agentcanvas.sandbox.selection import HUGE
from agentcanvas.sandbox.trees import make_folders, passing_folder

LARGEST_FILE = HUGE
"""Git compares in memory; a sparse file of gigabytes would cost minutes and then fail."""

LARGEST_CHANGE = 200 * 1024 * 1024
"""Of all changed files, before and after together: they are in memory at once, holes included."""

_LARGEST_IGNORE_FILE = 1024 * 1024
_LARGEST_RULES = 16 * 1024 * 1024

_BY_PRODUCTS = frozenset(
    {b"__pycache__", b".pytest_cache", b".mypy_cache", b".ruff_cache", b".DS_Store"}
)
"""What tools leave wherever they run, in repositories without a .gitignore as well."""

# Each option is also a setting that could change the output; said here, it is the same everywhere.
_AS_A_PATCH = (
    "-r",
    "--patch",
    "--binary",
    "--full-index",
    "--no-renames",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--unified=3",
)


class Patch(msgspec.Struct, frozen=True):
    """The change of one sandbox; ``text`` is empty when there is none."""

    text: bytes
    changes: tuple[Change, ...] = ()
    notes: tuple[str, ...] = ()


async def make_patch(sandbox: Sandbox) -> Patch:
    """Compare work/ with its base; the agent's processes must be gone."""
    try:
        return await anyio.to_thread.run_sync(partial(_make_patch, sandbox))
    except OSError as error:
        raise SandboxError(
            f"What was changed in {sandbox.work_dir} cannot be read: {told(error)}"
        ) from error


def _make_patch(sandbox: Sandbox) -> Patch:
    now = scan(sandbox.work_dir, sandbox.base.not_compared)
    notes: list[str] = []
    suspects = differing(sandbox.filled, now)
    special = {path for path in suspects if path in now and not is_patchable(now[path][0])}
    notes += [f"{shown(path)} is left out: neither a file nor a link" for path in sorted(special)]
    with passing_folder("diff-", sandbox.paths.root) as folder:
        scratch = _scratch_repository(folder)
        ignored = _ignored(scratch, sandbox, suspects, now)
        if ignored:
            notes.append(f"{len(ignored)} new files are left out: ignored by a .gitignore")
        left_by_tools = {
            path
            for path in suspects
            if path not in sandbox.filled and path not in ignored and _is_by_product(path)
        }
        if left_by_tools:
            notes.append(f"{len(left_by_tools)} new files are left out: caches of tools")
        kept = [path for path in suspects if path not in ignored | special | left_by_tools]
        gone = [path for path in special if path in sandbox.filled]
        changes = _changes(sandbox, sorted([*kept, *gone]), now)
        text = _patch_text(scratch, sandbox, changes) if changes else b""
    return Patch(text, changes, tuple(notes))


def _changes(sandbox: Sandbox, suspects: Iterable[bytes], now: Manifest) -> tuple[Change, ...]:
    work = os.fsencode(sandbox.work_dir) + b"/"
    for path in suspects:
        _check_base(sandbox, path)
        stamp = now.get(path)
        if not stamp or not stat.S_ISREG(stamp[0]):
            continue
        if stamp[1] > LARGEST_FILE:
            raise Unpatchable(
                f"'{shown(path)}' has {shown_bytes(stamp[1])}, and a patch carries at most "
                f"{shown_bytes(LARGEST_FILE)} a file; remove it or have it ignored"
            )
        if not stamp[0] & stat.S_IRUSR:  # closed to its owner, but its owner is us
            os.chmod(work + path, stat.S_IMODE(stamp[0]) | stat.S_IRUSR)
    frozen, living = Side(sandbox.base.tree, sandbox.filled), Side(sandbox.work_dir, now)
    changes = changes_between(frozen, living, suspects)
    sizes = {c.path: _size(sandbox.filled, c.path) + _size(now, c.path) for c in changes}
    total = sum(sizes.values())
    if total > LARGEST_CHANGE:
        largest = sorted(sizes, key=lambda path: sizes[path], reverse=True)
        raise Unpatchable(
            f"The {len(changes)} changed files have {shown_bytes(total)}, and a patch carries at "
            f"most {shown_bytes(LARGEST_CHANGE)}; remove what is not part of the change or have it "
            f"ignored, such as {some_of(largest)}"
        )
    return changes


def _size(manifest: Manifest, path: bytes) -> int:
    stamp = manifest.get(path)
    return stamp[1] if stamp else 0


def _check_base(sandbox: Sandbox, path: bytes) -> None:
    """Compare with nothing but the frozen content: input/ shares its files."""
    seen = sandbox.base.seen.get(path)
    if not seen or path not in sandbox.filled:
        return
    status = os.lstat(os.fsencode(sandbox.base.tree) + b"/" + path)
    frozen = (git_mode(status.st_mode), status.st_size, status.st_mtime_ns)
    if frozen != (git_mode(seen[0]), seen[1], seen[2]):
        raise SandboxError(
            f"The frozen '{shown(path)}' of {sandbox.base.name} was changed; "
            "the turn has to be repeated on a new generation"
        )


def _scratch_repository(folder: Path) -> Path:
    """Make the least that git takes for a repository; `git init` would copy templates and hooks."""
    repository = folder / "scratch.git"
    (repository / "objects").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "HEAD").write_text("ref: refs/heads/none\n")
    (repository / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsync = none\n"
        "\tlogallrefupdates = false\n[fastimport]\n\tunpackLimit = 0\n"
        "[pack]\n\tcompression = 0\n"
    )
    return repository


def _patch_text(scratch: Path, sandbox: Sandbox, changes: Sequence[Change]) -> bytes:
    """Feed both sides of every change to git, and have it compare the two."""
    before = [c.path for c in changes if c.status is not Status.ADDED]
    after = [c.path for c in changes if c.status is not Status.DELETED]
    stream = _commit(b"refs/before", sandbox.base.tree, before)
    stream += _commit(b"refs/after", sandbox.work_dir, after)
    without_deltas = ["fast-import", "--quiet", "--done", "--depth=0"]
    git.plumbing(without_deltas, git_dir=scratch, stdin=stream + b"done\n")
    sides = ["refs/before", "refs/after", "--"]  # which no file has to be asked about
    return git.plumbing(["diff-tree", *_AS_A_PATCH, *sides], git_dir=scratch)


def _commit(ref: bytes, root: Path, paths: Iterable[bytes]) -> bytes:
    lines = [b"commit ", ref, b"\ncommitter a <a> 0 +0000\ndata 0\n"]
    for path in paths:
        full = os.fsencode(root) + b"/" + path
        mode = git_mode(os.lstat(full).st_mode)
        assert mode, "only files and links are compared"
        data = os.readlink(full) if mode == b"120000" else _content(full)
        lines += [b"M ", mode, b" inline ", _quoted(path), b"\ndata %d\n" % len(data), data, b"\n"]
    return b"".join(lines)


def _content(full: bytes) -> bytes:
    with open(os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
        return file.read()


def _quoted(path: bytes) -> bytes:
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'


def _ignored(
    scratch: Path, sandbox: Sandbox, suspects: Iterable[bytes], now: Manifest
) -> frozenset[bytes]:
    """Find the new files that the .gitignore files of work/ leave out: caches, builds, venvs.

    Git reads copies of those files in a tree of ours; it never runs where the agent could write.
    """
    added = [path for path in suspects if path in now and path not in sandbox.filled]
    rules = [path for path in now if path.endswith(b".gitignore") and _is_rule_file(path, now)]
    if not added or not rules:
        return frozenset()
    if (size := sum(now[path][1] for path in rules)) > _LARGEST_RULES:
        raise Unpatchable(
            f"The {len(rules)} .gitignore files have {shown_bytes(size)}, and at most "
            f"{shown_bytes(_LARGEST_RULES)} are looked at; remove those that nobody needs"
        )
    tree = scratch.parent / "rules"
    make_folders(tree, folders_of(rules))
    for path in rules:
        with open(os.fsencode(tree) + b"/" + path, "wb") as file:
            file.write(_content(os.fsencode(sandbox.work_dir) + b"/" + path))
    return git.ignored(added, git_dir=scratch, rules=tree)


def _is_by_product(path: bytes) -> bool:
    return not _BY_PRODUCTS.isdisjoint(path.split(b"/"))


def _is_rule_file(path: bytes, now: Manifest) -> bool:
    mode, size = now[path][:2]
    named = path.rpartition(b"/")[2] == b".gitignore"
    return named and stat.S_ISREG(mode) and size <= _LARGEST_IGNORE_FILE
