"""A throw-away private git repository, in which patches are tried and edits are merged.

The user's repository, index, hooks, filters, attributes and configuration take no part, so the same
code serves a workspace without git. Objects are written and read here directly: one process a file
would make the cost of an apply grow with its number of files.
"""

from __future__ import annotations

import hashlib
import os
import re
import resource
import shutil
import subprocess
import tempfile
import zlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agentcanvas.errors import GitUnusable
from agentcanvas.proposals.index_file import read_index, write_index
from agentcanvas.proposals.tree import Entry, Mode

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

_CONFIG: Final = """\
[core]
	repositoryformatversion = 0
	bare = true
	looseCompression = 0
	protectHFS = true
	protectNTFS = true
	autocrlf = false
	hooksPath = /dev/null
	attributesFile = /dev/null
[merge]
	renames = false
	directoryRenames = false
[index]
	version = 2
[gc]
	auto = 0
"""
PREFIX: Final = ".agentcanvas-quarantine-"
_FOLDER: Final = "40000"
_INDEX: Final = "index"
_WHO: Final = "author agentcanvas <> 0 +0000\ncommitter agentcanvas <> 0 +0000\n\n\n"
_MERGE_SINCE: Final = (2, 38)
_ROOM: Final = 512 * 1024 * 1024


class Quarantine:
    """Use as a context manager; everything in it is gone afterwards.

    ``place`` is where to make it, for those who want to find it again after a crash.
    """

    def __init__(self, *, largest_file: int, place: Path | None = None) -> None:
        self._largest_file = largest_file
        self._place = place
        self._largest_stored = 0
        self._folder = Path()
        self._objects = Path()
        self.processes = 0

    def __enter__(self) -> Quarantine:
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=self._place))
        self._objects = self._folder / "objects"
        self._objects.mkdir()
        (self._folder / "refs").mkdir()
        (self._folder / "HEAD").write_text("ref: refs/heads/none\n")
        (self._folder / "config").write_text(_CONFIG)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def git(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run git here, with nothing of the user's environment but PATH."""
        self.processes += 1
        command = [git_path(), *arguments]
        with subprocess.Popen(  # noqa: S603 - git, with arguments made here
            command,
            cwd=self._folder,
            env=_environment(self._folder),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            self._limit(process.pid)
            out, err = process.communicate(stdin)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def _limit(self, pid: int) -> None:
        """A small patch can expand without bound; git must not fill the disk or the memory.

        Set before git is given its input, hence before it can write. Only Linux can limit
        another process; elsewhere the sizes are checked afterwards.
        """
        if hasattr(resource, "prlimit"):
            # Stored blocks of zlib add less than one byte in 256.
            file = self._largest_file + self._largest_file // 256 + 4096
            memory = 6 * max(self._largest_file, self._largest_stored) + _ROOM
            for kind, wanted in ((resource.RLIMIT_FSIZE, file), (resource.RLIMIT_AS, memory)):
                _, hard = resource.getrlimit(kind)
                limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
                resource.prlimit(pid, kind, (limit, limit))

    def store(self, kind: str, data: bytes) -> str:
        """Write one loose object; returns its id."""
        raw = f"{kind} {len(data)}\0".encode() + data
        self._largest_stored = max(self._largest_stored, len(raw))
        oid = hashlib.sha1(raw, usedforsecurity=False).hexdigest()
        target = self._objects / oid[:2] / oid[2:]
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(zlib.compress(raw, 1))
        return oid

    def load(self, oid: str, *, limit: int) -> bytes | None:
        """The content of a loose object; None when it is larger than ``limit``."""
        unzip = zlib.decompressobj()
        raw = unzip.decompress((self._objects / oid[:2] / oid[2:]).read_bytes(), limit + 64)
        head, _, data = raw.partition(b"\0")
        size = int(head.split(b" ")[1])
        return data if size <= limit and len(data) == size else None

    def fill_index(self, entries: Mapping[bytes, Entry]) -> dict[bytes, tuple[str, str]]:
        """Make these entries the index; returns mode and blob id of each."""
        ids = {path: (str(e.mode), self.store("blob", e.data)) for path, e in entries.items()}
        (self._folder / _INDEX).write_bytes(write_index(ids))
        return ids

    def read_index(self) -> dict[bytes, tuple[str, str]]:
        """Mode and blob id of what is in the index now."""
        return read_index((self._folder / _INDEX).read_bytes())

    def merge(
        self,
        base: Mapping[bytes, Entry],
        ours: Mapping[bytes, Entry],
        theirs: Mapping[bytes, Entry],
    ) -> tuple[dict[bytes, Entry], set[bytes]]:
        """A three-way merge of small trees: what it gives, and the paths that conflict."""
        if git_version() < _MERGE_SINCE:
            raise GitUnusable(
                "Your own edits touch the same files, and merging them needs git 2.38 or newer; "
                f"this is {'.'.join(map(str, git_version()))}. Commit or set them aside first."
            )
        root = self._commit(base, None)
        sides = [self._commit(side, root) for side in (ours, theirs)]
        done = self.git("merge-tree", "--write-tree", "--no-messages", "-z", *sides)
        if done.returncode not in (0, 1):
            raise GitUnusable(f"git could not merge: {last_words(done)}")
        tree, *conflicts = done.stdout.rstrip(b"\0").split(b"\0")
        # After the conflicted entries some versions add a section of messages; it has no tab.
        names = {line.partition(b"\t")[2] for line in conflicts if b"\t" in line}
        return self._read_tree(tree.decode(), b""), names

    def _commit(self, entries: Mapping[bytes, Entry], parent: str | None) -> str:
        tree = self._write_tree({tuple(path.split(b"/")): e for path, e in entries.items()})
        line = f"parent {parent}\n" if parent else ""
        return self.store("commit", f"tree {tree}\n{line}{_WHO}".encode())

    def _write_tree(self, entries: Mapping[tuple[bytes, ...], Entry]) -> str:
        rows: dict[bytes, tuple[str, str]] = {}
        below: dict[bytes, dict[tuple[bytes, ...], Entry]] = {}
        for (name, *rest), entry in entries.items():
            if rest:
                below.setdefault(name, {})[tuple(rest)] = entry
            else:
                rows[name] = (str(entry.mode), self.store("blob", entry.data))
        for name, inner in below.items():
            rows[name] = (_FOLDER, self._write_tree(inner))
        # git sorts a folder as if its name ended in a slash.
        ordered = sorted(rows, key=lambda name: name + b"/" * (rows[name][0] == _FOLDER))
        data = b"".join(
            rows[name][0].encode() + b" " + name + b"\0" + bytes.fromhex(rows[name][1])
            for name in ordered
        )
        return self.store("tree", data)

    def _read_tree(self, oid: str, prefix: bytes) -> dict[bytes, Entry]:
        found: dict[bytes, Entry] = {}
        data = self._must_load(oid)
        while data:
            meta, _, rest = data.partition(b"\0")
            mode, _, name = meta.partition(b" ")
            child, data = rest[:20].hex(), rest[20:]
            if mode.decode() == _FOLDER:
                found |= self._read_tree(child, prefix + name + b"/")
            else:
                found[prefix + name] = Entry(Mode(mode.decode()), self._must_load(child))
        return found

    def _must_load(self, oid: str) -> bytes:
        data = self.load(oid, limit=2 * max(self._largest_file, self._largest_stored))
        if data is None:
            raise GitUnusable("The merge of your edits with the proposal is too large.")
        return data


def last_words(done: subprocess.CompletedProcess[bytes]) -> str:
    """What git said, short enough for a sentence."""
    said = done.stderr.decode(errors="backslashreplace")
    errors = re.findall(r"^(?:error|fatal): (.*)$", said, re.MULTILINE)
    return "; ".join(errors[-3:])[-300:] or f"exit code {done.returncode}"


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "LC_ALL": "C",
        "GIT_DIR": str(folder),
        "GIT_INDEX_FILE": str(folder / _INDEX),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }


@lru_cache(maxsize=1)
def git_path() -> str:
    found = shutil.which("git")
    if found is None:
        raise GitUnusable("git is not on the PATH; install git 2.38 or newer.")
    return found


@lru_cache(maxsize=1)
def git_version() -> tuple[int, ...]:
    said = subprocess.run([git_path(), "--version"], capture_output=True, text=True, check=False)  # noqa: S603 - a fixed command
    numbers = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", said.stdout)
    return tuple(int(number or 0) for number in numbers.groups()) if numbers else (0, 0, 0)
