"""Which files of a workspace make up a base (D7).

Everything git tracks, and what it neither tracks nor ignores; a walk where there is no git; fewer
by ``only``, more by ``bring``. Internal folders (S3) and dependencies are no part of it. Copying
the files is left to ``generation``.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from agentcanvas.errors import PathRefused, SandboxError
from agentcanvas.sandbox import git
from agentcanvas.sandbox.dependencies import Dependency, find_dependencies, is_in
from agentcanvas.sandbox.globs import checked_glob, covered, fixed_part, is_plain
from agentcanvas.sandbox.listing import Listing, listed_by_git, listed_in, walked
from agentcanvas.sandbox.manifest import Manifest, is_patchable
from agentcanvas.sandbox.notes import Notes, some_of
from agentcanvas.sandbox.paths import internal_folder, shown, workspace_relative
from agentcanvas.sandbox.secret_names import looks_secret
from agentcanvas.sandbox.stamp import Stamp, stamp_of

HUGE = 20 * 1024 * 1024
"""A file over this size goes along, but a change to it is not handed in, and would not land."""

# A path must fit into PATH_MAX below the folders of a sandbox, too.
_LONGEST_PATH = 4096 - 400
_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\n"
_LARGEST_POINTER = 1024
_ANSWERS = 4


class Choice(msgspec.Struct, frozen=True):
    """What is chosen beyond the default.

    ``only`` and ``bring`` are globs: the first leaves out all they do not cover, the second adds
    files that git ignores. ``include`` are the very names of such files, which have to be there.
    """

    only: tuple[bytes, ...] = ()
    bring: tuple[bytes, ...] = ()
    include: tuple[bytes, ...] = ()


EVERYTHING = Choice()


def choice_of(
    *,
    only: Sequence[str | bytes] = (),
    bring: Sequence[str | bytes] = (),
    include: Sequence[str | bytes] = (),
) -> Choice:
    """Make a choice of what somebody wrote; names that lead elsewhere are refused."""
    return Choice(
        tuple(map(checked_glob, only)),
        tuple(map(checked_glob, bring)),
        tuple(map(workspace_relative, include)),
    )


@dataclass(frozen=True)
class Repository:
    """The user's repository around a workspace, as it was when the base was taken."""

    head: str | None
    branch: str | None
    git_dir: Path
    objects: Path
    prefix: str
    """Where the workspace is inside the repository; empty when it is the top."""
    object_format: str = "sha1"


@dataclass(frozen=True)
class Selection:
    """The chosen files with their stamps, what they depend on, and a sentence for what is not."""

    stamps: Manifest
    repository: Repository | None
    notes: tuple[str, ...]
    dependencies: tuple[Dependency, ...] = field(default=())


def select(workspace: Path, choice: Choice = EVERYTHING) -> Selection:
    """Choose the files of a workspace."""
    repository = find_repository(workspace)
    notes = Notes()
    listing = (
        listed_by_git(workspace)
        if repository
        else Listing(untracked=list(walked(workspace, notes)))
    )
    stamps = _stamped_with_nested(workspace, listing, repository, notes)
    found = find_dependencies(workspace, stamps, listing.tracked)
    _drop_dependencies(stamps, {each.path for each in found})
    if choice.only:
        stamps = _narrowed(stamps, choice.only, notes)
    stamps |= _brought(workspace, choice.bring, stamps, {each.path for each in found}, notes)
    stamps |= _included(workspace, choice.include, notes)
    stamps = _without_clashes(workspace, stamps, notes)
    if listing.not_checked_out:
        notes.say(f"{listing.not_checked_out} files are not checked out (sparse checkout)")
    _note_oddities(workspace, stamps, listing, notes)
    return Selection(stamps, repository, notes.sentences(), found)


def unmatched(workspace: Path, globs: Sequence[str]) -> list[str]:
    """Patterns of files to bring along that no file of the workspace has now."""
    notes = Notes()
    return [glob for glob in globs if not _is_matched(workspace, checked_glob(glob), notes)]


def _is_matched(workspace: Path, glob: bytes, notes: Notes) -> bool:
    if os.path.lexists(workspace / os.fsdecode(glob)):
        return True
    return any(covered(path, (glob,)) for path in walked(workspace, notes, fixed_part(glob)))


