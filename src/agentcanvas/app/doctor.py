"""What a run would find on this machine and in this workspace, one finding a subject.

Everything is looked at and nothing is changed; what is in the way of running is told from what is
only worth knowing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import platform
import shutil
import socket
import sys
from collections.abc import Mapping
from contextlib import closing
from enum import StrEnum
from importlib.resources import files
from pathlib import Path
from typing import Final

import anyio
from msgspec import Struct

from agentcanvas.app.check_needs import lack_of
from agentcanvas.app.cli_standing import Standing, all_standings, ask_once
from agentcanvas.app.crew import check_crew
from agentcanvas.app.interpreter import environment
from agentcanvas.app.settings import load_settings
from agentcanvas.app.settings_here import LOOK, NOT_YET, own_file_holds
from agentcanvas.app.trust import trust_of
from agentcanvas.app.workspace import FOLDER, how_to_write, store_path
from agentcanvas.errors import (
    AgentCanvasError,
    GitUnusable,
    NoConfinement,
    SandboxError,
    SettingsError,
    StoreFull,
)
from agentcanvas.flows.check import check
from agentcanvas.flows.load import flow_files, read_flow
from agentcanvas.flows.trust import TrustState
from agentcanvas.proposals.quarantine import git_version
from agentcanvas.runs.evidence import checks_here
from agentcanvas.sandbox.disk import in_words
from agentcanvas.sandbox.git import asked, complaint
from agentcanvas.sandbox.pick import pick
from agentcanvas.store import StoreLimits
from agentcanvas.store.database import connect_beside, structural_problems, told_plainly
from agentcanvas.store.lock import lock_file
from agentcanvas.store.migrations import refuse_foreign

PORT: Final = 7717
_GIT: Final = (2, 38)
_GB: Final = 1024**3
_CLIS_STAND: Final = 8
"""After the checks of the workspace, before the store."""
_LITTLE_ROOM: Final = 2 * _GB
_NO_ROOM: Final = _GB // 5
_TRUSTED: Final = {
    TrustState.TRUSTED: "given",
    TrustState.NOTHING_TO_TRUST: "nothing here needs it",
}


class Grade(StrEnum):
    """``FAIL`` is in the way of running, ``WARN`` is not."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(Struct, frozen=True):
    """One subject: how it stands, and what to do about it."""

    subject: str
    grade: Grade
    sentence: str
    next_step: str = ""


async def examine(
    root: Path, environ: Mapping[str, str], *, port: int = PORT, ask: bool = False
) -> tuple[Finding, ...]:
    """Every finding, in the order in which they matter; with ``ask`` each CLI is asked once."""
    confinement = await _confinement()
    clis = await _coding_clis(environ, ask=ask)
    others = await anyio.to_thread.run_sync(_at_rest, root, environ, port)
    return (*others[:2], confinement, *others[2:_CLIS_STAND], *clis, *others[_CLIS_STAND:])


def _at_rest(root: Path, environ: Mapping[str, str], port: int) -> tuple[Finding, ...]:
    return (
        _python(environ),
        _git(),
        _workspace(root),
        _room(root),
        _settings(root, environ),
        _flows(root),
        _trust(root, environ),
        _checks(root, environ),
        _store(store_path(root)),
        _port(port),
        _pages(),
    )


def _ok(subject: str, sentence: str, next_step: str = "") -> Finding:
    return Finding(subject, Grade.OK, sentence, next_step)


def _warn(subject: str, sentence: str, next_step: str) -> Finding:
    return Finding(subject, Grade.WARN, sentence, next_step)


def _fail(subject: str, sentence: str, next_step: str) -> Finding:
    return Finding(subject, Grade.FAIL, sentence, next_step)


# The machine ------------------------------------------------------------------------------------


def _python(environ: Mapping[str, str]) -> Finding:
    sentence = f"{platform.python_version()} at {sys.executable}"
    said = environ.get("PYTHONPATH", "")
    if said != environment(environ).get("PYTHONPATH", ""):
        sentence += f"; by PYTHONPATH={said} any Python takes modules from the folder you are in"
        return _warn("python", sentence, "name whole paths in PYTHONPATH, and leave none empty")
    return _ok("python", sentence)


