"""Folders that git does not keep: found, had by sandboxes, and never part of a patch (D9)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentcanvas.sandbox import provision
from agentcanvas.sandbox.confine import Bind, Command, Confinement, View
from agentcanvas.sandbox.confinements.unconfined import Unconfined
from agentcanvas.sandbox.dependencies import Use, interpreter, interpreter_here, leads_back
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.generation import Generation, edits_since, load_generation, take_generation
from agentcanvas.sandbox.prepare import (
    Sandbox,
    copy_generation,
    prepare_sandbox,
    restore_work,
)
from agentcanvas.sandbox.process import run_confined
from agentcanvas.sandbox.provision import Provided, provide, provide_reading
from agentcanvas.sandbox.toolchains import interpreter_folders
from agentcanvas.sandbox.views import copy_view, reader_view, worker_view
from tests.sandbox.conftest import RUN, git, tree_of, write

pytestmark = pytest.mark.req("D9")

PACKAGE = "import greeting; print(greeting.__file__, greeting.WORD)"


def make_venv(workspace: Path) -> Path:
    """Make a virtual environment with an editable install of the workspace, offline."""
    venv = workspace / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "greeting.pth").write_text(f"{workspace / 'src'}\n")
    (packages / "installed.py").write_text("PLACE = 'venv'\n")
    return venv


@pytest.fixture
def project(workspace: Path) -> Path:
    """Give a workspace with a project of each kind, and their dependencies."""
    write(
        workspace,
        {
            ".gitignore": ".venv/\nnode_modules/\ntarget/\n.tox/\n__pypackages__/\nbundle/\n",
            "pyproject.toml": "",
            "package.json": "{}",
            "Cargo.toml": "",
            "Gemfile": "",
            "web/package.json": "{}",
            "src/greeting.py": "WORD = 'old'\n",
            "node_modules/left-pad/index.js": "module.exports = 1\n",
            "web/node_modules/react/index.js": "module.exports = 2\n",
            "target/debug/app": "built",
            "vendor/bundle/ruby/gem.rb": "gem",
            ".tox/py/log": "log",
            "__pypackages__/3.11/lib/x.py": "x",
        },
    )
    return workspace


async def given(base: Generation, confinement: Confinement) -> tuple[Sandbox, Provided]:
    sandbox = await prepare_sandbox(base, "coder")
    return sandbox, await provide(base, sandbox.work_dir, confinement)


async def said_by(confinement: Confinement, view: View, *argv: str) -> str:
    ending, lines = await run_confined(confinement, view, Command(argv))
    text = "\n".join(line.text for line in lines)
    assert ending.exit_code == 0, text
    return text


async def test_dependencies_are_found_at_the_root_and_below(project: Path) -> None:
    make_venv(project)
    base = await take_generation(project, RUN)
    assert {each.path: each.use for each in base.dependencies} == {
        b".tox": Use.WRITE,
        b".venv": Use.READ,
        b"__pypackages__": Use.READ,
        b"node_modules": Use.READ,
        b"target": Use.WRITE,
        b"vendor/bundle": Use.READ,
        b"web/node_modules": Use.READ,
    }
    assert await load_generation(project, RUN, 0) == base


async def test_the_python_of_the_projects_own_environment_is_found(project: Path) -> None:
    assert interpreter_here(project) == ""
    make_venv(project)
    base = await take_generation(project, RUN)
    assert interpreter(base.beside) == interpreter_here(project) == ".venv/bin/python"
    (project / ".venv/bin/python").unlink()  # made on another machine, or half removed
    assert interpreter(base.beside) == ""


async def test_a_folder_of_that_name_that_git_tracks_is_source(workspace: Path) -> None:
    write(workspace, {"Cargo.toml": "", "target/model.rs": "m", "env/settings.py": "s"})
    git(workspace, "add", "-A")
    base = await take_generation(workspace, RUN)
    assert base.dependencies == ()
    assert {b"target/model.rs", b"env/settings.py"} <= base.seen.keys()


async def test_dependencies_that_git_does_not_ignore_are_no_part_of_the_base(
    folder: Path, workspace: Path
) -> None:
    make_venv(workspace)
    write(workspace, {"package.json": "{}", "node_modules/a/package.json": "{}"})
    base = await take_generation(workspace, RUN)
    assert not any(path.startswith((b".venv", b"node_modules")) for path in base.seen)
    assert {each.path for each in base.dependencies} == {b".venv", b"node_modules"}
    assert await edits_since(base) == ()


async def test_a_folder_without_git_leaves_its_dependencies_out_of_the_walk(folder: Path) -> None:
    make_venv(folder)
    write(folder, {"a.py": "a", "Cargo.toml": "", "target/debug/x": "x", "other/target/y": "y"})
    write(folder, {"Gemfile": "", "vendor/bundle/g.rb": "g", "vendor/kept.rb": "k"})
    base = await take_generation(folder, RUN)
    assert set(base.seen) == {
        b"a.py",
        b"Cargo.toml",
        b"Gemfile",
        b"other/target/y",
        b"vendor/kept.rb",
    }
    assert {each.path for each in base.dependencies} == {b".venv", b"target", b"vendor/bundle"}


async def test_a_link_is_followed_to_a_folder_of_its_own_kind_only(
    workspace: Path, tmp_path: Path
) -> None:
    write(tmp_path, {"shared/node_modules/a/index.js": "a", "private/key": "k"})
    write(workspace, {"package.json": "{}", "web/package.json": "{}"})
    (workspace / "node_modules").symlink_to(tmp_path / "shared/node_modules")
    (workspace / "web/node_modules").symlink_to(tmp_path / "private")
    base = await take_generation(workspace, RUN)
    (found,) = base.dependencies
    assert (found.path, found.origin) == (b"node_modules", tmp_path / "shared/node_modules")


async def test_an_editable_install_imports_the_sandboxs_code(
    project: Path, bubblewrap: Confinement
) -> None:
    make_venv(project)
    base = await take_generation(project, RUN)
    sandbox, provided = await given(base, bubblewrap)
    write(sandbox.work_dir, {"src/greeting.py": "WORD = 'new'\n"})
    view = worker_view(sandbox, read_only=provided.binds)
    python = str(project / ".venv/bin/python")
    said = await said_by(bubblewrap, view, python, "-c", PACKAGE)
    assert said == f"{project / 'src/greeting.py'} new"
    assert await said_by(bubblewrap, view, python, "-c", "import installed; print('ok')") == "ok"
    assert provided.unsound == ""
    assert (project / "src/greeting.py").read_text() == "WORD = 'old'\n"


async def test_an_evidence_copy_has_the_same_dependencies(
    project: Path, bubblewrap: Confinement, tmp_path: Path
) -> None:
    make_venv(project)
    base = await take_generation(project, RUN)
    (tmp_path / "evidence").mkdir()
    tree = tmp_path / "evidence/tree"
    await copy_generation(base, tree)
    write(tree, {"src/greeting.py": "WORD = 'patched'\n"})
    provided = await provide(base, tree, bubblewrap)
    view = copy_view(base, tree, read_only=provided.binds)
    said = await said_by(bubblewrap, view, ".venv/bin/python", "-c", PACKAGE)
    assert said.endswith("patched")
    assert await said_by(bubblewrap, view, "cat", "web/node_modules/react/index.js")


async def test_a_reader_of_a_generation_sees_them_too(
    project: Path, bubblewrap: Confinement
) -> None:
    base = await take_generation(project, RUN)
    provided = await provide_reading(base, bubblewrap)
    view = reader_view(base, "boss", read_only=provided.binds)
    assert await said_by(bubblewrap, view, "cat", "node_modules/left-pad/index.js")
    assert await said_by(bubblewrap, view, "cat", "vendor/bundle/ruby/gem.rb") == "gem"


@pytest.mark.req("S5")
async def test_no_process_can_change_them_and_no_patch_holds_them(
    project: Path, confinement: Confinement
) -> None:
    base = await take_generation(project, RUN)
    sandbox, provided = await given(base, confinement)
    view = worker_view(sandbox, read_only=provided.binds)
    script = (
        "cat node_modules/left-pad/index.js; echo x >> node_modules/left-pad/index.js;"
        "echo y > node_modules/new.js; rm -rf node_modules vendor/bundle; echo z > target/z;"
        "echo mine > mine.txt; exit 0"
    )
    said = await said_by(confinement, view, "/bin/sh", "-c", f"({script}) 2>&1")
    assert "module.exports = 1" in said
    assert (project / "node_modules/left-pad/index.js").read_text() == "module.exports = 1\n"
    assert not (project / "target/z").exists()
    assert not (project / "node_modules/new.js").exists()
    patch = await make_patch(sandbox)
    assert [change.path for change in patch.changes] == [b"mine.txt"]


async def test_what_programs_write_into_is_a_copy_of_ones_own(
    project: Path, confinement: Confinement
) -> None:
    base = await take_generation(project, RUN)
    sandbox, provided = await given(base, confinement)
    view = worker_view(sandbox, read_only=provided.binds)
    await said_by(confinement, view, "/bin/sh", "-c", "echo more >> target/debug/app")
    assert (sandbox.work_dir / "target/debug/app").read_text() == "builtmore\n"
    assert (project / "target/debug/app").read_text() == "built"
    before = (project / "target/debug/app").stat().st_mtime_ns
    restored = await restore_work(sandbox)
    await provide(base, restored.work_dir, confinement)
    copy = sandbox.work_dir / "target/debug/app"
    assert (copy.read_text(), copy.stat().st_mtime_ns) == ("built", before)
    assert (await make_patch(restored)).changes == ()


async def test_a_copy_that_is_not_cheap_is_left_out_and_told(
    project: Path, bubblewrap: Confinement, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provision, "CHEAP_FILES", 0)
    base = await take_generation(project, RUN)
    sandbox, provided = await given(base, bubblewrap)
    assert not (sandbox.work_dir / "target").exists()
    assert any(note.startswith("target is left out: too much to copy") for note in provided.notes)


async def test_without_mounts_they_are_linked_and_an_editable_install_is_told(
    project: Path, landlock: Confinement
) -> None:
    make_venv(project)
    base = await take_generation(project, RUN)
    sandbox, provided = await given(base, landlock)
    view = worker_view(sandbox, read_only=provided.binds)
    python = str(sandbox.work_dir / ".venv/bin/python")
    said = await said_by(landlock, view, python, "-c", "import installed; print(installed.PLACE)")
    assert said == "venv"
    assert "greeting.pth" in provided.unsound
    assert "landlock cannot put the copy in its place" in provided.unsound
    again = await provide(base, sandbox.work_dir, landlock)
    assert again == provided
    assert (await make_patch(sandbox)).changes == ()


async def test_without_confinement_nothing_leads_a_program_to_the_users_own(project: Path) -> None:
    base = await take_generation(project, RUN)
    sandbox, provided = await given(base, Unconfined())
    (sandbox.work_dir / "node_modules/left-pad/index.js").write_text("changed")
    assert (project / "node_modules/left-pad/index.js").read_text() == "module.exports = 1\n"
    assert provided.binds == ()
    assert (await make_patch(sandbox)).changes == ()


async def test_linked_packages_of_the_workspace_lead_back(project: Path) -> None:
    write(project, {"packages/mine/index.js": "mine"})
    (project / "node_modules/mine").symlink_to("../packages/mine")
    base = await take_generation(project, RUN)
    assert "node_modules leads back to the workspace (mine)" in leads_back(
        project, base.dependencies
    )


async def test_a_link_that_an_agent_put_in_the_way_is_not_followed(
    project: Path, confinement: Confinement, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    base = await take_generation(project, RUN)
    sandbox = await prepare_sandbox(base, "coder")
    (sandbox.work_dir / "web/package.json").unlink()
    (sandbox.work_dir / "web").rmdir()
    (sandbox.work_dir / "web").symlink_to(outside)
    (sandbox.work_dir / "target").symlink_to(outside)
    (sandbox.work_dir / "node_modules").symlink_to(outside)
    provided = await provide(base, sandbox.work_dir, confinement)
    assert list(outside.iterdir()) == []
    assert any(note.startswith("web/node_modules is left out") for note in provided.notes)
    view = worker_view(sandbox, read_only=provided.binds)
    assert await said_by(confinement, view, "cat", "node_modules/left-pad/index.js")
    assert list(outside.iterdir()) == []


async def test_a_dependency_that_went_away_is_told(project: Path, bubblewrap: Confinement) -> None:
    base = await take_generation(project, RUN)
    (project / "__pypackages__").rename(project / "gone")
    _, provided = await given(base, bubblewrap)
    assert "__pypackages__ is left out: it is gone since the base was taken" in provided.notes


def test_the_python_a_venv_borrows_is_opened_and_nothing_else(tmp_path: Path) -> None:
    python = tmp_path / "uv/python/cpython-3.11"
    write(python, {"bin/python3.11": "", "lib/python3.11/os.py": "", "share/token": "t"})
    write(tmp_path, {"home/.ssh/key": "k", "home/bin/tool": "t"})
    workspace = tmp_path / "workspace"

    def opened(home: Path) -> set[Path]:
        write(workspace, {".venv/pyvenv.cfg": f"home = {home}\nversion = 3.11\n"})
        return set(interpreter_folders(workspace / ".venv", workspace))

    assert opened(python / "bin") == {python / "bin", python / "lib"}
    assert opened(tmp_path / "home") == set()
    assert opened(tmp_path / "home/bin") == set()
    assert opened(Path("/usr/bin")) == set()
    assert interpreter_folders(workspace / "none", workspace) == ()


async def test_mount_points_are_no_files_of_the_sandbox(
    project: Path, bubblewrap: Confinement
) -> None:
    base = await take_generation(project, RUN)
    sandbox, provided = await given(base, bubblewrap)
    own = {path for path in tree_of(sandbox.work_dir) if path in base.seen}
    assert own == set(base.seen)
    assert Bind(project / "node_modules", project / "node_modules") in provided.binds
    assert os.listdir(sandbox.work_dir / "node_modules") == []  # noqa: PTH208 -- names only
