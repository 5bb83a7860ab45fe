"""What a check needs is found out without running anything of a workspace."""

from __future__ import annotations

import os
import venv
from pathlib import Path

import pytest

from agentcanvas.app.check_needs import Lack, lack_of
from agentcanvas.proposals.checks import Check
from agentcanvas.proposals.detecting import detect
from agentcanvas.sandbox.dependencies import interpreter_here

pytestmark = pytest.mark.req("D13", "D44")

MACHINE = os.environ["PATH"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "conftest.py").write_text("")
    return folder


def environment(folder: Path, *modules: str, system: bool = False) -> Path:
    """A real environment without pip; gives its programs."""
    venv.create(folder, symlinks=True, system_site_packages=system)
    (packages,) = folder.glob("lib/python*/site-packages")
    for module in modules:
        (packages / module).mkdir()
        (packages / module / "__init__.py").write_text("raise SystemExit('imported')\n")
    return folder / "bin"


def lack(root: Path, path: Path | str = MACHINE) -> Lack | None:
    (check,) = detect(root, interpreter_here(root) or "python3")
    return lack_of(check, root, {"PATH": f"{path}:{MACHINE}"})


def test_the_machines_python_is_asked(root: Path, tmp_path: Path) -> None:
    missing = lack(root, environment(tmp_path / "bare"))
    assert missing is not None
    assert missing.sentence == "pytest is not installed for python3, as it is seen in a sandbox"
    assert lack(root, environment(tmp_path / "full", "pytest")) is None


@pytest.mark.parametrize("name", [".venv", "venv"])
def test_an_environment_of_the_workspace_is_looked_into(root: Path, name: str) -> None:
    environment(root / name)
    missing = lack(root)
    assert missing is not None
    assert missing.next_step == f"install it there: {name}/bin/python -m pip install pytest"
    (packages,) = (root / name).glob("lib/python*/site-packages")
    (packages / "pytest").mkdir()
    assert lack(root) is None


def test_an_environment_that_a_link_leads_to_is_looked_into(root: Path, tmp_path: Path) -> None:
    environment(tmp_path / "elsewhere/.venv")
    (root / ".venv").symlink_to(tmp_path / "elsewhere/.venv")
    assert lack(root) is not None


def test_what_cannot_be_known_is_not_said(root: Path, tmp_path: Path) -> None:
    environment(root / ".venv", system=True)
    assert lack(root) is None
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "odd/python3").chmod(0o755)
    assert lack_of(Check("c", "python3 -m pytest"), root, {"PATH": str(tmp_path / "odd")}) is None


def test_modules_of_python_itself_are_there(root: Path) -> None:
    environment(root / ".venv")
    assert lack_of(Check("c", ".venv/bin/python -m unittest"), root, {"PATH": MACHINE}) is None


@pytest.mark.parametrize(
    ("command", "step"),
    [
        ("npm test", "install Node.js, which has it"),
        ("go test ./...", "install go"),
        ("python3 -m pytest", "install Python"),
    ],
)
def test_a_program_that_is_missing_is_named(
    root: Path, tmp_path: Path, command: str, step: str
) -> None:
    program = command.split(maxsplit=1)[0]
    told = lack_of(Check("c", command), root, {"PATH": str(tmp_path)})
    assert told == Lack(f"there is no {program} on the PATH", step)


def test_nothing_of_a_workspace_is_run(root: Path, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    script = f"#!/bin/sh\ntouch {ran}\n"
    module = f"import pathlib\npathlib.Path({str(ran)!r}).touch()\n"
    for name in ("pytest.py", "sitecustomize.py", "importlib.py", "usercustomize.py"):
        (root / name).write_text(module)
    programs = environment(root / ".venv")
    for name in ("python", "python3"):
        (programs / name).unlink()
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    (tmp_path / "linked").symlink_to(programs)
    for path in (programs, tmp_path / "linked"):
        for command in (".venv/bin/python -m pytest", "python3 -m pytest"):
            lack_of(Check("c", command), root, {"PATH": str(path), "PYTHONPATH": str(root)})
    lack_of(Check("c", "python3 -m pytest"), root, {"PATH": MACHINE, "PYTHONPATH": str(root)})
    assert not ran.exists()