def _git() -> Finding:
    try:
        version = git_version()
    except GitUnusable as missing:
        return _fail("git", str(missing), "install git, from your system's packages")
    said = ".".join(map(str, version))
    if version < _GIT:
        least = ".".join(map(str, _GIT))
        sentence = f"{said}; a change cannot be merged with edits of yours in the same file"
        return _warn("git", sentence, f"install git {least} or newer")
    return _ok("git", said)


async def _confinement() -> Finding:
    subject = "confinement"
    try:
        picked = await pick()
    except NoConfinement as none:
        step = "install bubblewrap, or run with --unsafe if agents may change any file of yours"
        return _fail(subject, "; ".join(none.reasons) or str(none), step)
    except SandboxError as wrong:
        return _fail(subject, str(wrong), "mend that, then look again")
    sentence = "; ".join((picked.confinement.name, *picked.warnings))
    if picked.refused:
        sentence += f" (not {'; not '.join(picked.refused)})"
    if picked.refused or picked.warnings:
        step = "run as an ordinary user" if os.geteuid() == 0 else "install bubblewrap for more"
        return _warn(subject, sentence, step)
    return _ok(subject, sentence)


async def _coding_clis(environ: Mapping[str, str], *, ask: bool) -> tuple[Finding, ...]:
    """One finding for all, and one for each that is here."""
    subject = "coding CLIs"
    here = [each for each in await all_standings(environ) if each.is_here]
    if not here:
        step = "install one, or use a model, a script, a command or a person as an agent"
        return (_warn(subject, "none found on the PATH", step),)
    usable = [each.name for each in here if each.is_usable]
    if usable:
        step = "" if ask else "ask each of them once, for a little money: agentcanvas doctor --ask"
        first = _ok(subject, f"can be used: {', '.join(usable)}", step)
    else:
        first = _warn(subject, "none of them can be used yet", "see below")
    return (first, *[await _coding_cli(each, environ, ask=ask) for each in here])


async def _coding_cli(each: Standing, environ: Mapping[str, str], *, ask: bool) -> Finding:
    if not each.is_usable:
        return _warn(each.name, each.sentence, each.fix)
    if not ask:
        return _ok(each.name, each.sentence)
    tried = await ask_once(each, environ)
    if tried.fix:
        return _warn(each.name, f"{each.sentence}; {tried.sentence}", tried.fix)
    return _ok(each.name, f"{each.sentence}; {tried.sentence}")


def _port(port: int) -> Finding:
    subject = f"port {port}"
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as wrong:
            if wrong.errno != errno.EADDRINUSE:
                return _warn(subject, f"{wrong.strerror}", "choose another: serve --port")
            return _warn(subject, "in use", "nothing: serve takes the next free one")
    return _ok(subject, "free")


def _pages() -> Finding:
    if (files("agentcanvas") / "web" / "_ui" / "index.html").is_file():
        return _ok("UI", "built")
    return _warn("UI", "not built", "use the commands, or build it: make ui")


# The workspace ----------------------------------------------------------------------------------


def _workspace(root: Path) -> Finding:
    subject = "workspace"
    folder = root / FOLDER
    written = folder if folder.is_dir() else root
    if not os.access(written, os.W_OK | os.X_OK):
        return _fail(subject, f"{written} is read-only", how_to_write(written))
    if os.path.lexists(folder) and (folder.is_symlink() or not folder.is_dir()):
        return _fail(subject, f"{folder} is not a folder of its own", "move it away")
    try:
        status = asked(["status", "--porcelain=v1", "-z"], root)
    except SandboxError:
        return _warn(subject, f"{root}; without git nothing more is known", "install git")
    if status.returncode:
        if not any((parent / ".git").exists() for parent in (root, *root.parents)):
            sentence = f"{root} is not a git repository; changes land all the same"
            return _warn(subject, sentence, "git init, to see and commit what landed")
        return _warn(subject, f"git says of {root}: {complaint(status)}", "do as git says")
    dirty = sum(1 for entry in status.stdout.split(b"\0") if entry)
    if dirty:
        return _ok(subject, f"{root}, a git repository with uncommitted changes; runs see them")
    return _ok(subject, f"{root}, a clean git repository")


