"""``make install`` on machines good and bad, in a copy of the tree, without a network.

The copy's environment borrows the packages of the one that runs the tests, so that the real script,
the real lock file and the real pip take part and nothing has to be downloaded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE_PACKAGES = sysconfig.get_path("purelib")
TOOLS = ("cat", "cksum", "dirname", "env", "grep", "make", "mkdir", "mv", "rm", "sh")

LENDING_PYTHON = f"""#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec {sys.executable} "$@"
{sys.executable} -m venv --without-pip "$3"
for folder in "$3"/lib/python*/site-packages; do echo {SITE_PACKAGES} >"$folder/lent.pth"; done
"""


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Copy what an installation needs; the folder's name has a space, as some people's have."""
    folder = tmp_path / "a tree"
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "tools", folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    needed = ("Makefile", "pyproject.toml", "hatch_build.py", "requirements.lock", "README.md")
    for name in (*needed, "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    program(tmp_path / "lending" / "python3", LENDING_PYTHON)
    return folder


def make_install(tree: Path, *, path: str = "", **more: str) -> tuple[int, str]:
    environment = {
        "PATH": path or f"{tree.parent / 'lending'}:{os.environ['PATH']}",
        "HOME": os.environ["HOME"],
        "PIP_NO_INDEX": "1",
        **more,
    }
    made = subprocess.run(
        ["make", "install"],
        cwd=tree,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return made.returncode, made.stdout


def machine_with(folder: Path, **programs: str) -> str:
    """Make a PATH that holds the basic tools and these programs, and no other Python."""
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, f"this machine has no {tool}"
        folder.mkdir(exist_ok=True)
        (folder / tool).symlink_to(found)
    for name, text in programs.items():
        program(folder / name, f"#!/bin/sh\n{text}\n")
    return str(folder)


def test_a_finished_environment_is_left_alone(tree: Path) -> None:
    code, said = make_install(tree)
    assert code == 0, said
    assert said.startswith("creating .venv with Python 3.")
    assert " packages from requirements.lock ..." in said
    assert said.endswith("ready: .venv/bin/agentcanvas\n")
    assert os.access(tree / ".venv/bin/agentcanvas", os.X_OK)

    assert make_install(tree) == (0, "")


def test_where_there_is_no_playwright_all_the_rest_is_installed(tree: Path) -> None:
    program(tree.parent / "lending" / "ldd", "#!/bin/sh\necho 'musl libc (x86_64)' >&2; exit 1\n")
    code, said = make_install(tree)
    assert code == 0, said
    locked, wanted = tree / "requirements.lock", tree / ".venv" / ".wanted"
    gone = set(locked.read_text().splitlines()) - set(wanted.read_text().splitlines())
    assert [line for line in gone if "==" in line and not line.startswith("playwright==")] == []
    assert "playwright==" not in wanted.read_text()


def test_a_changed_pyproject_installs_the_package_again_and_nothing_else(tree: Path) -> None:
    make_install(tree)
    with (tree / "pyproject.toml").open("a") as pyproject:
        pyproject.write("# changed\n")
    code, said = make_install(tree)
    assert code == 0, said
    assert said == "installing agentcanvas from this tree ...\nready: .venv/bin/agentcanvas\n"


def test_a_changed_lock_makes_the_environment_anew(tree: Path) -> None:
    make_install(tree)
    with (tree / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    code, said = make_install(tree)
    assert code == 0, said
    assert "creating .venv" in said


def test_a_tree_that_was_moved_makes_its_environment_anew(tree: Path) -> None:
    make_install(tree)
    moved = tree.rename(tree.parent / "moved")
    code, said = make_install(moved)
    assert code == 0, said
    assert "creating .venv" in said
    assert str(tree) not in (moved / ".venv/bin/agentcanvas").read_text()


def test_an_environment_whose_python_vanished_is_made_anew(tree: Path) -> None:
    make_install(tree)
    for python in (tree / ".venv/bin").glob("python*"):
        python.unlink()
        python.symlink_to("/vanished/python3")
    code, said = make_install(tree)
    assert code == 0, said
    assert "creating .venv" in said


def test_a_failed_download_says_how_to_go_on_and_the_next_try_begins_anew(tree: Path) -> None:
    lock = tree / "requirements.lock"
    whole = lock.read_text()
    lock.write_text(f"{whole}no-such-package==1.0 --hash=sha256:{'0' * 64}\n")
    code, said = make_install(tree)
    assert code != 0
    assert "run make install again" in said

    lock.write_text(whole)
    code, said = make_install(tree)
    assert code == 0, said
    assert "creating .venv" in said


def test_somebody_elses_environment_is_used_and_not_thrown_away(tree: Path) -> None:
    subprocess.run([tree.parent / "lending/python3", "-m", "venv", ".venv"], cwd=tree, check=True)
    (tree / ".venv/kept").touch()
    code, said = make_install(tree)
    assert code == 0, said
    assert said.startswith("using the .venv that is already here\n")
    assert (tree / ".venv/kept").exists()


def test_a_python_that_is_too_old_is_named_with_its_version(tree: Path, tmp_path: Path) -> None:
    path = machine_with(tmp_path / "bin", python3="echo 3.9")
    code, said = make_install(tree, path=path)
    assert code != 0
    assert "python3 is Python 3.9, but AgentCanvas needs 3.11 or newer" in said
    assert not (tree / ".venv").exists()


def test_an_old_python3_is_no_obstacle_when_a_newer_one_stands_beside_it(
    tree: Path, tmp_path: Path
) -> None:
    machine_with(tmp_path / "bin", python3="echo 3.9")
    newer = program(tmp_path / "bin" / "python3.12", LENDING_PYTHON)
    code, said = make_install(tree, path=str(newer.parent))
    assert code == 0, said


def test_a_missing_venv_module_is_told_with_the_package_to_install(
    tree: Path, tmp_path: Path
) -> None:
    pretends = 'case "$*" in *ensurepip*) exit 1 ;; esac; echo 3.11'
    code, said = make_install(tree, path=machine_with(tmp_path / "bin", python3=pretends))
    assert code != 0
    assert "sudo apt install python3-venv" in said


def test_a_machine_without_python_is_told_what_to_install(tree: Path, tmp_path: Path) -> None:
    code, said = make_install(tree, path=machine_with(tmp_path / "bin"))
    assert code != 0
    assert "Install Python 3.11 or newer" in said
