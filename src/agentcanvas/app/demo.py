"""The demo's folder: a small repository with failing tests, and a scripted team to mend it.

It is made whole or not at all, and made anew only as long as nobody has changed it. What the run in
it must have shown is in ``demo_facts``; showing it is left to the command.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

import msgspec

from agentcanvas.app.server import lock_path
from agentcanvas.app.workspace import FOLDER, ensure_folder, store_path
from agentcanvas.errors import FlowError, ResourceError, ValidationError
from agentcanvas.flows.load import FLOWS, find_flow, load_flow
from agentcanvas.runs.office import RunOrder
from agentcanvas.sandbox.git import BLIND
from agentcanvas.sandbox.trees import remove_path
from agentcanvas.store.lock import OwnerLock, lock_file

SOURCE: Final[Traversable] = files("agentcanvas.app") / "demo_files"
FLOW: Final = "demo"
TESTS: Final = ("python3", "-m", "unittest")

_WRAPPED: Final = ".txt"
"""Behind the names of the sample's files, so that nobody takes its code for the product's."""

_RECORD: Final = Path(FOLDER) / "demo.json"
_SHARED: Final = frozenset({"flows", "skills", "patterns", "prompts", "memory", "MEMORY.md"})
"""What of the workspace's own folder may be somebody's work."""

_IDENTITY: Final = (
    *("-c", "user.name=AgentCanvas demo"),
    *("-c", "user.email=demo@example.invalid"),
    *("-c", "commit.gpgsign=false"),
    *("-c", "core.autocrlf=false"),
    *("-c", "core.fsmonitor=false"),
)

_ABSENT: Final = ""
"""The content of a file that is not there."""


class Record(msgspec.Struct, frozen=True):
    """How the demo has left its folder: the digests each file has had, its refs and its run."""

    states: dict[str, tuple[str, ...]]
    refs: str
    run_id: str = ""


def make_folder(folder: Path, *, force: bool = False) -> Path:
    """Make the demo's folder; gives its full path.

    One that the demo made before is replaced if it is unchanged, or else by ``force``; anything
    else that is there is left alone.
    """
    _refuse_without_programs()
    folder = Path(os.path.abspath(folder))  # noqa: PTH100  # a link stays a link, to be refused
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder = folder.parent.resolve() / folder.name
        with ExitStack() as held:
            is_there = _may_be_replaced(folder, held, force=force)
            fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
            held.callback(remove_path, fresh)
            new, old = fresh / "new", fresh / "old"
            _fill(new)
            if is_there:
                folder.rename(old)
            _put(new, folder, otherwise=old)
    except OSError as wrong:
        raise ResourceError(
            f"{folder} cannot be made: {wrong.strerror}. Name another with --folder."
        ) from None
    return folder


def order_for(root: Path) -> RunOrder:
    """The run of the demo, as the flow in its folder says it."""
    path = find_flow(root, FLOW)
    data = load_flow(path).interactions[0].data
    request = data.params.get("task_template") if data else None
    if not isinstance(request, str):
        raise FlowError(f"{path} has no task_template, so there is nothing to do.")
    return RunOrder(flow=FLOW, flow_text=path.read_text("utf-8"), request=request)


def keep_record(root: Path, run_id: str, landed: Iterable[str]) -> None:
    """Note what the run has put into the folder; whatever else is new there is somebody's work."""
    record = _recorded(root)
    if record is None:
        return
    states = dict(record.states)
    for path in landed:
        now = _digest(root / path) if os.path.lexists(root / path) else _ABSENT
        states[path] = (*states.get(path, (_ABSENT,)), now)
    _write_record(root, Record(states, record.refs, run_id))


