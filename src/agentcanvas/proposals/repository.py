"""The user's git repository, touched by plumbing alone (D16).

Hooks, filters, signing and the user's configuration take no part, but for who the author is. What
is read and written is named to the letter: objects, one ref with the value it must have had, and
the index through ``index_lock``.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentcanvas.errors import GitUnusable, LandingRefused
from agentcanvas.proposals.hunks import blob_id
from agentcanvas.proposals.quarantine import git_path, last_words
from agentcanvas.proposals.ways import Identity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_ALONE: Final = (
    *("-c", f"core.hooksPath={os.devnull}"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.splitIndex=false"),
    *("-c", "core.fsync=all"),  # a commit that a ref names must be there after a power cut
    *("-c", "i18n.commitEncoding=UTF-8"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
)
_UNDER_WAY: Final = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "sequencer": "a sequence of commits",
}
_LENGTHS: Final = {"sha1": 40, "sha256": 64}
_WHOSE: Final = ("PATH", "HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM")
_WHO: Final = ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL")
Listed = tuple[str, str]
"""Mode and object id of a path."""


@dataclass(frozen=True, slots=True)
class Repository:
    """``git_dir`` is that of the worktree; ``prefix`` leads from its top to the workspace."""

    workspace: Path
    git_dir: Path
    prefix: bytes
    form: str
    """How it names its objects: sha1 or sha256."""

    @classmethod
    def of(cls, workspace: Path) -> Repository:
        """The repository that a workspace is in; clear words if there is none to commit to."""
        question = ("--is-inside-work-tree", "--absolute-git-dir", "--show-object-format")
        said = _asked(workspace, "rev-parse", *question, "--show-prefix")
        lines = said.stdout.split(b"\n")
        if said.returncode or lines[0] != b"true":
            why = f" ({last_words(said)})" if said.returncode else ""
            raise LandingRefused(
                f"{workspace} is not in a git working tree{why}, so there is nothing to commit to. "
                "Land in the working tree instead, or run git init."
            )
        form = lines[2].decode(errors="replace")
        if form not in _LENGTHS:
            raise GitUnusable(f"git names objects in an unknown way here: {form!r}.")
        return cls(workspace, Path(os.fsdecode(lines[1])), lines[3], form)

    @property
    def no_object(self) -> str:
        return "0" * _LENGTHS[self.form]

    def identity(self) -> Identity:
        """Who the user is to git; nothing is guessed."""
        said = _asked(self.workspace, "-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT")
        name, _, rest = said.stdout.decode(errors="replace").partition(" <")
        email = rest.partition(">")[0]
        if said.returncode or not name or not email:
            raise LandingRefused(
                "git does not know who you are, so no commit was made. Tell it with: git config "
                "user.name 'Your Name' and git config user.email you@your.org"
            )
        return Identity(name, email)

    def refuse_if_under_way(self) -> None:
        """A commit in the middle of a merge or rebase would become part of it."""
        for name, what in _UNDER_WAY.items():
            if (self.git_dir / name).exists():
                raise LandingRefused(
                    f"{what[0].upper()}{what[1:]} is under way in this repository. Finish or "
                    "abort it, then land the proposal; or land it in the working tree."
                )

    def head(self) -> str | None:
        """The commit that is checked out; None before the first one."""
        return self.value_of("HEAD")

    def head_ref(self) -> str:
        """The branch that is checked out, even if it has no commit yet; HEAD when detached."""
        said = self.git("symbolic-ref", "-q", "HEAD", fine=(0, 1))
        return said.decode().strip() or "HEAD"

    def value_of(self, ref: str) -> str | None:
        said = self.git("rev-parse", "--verify", "-q", f"{ref}^{{commit}}", fine=(0, 1, 128))
        return said.decode().strip() or None

    def holds(self, ref: str, commit: str) -> bool:
        """Whether a ref is at a commit, or further on."""
        now = self.value_of(ref)
        if now is None or self.kind_of(commit) != "commit":
            return False
        return now == commit or self._succeeds("merge-base", "--is-ancestor", commit, now)

    def kind_of(self, oid: str) -> str | None:
        said = self.git("cat-file", "-t", oid, fine=(0, 128))
        return said.decode().strip() or None

    def move(self, ref: str, new: str | None, old: str | None, *, who: Identity, why: str) -> None:
        """Move a ref from exactly ``old``; None is where there is no such ref."""
        change = ["-d", ref, old or self.no_object] if new is None else [ref, new]
        if new is not None:
            change.append(old or self.no_object)
        said = self.run("update-ref", "-m", why, *change, extra=_committer(who, None))
        if said.returncode:
            raise LandingRefused(
                f"{ref.removeprefix('refs/heads/')} was changed by somebody else meanwhile "
                f"({last_words(said)}). Nothing was landed; try again."
            )

    def fill(self, index: Path, commit: str | None) -> dict[bytes, Listed]:
        """Make ``index`` what a commit holds, and list it."""
        self.git("read-tree", *([commit] if commit else ["--empty"]), index=index)
        return self.listed(index)

    def listed(self, index: Path) -> dict[bytes, Listed]:
        """All entries of an index; an unmerged one has a mode that no file has."""
        found: dict[bytes, Listed] = {}
        for line in self.git("ls-files", "--stage", "-z", index=index).split(b"\0")[:-1]:
            meta, _, path = line.partition(b"\t")
            mode, oid, stage = meta.decode().split(" ")
            found[path] = (mode, oid) if stage == "0" else ("unmerged", oid)
        return found

    def enter(self, index: Path, entries: Mapping[bytes, Listed | None]) -> None:
        """Set or remove entries of an index, removals first."""
        lines = [
            f"{'0' if listed is None else listed[0]} "
            f"{self.no_object if listed is None else listed[1]}\t".encode()
            + path
            + b"\0"
            for path, listed in sorted(entries.items(), key=lambda item: item[1] is not None)
        ]
        self.git("update-index", "-z", "--index-info", stdin=b"".join(lines), index=index)

    def store(self, contents: Sequence[bytes], scratch: Path) -> list[str]:
        """Blobs, as they are: no filter sees them."""
        if not contents:
            return []
        for number, data in enumerate(contents):
            (scratch / str(number)).write_bytes(data)
        names = "".join(f"{number}\n" for number in range(len(contents)))
        said = self.git(
            *("hash-object", "-w", "--no-filters", "--stdin-paths"),
            stdin=names.encode(),
            cwd=scratch,
        )
        stored = said.decode().split()
        if stored != [blob_id(data, self.form) for data in contents]:
            raise GitUnusable("git stored another content than it was given; nothing was landed.")
        return stored

    def load(self, oids: Iterable[str]) -> dict[str, bytes]:
        """The contents of blobs, with one process; ``LandingRefused`` if one is gone."""
        wanted = list(dict.fromkeys(oids))
        said = self.git("cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in wanted).encode())
        found: dict[str, bytes] = {}
        at = 0
        for oid in wanted:
            end = said.index(b"\n", at)
            words = said[at:end].split(b" ")
            if words[-1] == b"missing":
                raise LandingRefused(f"The repository does not hold the object {oid} any more.")
            size = int(words[2])
            found[oid] = said[end + 1 : end + 1 + size]
            at = end + 1 + size + 1
        return found

    def tree(self, index: Path) -> str:
        return self.git("write-tree", "--missing-ok", index=index).decode().strip()

    def tree_of(self, commit: str | None) -> str | None:
        if commit is None:
            return None
        return self.git("rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()

    def commit(self, tree: str, parent: str | None, text: str, who: Identity, when_ms: int) -> str:
        parents = ["-p", parent] if parent else []
        said = self.git(
            *("commit-tree", tree, *parents),
            stdin=text.encode(),
            extra=_committer(who, when_ms),
        )
        return said.decode().strip()

    def git(
        self,
        *arguments: str,
        stdin: bytes = b"",
        index: Path | None = None,
        extra: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        fine: tuple[int, ...] = (0,),
    ) -> bytes:
        said = self.run(*arguments, stdin=stdin, index=index, extra=extra, cwd=cwd)
        if said.returncode not in fine:
            raise GitUnusable(f"git {arguments[0]} failed: {last_words(said)}")
        return said.stdout

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        index: Path | None = None,
        extra: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        folder = cwd or self.git_dir
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": os.devnull,
            "LC_ALL": "C",
            "GIT_DIR": str(self.git_dir),
            # Else the configuration names one, as in a submodule, and names are looked up there.
            "GIT_WORK_TREE": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "none",  # an object that is missing is not fetched
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            **({"GIT_INDEX_FILE": str(index)} if index else {}),
            **(extra or {}),
        }
        return subprocess.run(  # noqa: S603 - git, with arguments made here
            [git_path(), *_ALONE, *arguments],
            cwd=folder,
            env=environment,
            input=stdin,
            capture_output=True,
            check=False,
        )

    def _succeeds(self, *arguments: str) -> bool:
        return self.run(*arguments).returncode == 0


def _asked(workspace: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    """A question for which the user's own configuration counts."""
    kept = {name: os.environ[name] for name in (*_WHOSE, *_WHO) if name in os.environ}
    return subprocess.run(  # noqa: S603 - git, with arguments made here
        [git_path(), "-c", "core.fsmonitor=false", *arguments],
        cwd=workspace,
        env=kept | {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
        capture_output=True,
        check=False,
    )


def _committer(who: Identity, when_ms: int | None) -> dict[str, str]:
    date = {} if when_ms is None else {"DATE": f"@{when_ms // 1000} +0000"}
    fields = {"NAME": who.name, "EMAIL": who.email, **date}
    return {
        f"GIT_{role}_{field}": value
        for role in ("AUTHOR", "COMMITTER")
        for field, value in fields.items()
    }