def find_repository(workspace: Path) -> Repository | None:
    """Find the repository that the workspace belongs to, if there is one that tracks it."""
    wanted = [
        "--show-prefix",
        "--absolute-git-dir",
        "--show-object-format",
        "--git-path",
        "objects",
    ]
    found = git.asked(["rev-parse", *wanted], workspace)
    if found.returncode:
        if (workspace / ".git").exists():
            raise SandboxError(f"git cannot read this repository: {git.complaint(found)}")
        return None
    told = found.stdout.decode("utf-8", "surrogateescape").split("\n")[:-1]
    if len(told) != _ANSWERS:
        raise SandboxError("The path of this workspace has a line break in it; rename the folder")
    prefix, git_dir, object_format, objects = told
    if prefix and git.asked(["check-ignore", "-q", "."], workspace).returncode == 0:
        return None  # somebody else's repository lies around it, and ignores it
    head = git.answer(["rev-parse", "--verify", "-q", "HEAD^{commit}"], workspace)
    branch = git.answer(["symbolic-ref", "-q", "HEAD"], workspace)
    return Repository(
        head=head.decode() if head else None,
        branch=os.fsdecode(branch) if branch else None,
        git_dir=Path(git_dir),
        objects=(workspace / objects).resolve(),
        prefix=prefix,
        object_format=object_format,
    )


def _stamped_with_nested(
    workspace: Path, listing: Listing, repository: Repository | None, notes: Notes
) -> Manifest:
    """Stamp what is listed; the repositories inside add to the list, and to the stamps."""
    looks = _Looks(workspace, notes)
    common_dir = repository.objects.parent if repository else None
    stamps = looks.stamps_of([*listing.tracked, *listing.untracked])
    while looks.folders:
        more = listed_in(workspace, looks.folders.pop(0), common_dir, notes)
        stamps |= looks.stamps_of([*more.tracked, *more.untracked])
        listing.tracked += more.tracked
        listing.untracked += more.untracked
        listing.not_checked_out += more.not_checked_out
    return stamps


class _Looks:
    """Looks at listed paths; ``folders`` are those that turned out to be repositories inside."""

    def __init__(self, workspace: Path, notes: Notes) -> None:
        self._base = os.fsencode(workspace) + b"/"
        self._notes = notes
        self._real: dict[bytes, bool] = {b"": True}
        self.folders: list[bytes] = []

    def stamps_of(self, paths: Iterable[bytes]) -> Manifest:
        """Stamp what goes along; internal folders do not (S3), and are told by number."""
        stamps: Manifest = {}
        internal = Counter[str]()
        for path in dict.fromkeys(paths):
            # Most paths hold none of the letters; asking them alone keeps large trees fast.
            folder = internal_folder(path) if _may_be_internal(path) else None
            if folder:
                internal[folder] += 1
            elif path.endswith(b"/"):
                self.folders.append(path)
            elif stamp := self._look(path):
                stamps[path] = stamp
        for name, number in internal.items():
            self._notes.say(f"{name}/ is left out: internal ({number} files)")
        return stamps

    def _look(self, path: bytes) -> Stamp | None:
        if len(self._base) + len(path) > _LONGEST_PATH:
            self._notes.left_out(path[:60] + b"...", "its path is too long")
            return None
        if not self.is_real_folder(path.rpartition(b"/")[0]):
            return None
        try:
            status = os.lstat(self._base + path)
        except (FileNotFoundError, NotADirectoryError):
            return None  # deleted by the user, not committed yet
        except PermissionError:
            self._notes.left_out(path, "it cannot be read")
            return None
        if is_patchable(status.st_mode):
            return stamp_of(status)
        if stat.S_ISDIR(status.st_mode):
            self.folders.append(path)
        else:
            self._notes.left_out(path, "neither a file nor a link")
        return None

    def is_real_folder(self, folder: bytes) -> bool:
        """Refuse what lies below a folder which has become a link to elsewhere."""
        real = self._real.get(folder)
        if real is None:
            real = self.is_real_folder(folder.rpartition(b"/")[0])
            try:
                real = real and stat.S_ISDIR(os.lstat(self._base + folder).st_mode)
            except PermissionError:
                self._notes.left_out(folder, "it cannot be read")
                real = False
            except OSError:
                real = False
            self._real[folder] = real
        return real


def _may_be_internal(path: bytes) -> bool:
    folded = path.lower()
    return (
        b"git" in folded
        or b".agentcanvas" in folded
        or b"node_modules" in folded
        or folded.startswith(b"dist")
        or not path.isascii()
    )


def _drop_dependencies(stamps: Manifest, folders: Collection[bytes]) -> None:
    """Take out the files of a dependency folder that git does not ignore, or the link to one."""
    below = tuple(folder + b"/" for folder in folders)
    for path in [path for path in stamps if path.startswith(below) or path in folders]:
        del stamps[path]


def _narrowed(stamps: Manifest, globs: Sequence[bytes], notes: Notes) -> Manifest:
    """Keep what is covered; a pattern that covers nothing was hardly meant so."""
    for glob in globs:
        if not any(covered(path, (glob,)) for path in stamps):
            notes.say(f"There is nothing to take for '{shown(glob)}'")
    return {path: stamp for path, stamp in stamps.items() if covered(path, globs)}


