"""Names and places: which paths may be named, and where the folders of a sandbox are (S1, S3).

Paths of workspace files are bytes with ``/`` inside this package, as the kernel and git have them,
because a file name need not be text; ``shown`` is for people and JSON. What is in the folders is
left to the modules that fill them.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from agentcanvas.errors import PathRefused, SandboxError

HOME_FOLDER = ".agentcanvas"

INTERNAL_ANYWHERE = frozenset({b".git", b".agentcanvas", b"node_modules"})
# A nested dist/ that is tracked is source (git already leaves out one that is ignored).
INTERNAL_AT_TOP = INTERNAL_ANYWHERE | {b"dist"}

_RUN_ID = re.compile(r"run_\d{8}_\d{6}(_[0-9a-z]{1,8})?")
_UNSAFE_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_NAME = 200

# Characters that HFS+ ignores in names: ".g<ZWNJ>it" opens ".git" there.
IGNORED_BY_HFS = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)


def shown(path: bytes) -> str:
    """Give a path as text; bytes that are not UTF-8 appear as ``\\xNN``."""
    return path.decode("utf-8", "backslashreplace")


def internal_folder(path: bytes) -> str | None:
    """Name the internal folder that ``path`` is or lies in, under any spelling of ``.git``."""
    for depth, name in enumerate(path.split(b"/")):
        if name in (INTERNAL_ANYWHERE if depth else INTERNAL_AT_TOP):
            return name.decode()
        if _plain_name(name) in {".git", "git~1", ".agentcanvas"}:
            return shown(name)
    return None


def _plain_name(name: bytes) -> str:
    """Spell a name as a case-folding, ignorant or Windows file system would understand it."""
    text = name.decode("utf-8", "surrogateescape").translate(IGNORED_BY_HFS)
    return text.split(":")[0].rstrip(" .").casefold()


def workspace_relative(path: str | bytes) -> bytes:
    """Check a path that somebody named; refuse what leads out of the workspace or into our own."""
    raw = os.fsencode(path)
    if raw.startswith((b"/", b"\\")) or re.match(rb"[A-Za-z]:[\\/]", raw):
        raise PathRefused(f"'{shown(raw)}' is absolute; name files relative to the workspace")
    names = [name for name in raw.split(b"/") if name not in {b"", b"."}]
    if b".." in names:
        raise PathRefused(f"'{shown(raw)}' contains '..'; name files inside the workspace")
    if b"\0" in raw or not names:
        raise PathRefused(f"'{shown(raw)}' is not the name of a file; leave it out of the list")
    plain = b"/".join(names)
    if folder := internal_folder(plain):
        raise PathRefused(f"'{shown(raw)}' is in the internal folder {folder}/; leave it out")
    return plain


def is_run_id(name: str) -> bool:
    """Tell whether a name has the form of a run id."""
    return _RUN_ID.fullmatch(name) is not None


def checked_run_id(run_id: str) -> str:
    """Refuse a run id of another form: it becomes a folder name."""
    if not is_run_id(run_id):
        raise PathRefused(f"The run id '{run_id}' is not of the form run_YYYYMMDD_HHMMSS")
    return run_id


def sanitised(agent_id: str) -> str:
    """Make a folder name of an agent id (S1)."""
    if not agent_id:
        raise PathRefused("The agent id is empty; give the agent an id")
    name = _UNSAFE_IN_A_NAME.sub("_", agent_id)
    if not name.strip("."):
        return "_" * len(name)  # "." and ".." are folders already
    if len(name) > _LONGEST_NAME:
        return f"{name[:_LONGEST_NAME]}-{_short_hash(agent_id)}"
    return name


def _short_hash(agent_id: str) -> str:
    return hashlib.sha256(agent_id.encode("utf-8", "surrogateescape")).hexdigest()[:8]


@dataclass(frozen=True)
class SandboxPaths:
    """The folders of one agent in one run."""

    root: Path

    @property
    def input_dir(self) -> Path:
        """The read-only baseline."""
        return self.root / "input"

    @property
    def work_dir(self) -> Path:
        """Where the agent works."""
        return self.root / "work"

    @property
    def proposal_dir(self) -> Path:
        """What the host hands in; the agent's process cannot write here."""
        return self.root / "proposal"

    @property
    def home_dir(self) -> Path:
        """The private HOME, kept for the whole run (D18)."""
        return self.root / "home"

    @property
    def tmp_dir(self) -> Path:
        """The private TMPDIR."""
        return self.root / "tmp"

    @property
    def sessions_dir(self) -> Path:
        """What the host keeps of sessions; the agent's process can neither read nor write here."""
        return self.root / "sessions"

    @property
    def record(self) -> Path:
        """What ``prepare`` noted down; written last, so that a half-made sandbox has none."""
        return self.root / "sandbox.msgpack"


def run_folder(workspace_root: Path, run_id: str) -> Path:
    """Where the sandboxes of a run are."""
    return own_folder(workspace_root, "sandboxes") / checked_run_id(run_id)


def generations_folder(workspace_root: Path, run_id: str) -> Path:
    """Where the frozen bases of a run are."""
    return own_folder(workspace_root, "generations") / checked_run_id(run_id)


def own_folder(workspace_root: Path, name: str) -> Path:
    """Where we keep something; never elsewhere, for what is not needed any more is removed."""
    folder = workspace_root / HOME_FOLDER / name
    if folder.is_symlink():
        raise SandboxError(f"{folder} is a link, and sandboxes lie in the workspace; remove it")
    return folder


def get_sandbox_paths(workspace_root: Path, run_id: str, agent_id: str) -> SandboxPaths:
    """Say where the sandbox of an agent is, or will be when it is prepared."""
    folder = run_folder(workspace_root, run_id)
    return SandboxPaths(folder / _name_for(folder, agent_id))


def claim_sandbox_paths(workspace_root: Path, run_id: str, agent_id: str) -> SandboxPaths:
    """Take the folder for this agent, so that an id which clashes with it gets another name."""
    folder = run_folder(workspace_root, run_id)
    folder.mkdir(parents=True, exist_ok=True)
    while True:
        root = folder / _name_for(folder, agent_id)
        if owner_of(root) == agent_id:
            return SandboxPaths(root)
        claim = Path(tempfile.mkdtemp(prefix=".claim-", dir=folder))
        claim.chmod(0o755)
        (claim / "agent_id").write_text(agent_id, "utf-8", "surrogateescape")
        try:
            # Renaming over a folder that is not empty fails: of two claims at once, one wins.
            claim.rename(root)
        except OSError:
            (claim / "agent_id").unlink()
            claim.rmdir()


def _name_for(folder: Path, agent_id: str) -> str:
    name = sanitised(agent_id)
    # Asked first: it is the answer for every turn but the first one, and costs one file.
    if owner_of(folder / name) == agent_id or _is_free(folder, name):
        return name
    return f"{name}-{_short_hash(agent_id)}"


def _is_free(folder: Path, name: str) -> bool:
    """Look for the name in any case: on some disks ``Coder`` and ``coder`` are one folder."""
    taken = {other.name.casefold() for other in folder.iterdir()} if folder.is_dir() else set()
    return name.casefold() not in taken


def owner_of(root: Path) -> str | None:
    """Name the agent whose sandbox a folder is; None when it is nobody's."""
    try:
        return (root / "agent_id").read_text("utf-8", "surrogateescape")
    except OSError:
        return None
