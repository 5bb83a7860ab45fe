"""Looking for a CLI on this machine: where it is, which version, and what else it needs to run.

The version is what the program says of itself, asked with a HOME of its own, so that the user's
configuration is neither read nor changed.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from subprocess import DEVNULL, PIPE

import anyio
from msgspec import Struct

from agentcanvas.agents.cli.adapter import Facts, Version
from agentcanvas.sandbox.confine import Bind
from agentcanvas.sandbox.toolchains import interpreter_folders

_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+){1,3})")
_ANSWER_S = 30.0
_MOST_WORDS = 65_536


class Found(Struct, frozen=True, kw_only=True):
    """A CLI as it stands here; ``problem`` says why it cannot be used, with the next step."""

    program: str = ""
    version: Version = ()
    problem: str = ""

    @property
    def usable(self) -> bool:
        """Whether it can be started."""
        return not self.problem

    @property
    def shown(self) -> str:
        """Its version for people."""
        return shown(self.version) or "unknown version"


def shown(version: Version) -> str:
    """A version for people."""
    return ".".join(map(str, version))


def on_the_path(facts: Facts, environ: Mapping[str, str]) -> Found:
    """Whether it is there, without running it."""
    path = environ.get("PATH", os.defpath)
    for name in facts.programs:
        if program := shutil.which(name, path=path):
            return Found(program=program)
    lame = next((p for name in facts.programs if (p := _unusable(name, path))), "")
    if lame:
        return Found(program=lame, problem=f"{lame} is not executable; chmod +x it")
    names = " or ".join(facts.programs)
    return Found(
        problem=f"{facts.title} is not installed ({names} is not on the PATH); {_step(facts)}"
    )


def _unusable(name: str, path: str) -> str:
    found = (Path(folder, name) for folder in path.split(os.pathsep) if folder)
    return next((str(each) for each in found if each.is_file()), "")


def _step(facts: Facts) -> str:
    return f"install it: {facts.install}"


async def find(facts: Facts, environ: Mapping[str, str]) -> Found:
    """Find it and ask for its version."""
    found = on_the_path(facts, environ)
    if not found.usable:
        return found
    version, complaint = await _asked(found.program, environ)
    found = Found(program=found.program, version=version)
    if complaint:
        return Found(program=found.program, problem=f"{found.program} {complaint}; {_step(facts)}")
    if facts.node and (problem := await _node_problem(facts, environ)):
        return Found(program=found.program, version=version, problem=problem)
    if version and facts.oldest and version < facts.oldest:
        return Found(
            program=found.program,
            version=version,
            problem=f"{facts.title} {shown(version)} is too old, {shown(facts.oldest)} is the "
            f"oldest that can be driven; {_step(facts)}",
        )
    return found


async def _node_problem(facts: Facts, environ: Mapping[str, str]) -> str:
    node = shutil.which("node", path=environ.get("PATH", os.defpath))
    version: Version = ()
    if node:
        version, _ = await _asked(node, environ)
    if version >= facts.node:
        return ""
    has = f"this is {shown(version)}" if version else "there is none"
    return f"{facts.title} needs Node.js {shown(facts.node)}, {has}; install a newer one"


async def _asked(program: str, environ: Mapping[str, str]) -> tuple[Version, str]:
    """The version a program says it is, or what is wrong with it."""
    with tempfile.TemporaryDirectory(prefix="agentcanvas-", ignore_cleanup_errors=True) as home:
        said = {
            "PATH": environ.get("PATH", os.defpath),
            "HOME": home,
            "TMPDIR": home,
            "NO_COLOR": "1",
            "DO_NOT_TRACK": "1",
            "CI": "1",
        }
        try:
            with anyio.fail_after(_ANSWER_S):
                done = await anyio.run_process(
                    [program, "--version"],
                    stdin=DEVNULL,
                    stdout=PIPE,
                    stderr=PIPE,
                    env=said,
                    cwd=home,
                    check=False,
                    start_new_session=True,
                )
        except TimeoutError:
            return (), f"did not say its version within {_ANSWER_S:g} s"
        except OSError as error:
            return (), f"cannot be started ({error.strerror})"
    words = (done.stdout + b"\n" + done.stderr)[:_MOST_WORDS].decode("utf-8", "replace")
    version = version_in(words)
    if done.returncode and not version:
        last = " ".join(words.split())[:200]
        return (), f"does not run here (exit code {done.returncode}{': ' + last if last else ''})"
    return version, ""


def version_in(words: str) -> Version:
    """The first version number in what a program said."""
    found = _VERSION.search(words)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


@lru_cache(maxsize=64)
def folders_of(program: str, workspace: Path) -> tuple[Bind, ...]:
    """What has to be readable inside for a program to run, beyond its own file.

    A package of npm lies in its ``node_modules``, one of pip in its environment; other files of the
    home folder stay out of sight.
    """
    path = Path(program).resolve()
    parts: list[Path] = []
    if "node_modules" in path.parts:
        whole = path.parts.index("node_modules")
        parts.append(Path(*path.parts[: whole + 1]))
    for folder in path.parents:
        if (folder / "pyvenv.cfg").is_file():
            parts += [folder, *interpreter_folders(folder, workspace)]
            break
    if not parts:
        parts.append(path)
    return tuple(
        Bind(part, part) for part in dict.fromkeys(parts) if not part.is_relative_to(workspace)
    )