def _brought(
    workspace: Path,
    globs: Sequence[bytes],
    known: Collection[bytes],
    dependencies: Collection[bytes],
    notes: Notes,
) -> Manifest:
    """Find ignored files by pattern; one that may hold secrets has to be named itself."""
    looks = _Looks(workspace, notes)
    stamps: Manifest = {}
    for glob in globs:
        start = fixed_part(glob)
        is_file = is_plain(glob) and not (workspace / os.fsdecode(glob)).is_dir()
        top = start.rpartition(b"/")[0] if is_file else start
        if (workspace / os.fsdecode(top)).is_dir() and not looks.is_real_folder(top):
            notes.left_out(glob, "a link leads there")
            continue
        listed = [glob] if is_file else walked(workspace, notes, start)
        paths = {path for path in listed if covered(path, (glob,))} - set(known) - {b""}
        paths = {path for path in paths if not internal_folder(path)}
        if is_in(start, dependencies):
            notes.left_out(glob, "the folder it is in goes along as a whole, as a dependency")
            continue
        secret = {path for path in paths if path != glob and looks_secret(path)}
        for path in sorted(secret):
            notes.left_out(path, "it may hold secrets; agents get it if it is named in full")
        found = looks.stamps_of(sorted(paths - secret))
        if not found and not secret and glob not in known:
            notes.say(f"There is nothing to bring for '{shown(glob)}'")
        stamps |= found
    return stamps


def _included(workspace: Path, names: Sequence[bytes], notes: Notes) -> Manifest:
    stamps = _Looks(workspace, notes).stamps_of(names)
    for path in names:
        if path not in stamps:
            raise PathRefused(f"'{shown(path)}' is not a file of the workspace; check its name")
    return stamps


def _folded(path: bytes) -> bytes | str:
    """Spell a path as a disk that ignores case would understand it."""
    if path.isascii():
        return path.lower()
    return unicodedata.normalize("NFC", path.decode("utf-8", "surrogateescape")).casefold()


def _without_clashes(workspace: Path, stamps: Manifest, notes: Notes) -> Manifest:
    """Note names that differ in case only; on a disk that ignores case they are one file."""
    first: dict[bytes | str, bytes] = {}
    twice = [path for path in stamps if first.setdefault(_folded(path), path) != path]
    for path in twice:
        other = first[_folded(path)]
        gone = next((each for each in (path, other) if not _is_spelt(workspace, each)), None)
        if gone:
            first[_folded(path)] = path if gone == other else other
            del stamps[gone]
            notes.left_out(gone, "this disk keeps it under a name that differs in case only")
        else:
            notes.say(
                f"{shown(other)} and {shown(path)} differ in case only: "
                "on some disks they are one file"
            )
    return stamps


def _is_spelt(workspace: Path, path: bytes) -> bool:
    folder, _, name = path.rpartition(b"/")
    return name in os.listdir(os.fsencode(workspace) + b"/" + folder)  # noqa: PTH208 -- bytes


def _note_oddities(workspace: Path, stamps: Manifest, listing: Listing, notes: Notes) -> None:
    """Say what an agent's owner would want to know about the files that go along."""
    huge = [path for path, stamp in stamps.items() if stamp[1] > HUGE]
    if huge:
        notes.say(
            f"{some_of(huge)}: over {HUGE // 1024**2} MB; copied, but changes cannot be handed in"
        )
    pointers = _lfs_pointers(workspace, stamps)
    if pointers:
        notes.say(
            f"{some_of(pointers)}: Git LFS pointers, not the contents; "
            "run git lfs pull if agents need them"
        )
    open_secrets = [p for p in listing.untracked if p in stamps and looks_secret(p)]
    if open_secrets and listing.tracked:
        notes.say(
            f"{some_of(open_secrets)}: may hold secrets, and agents see it; have git ignore it"
        )


def _lfs_pointers(workspace: Path, stamps: Manifest) -> list[bytes]:
    rules = [path for path in stamps if path.rpartition(b"/")[2] == b".gitattributes"]
    if not any(b"filter=lfs" in _beginning(workspace, path, 1 << 16) for path in rules):
        return []
    small = (
        path
        for path, stamp in stamps.items()
        if len(_LFS_POINTER) < stamp[1] <= _LARGEST_POINTER and stat.S_ISREG(stamp[0])
    )
    return [path for path in small if _beginning(workspace, path, 64).startswith(_LFS_POINTER)]


def _beginning(workspace: Path, path: bytes, size: int) -> bytes:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(os.fsencode(workspace) + b"/" + path, flags)
    except OSError:
        return b""
    try:
        return os.read(descriptor, size)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