def _room(root: Path) -> Finding:
    try:
        free = shutil.disk_usage(root).free
    except OSError as wrong:
        return _warn("disk", f"unknown: {wrong.strerror}", "see that there is room")
    sentence = f"{in_words(free)} free"
    if free < _NO_ROOM:
        return _fail("disk", sentence, "make room: each sandbox is a copy of the workspace")
    if free < _LITTLE_ROOM:
        return _warn("disk", sentence, "make room: each sandbox is a copy of the workspace")
    return _ok("disk", sentence)


def _settings(root: Path, environ: Mapping[str, str]) -> Finding:
    try:
        settings = load_settings(root, environ=environ)
    except AgentCanvasError as wrong:
        return _fail("settings", str(wrong), "mend them; docs/settings.md has all keys")
    if not own_file_holds(root, environ):
        return _warn("settings", NOT_YET, LOOK)
    changed = ", ".join(origin.key for origin in settings.where)
    return _ok("settings", f"set: {changed}" if changed else "all defaults")


def _flows(root: Path) -> Finding:
    known = flow_files(root)
    if not known:
        return _ok("flows", "none yet", "make one: agentcanvas flow new")
    wrong = []
    unable: dict[str, list[str]] = {}
    unknown = False
    for name, path in known.items():
        flow = check(read_flow(path)).flow
        if flow is None:
            wrong.append(name)
            continue
        try:
            check_crew(flow.agents, root)
        except SettingsError:  # which are a finding of their own
            unknown = True
        except AgentCanvasError as reason:
            unable.setdefault(str(reason).removesuffix("."), []).append(name)
    if wrong:
        return _warn("flows", f"with errors: {', '.join(wrong)}", "agentcanvas flow check")
    if unable:
        told = [f"{', '.join(names)} cannot start: {reason}" for reason, names in unable.items()]
        return _warn("flows", "; ".join(told), "say in the flow what answers for each agent")
    if unknown:
        sentence = f"{', '.join(known)}; whether they can start depends on the settings"
        return _warn("flows", sentence, "mend the settings, then look again")
    return _ok("flows", ", ".join(known))


def _trust(root: Path, environ: Mapping[str, str]) -> Finding:
    try:
        decision = trust_of(root, environ)
    except AgentCanvasError as wrong:
        return _warn("trust", str(wrong), "set HOME")
    if decision.may_run:
        return _ok("trust", _TRUSTED[decision.state])
    return _warn("trust", decision.sentence, "")


def _checks(root: Path, environ: Mapping[str, str]) -> Finding:
    found = checks_here(root)
    commands = ", ".join(check.command for check in found)
    lacks = [lack for check in found if (lack := lack_of(check, root, environ))]
    if lacks:
        sentence = "; ".join((commands, *(lack.sentence for lack in lacks)))
        return _warn("checks", sentence, "; ".join(lack.next_step for lack in lacks))
    if found:
        return _ok("checks", commands)
    sentence = "none found, so changes stay unverified and are never approved automatically"
    return _warn("checks", sentence, "name them under checks: in the flow")


def _store(path: Path) -> Finding:
    if not path.exists():
        return _ok("store", "none yet; the first run makes it")
    holder = _holder(lock_file(path))
    held = f"; in use by {holder}" if holder else ""
    try:
        with told_plainly(str(path), opening=True), closing(connect_beside(path)) as connection:
            if path.stat().st_size > StoreLimits().examined_bytes:
                refuse_foreign(connection, str(path))
                return _ok("store", f"large{held}", "agentcanvas store check looks at all of it")
            found = structural_problems(connection, thorough=False)
            if not found:
                refuse_foreign(connection, str(path))
    except StoreFull as wrong:
        return _fail("store", str(wrong), "agentcanvas sandbox clean")
    except AgentCanvasError as wrong:
        return _fail("store", str(wrong), "agentcanvas store check")
    if found:
        return _fail("store", f"damaged: {found[0]}", "agentcanvas store restore BACKUP")
    return _ok("store", f"whole{held}")


def _holder(lock: Path) -> str:
    """Which process holds the store; empty if none does."""
    try:
        with lock.open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                number = file.read(32).decode(errors="replace").strip()
                return f"process {number}" if number.isdigit() else "another process"
    except OSError:
        pass
    return ""