def git(root: Path, *words: str) -> str:
    """Run git in the demo's folder; nobody's configuration or identity takes part."""
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        # Or a folder that has lost its repository would speak for one that lies around it.
        "GIT_CEILING_DIRECTORIES": str(root.parent),
        **BLIND,
    }
    try:
        done = subprocess.run(  # noqa: S603  # fixed program, arguments of ours
            ["git", *_IDENTITY, *words],  # noqa: S607  # the user's PATH says which git is theirs
            cwd=root,
            env=environment,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise ResourceError(_missing("git")) from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip()
        raise ResourceError(f"git {words[0]} failed in {root}: {said}")
    return done.stdout.decode("utf-8", "replace")


# Making -------------------------------------------------------------------------------------------


def _refuse_without_programs() -> None:
    for program in ("git", TESTS[0]):
        if shutil.which(program) is None:
            raise ResourceError(_missing(program))


def _missing(program: str) -> str:
    return f"{program} was not found on the PATH, and the demo needs it; install {program}."


def _fill(root: Path) -> None:
    root.mkdir()
    _copy(SOURCE / "repository", root)
    ensure_folder(root)
    _copy(SOURCE / "flows", root / FLOWS)
    git(root, "init", "--quiet", "--template=", "--initial-branch=main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=A library with four failing tests")
    made: dict[str, tuple[str, ...]] = {path: (digest,) for path, digest in _contents(root).items()}
    _write_record(root, Record(made, _refs(root)))


def _put(new: Path, folder: Path, *, otherwise: Path) -> None:
    """Move the new folder into its place, or what was there back."""
    try:
        new.rename(folder)
    except OSError:
        if otherwise.exists():
            otherwise.rename(folder)
        raise


def _copy(source: Traversable, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for entry in source.iterdir():
        if entry.is_dir():
            _copy(entry, target / entry.name)
        else:
            (target / entry.name.removesuffix(_WRAPPED)).write_bytes(entry.read_bytes())


# Making anew --------------------------------------------------------------------------------------


def _may_be_replaced(folder: Path, held: ExitStack, *, force: bool) -> bool:
    """Whether something is there to be replaced; nobody else uses it until ``held`` ends."""
    if not os.path.lexists(folder):
        return False
    is_real = folder.is_dir() and not folder.is_symlink()
    if is_real and not any(folder.iterdir()):
        return True
    record = _recorded(folder) if is_real else None
    if record is None:
        raise ValidationError(
            f"{folder} is there already and was not made by the demo; it is left alone. Name "
            "another with --folder."
        )
    for lock in (lock_path(folder), lock_file(store_path(folder))):
        held.enter_context(OwnerLock(lock))
    changed = "" if force else _changed(folder, record)
    if changed:
        raise ValidationError(
            f"{folder} has changed since the demo made it ({changed}); it is left alone. Name "
            "another with --folder, or make it anew with --force, which loses the changes."
        )
    return True


def _changed(root: Path, record: Record) -> str:
    """What somebody did to the folder; empty if nothing. What landed may have been undone."""
    now = _contents(root)
    for path in sorted(now.keys() | record.states.keys()):
        if now.get(path, _ABSENT) not in record.states.get(path, (_ABSENT,)):
            return path
    sandboxes = root / FOLDER / "sandboxes"
    runs = {run.name for run in sandboxes.iterdir()} if sandboxes.is_dir() else set()
    if record.run_id and runs - {record.run_id}:
        return f"it has other runs: {', '.join(sorted(runs - {record.run_id}))}"
    try:
        return "" if _refs(root) == record.refs else "its commits"
    except ResourceError:
        return "its repository"


def _contents(root: Path) -> dict[str, str]:
    """A digest for each file that may be somebody's work."""
    return {path.relative_to(root).as_posix(): _digest(path) for path in _files(root)}


def _files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        left_out = {"__pycache__"}
        if here == root:
            left_out.add(".git")
        elif here == root / FOLDER:
            left_out |= {*folders, *names} - _SHARED
        folders[:] = [name for name in folders if name not in left_out]
        linked = [name for name in folders if (here / name).is_symlink()]
        yield from (here / name for name in (*names, *linked) if name not in left_out)


def _digest(path: Path) -> str:
    if path.is_symlink() or not path.is_file():
        return "not a file"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _refs(root: Path) -> str:
    head = git(root, "rev-parse", "--symbolic-full-name", "HEAD")
    return head + git(root, "for-each-ref", "--format=%(refname) %(objectname)")


def _recorded(root: Path) -> Record | None:
    try:
        return msgspec.json.decode((root / _RECORD).read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError):
        return None


def _write_record(root: Path, record: Record) -> None:
    (root / _RECORD).write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")
