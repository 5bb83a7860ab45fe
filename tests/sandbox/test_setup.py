"""The setup command of a run: run once, kept with its log, shared by all sandboxes."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.errors import SandboxError
from agentcanvas.sandbox.confine import Command, Confinement, View
from agentcanvas.sandbox.dependencies import Use
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.generation import (
    generation_numbers,
    load_generation,
    setup_folder,
    take_generation,
)
from agentcanvas.sandbox.paths import generations_folder
from agentcanvas.sandbox.prepare import copy_generation, prepare_sandbox
from agentcanvas.sandbox.process import Limits, run_confined
from agentcanvas.sandbox.provision import provide
from agentcanvas.sandbox.setup import run_setup
from agentcanvas.sandbox.views import copy_view, worker_view
from tests.sandbox.conftest import RUN, write

pytestmark = pytest.mark.req("D9", "D15")

INSTALL = (
    "mkdir -p node_modules/pad gen/api; echo 'pad' > node_modules/pad/index.js;"
    "echo code > gen/api/client.py; echo cache > one.log; echo ran >> $HOME/../../count;"
    "echo installed; echo warned >&2"
)


@pytest.fixture
def workspace_with_rules(workspace: Path) -> Path:
    write(workspace, {".gitignore": "node_modules/\ngen/\n*.log\nbuild/\n", "package.json": "{}"})
    return workspace


async def said_by(confinement: Confinement, view: View, script: str) -> str:
    ending, lines = await run_confined(confinement, view, Command(("/bin/sh", "-c", script)))
    text = "\n".join(line.text for line in lines)
    assert ending.exit_code == 0, text
    return text


async def test_what_a_setup_made_is_had_by_every_sandbox_and_evidence_copy(
    workspace_with_rules: Path, confinement: Confinement, tmp_path: Path
) -> None:
    base = await take_generation(workspace_with_rules, RUN)
    setup = await run_setup(base, INSTALL, confinement)
    assert {each.path: each.use for each in setup.base.made} == {
        b"gen": Use.OWN,
        b"node_modules": Use.READ,
        b"one.log": Use.OWN,
    }
    assert {"installed", "warned"} <= set(setup.log.read_text().splitlines())
    assert setup.notes == ()
    look = "cat node_modules/pad/index.js gen/api/client.py one.log"
    for agent in ("one", "two"):
        sandbox = await prepare_sandbox(setup.base, agent)
        provided = await provide(setup.base, sandbox.work_dir, confinement)
        view = worker_view(sandbox, read_only=provided.binds)
        assert await said_by(confinement, view, look) == "pad\ncode\ncache"
        await said_by(confinement, view, f"echo {agent} > gen/api/client.py; echo x > mine")
        patch = await make_patch(sandbox)
        assert [change.path for change in patch.changes] == [b"mine"]
    (tmp_path / "evidence").mkdir()
    tree = tmp_path / "evidence/tree"
    await copy_generation(setup.base, tree)
    provided = await provide(setup.base, tree, confinement)
    view = copy_view(setup.base, tree, read_only=provided.binds)
    assert await said_by(confinement, view, look) == "pad\ncode\ncache"


async def test_a_setup_runs_once_for_a_run_and_later_generations_have_it(
    workspace_with_rules: Path, bubblewrap: Confinement
) -> None:
    base = await take_generation(workspace_with_rules, RUN)
    command = "head -c 16 /dev/urandom | base64 > one.log"
    first = await run_setup(base, command, bubblewrap)
    made = (setup_folder(workspace_with_rules, RUN) / "made/one.log").read_text()
    again = await run_setup(base, command, bubblewrap)
    assert again.base == first.base
    assert (setup_folder(workspace_with_rules, RUN) / "made/one.log").read_text() == made
    write(workspace_with_rules, {"README.md": "edited"})
    later = await take_generation(workspace_with_rules, RUN, previous=first.base)
    assert later.made == first.base.made
    assert await load_generation(workspace_with_rules, RUN, 1) == later
    assert generation_numbers(workspace_with_rules, RUN) == [0, 1]
    other = await run_setup(later, "echo two > two.log", bubblewrap)
    assert [each.path for each in other.base.made] == [b"two.log"]


async def test_what_git_does_not_ignore_is_not_taken_over_and_told(
    workspace_with_rules: Path, bubblewrap: Confinement
) -> None:
    base = await take_generation(workspace_with_rules, RUN)
    script = "echo x > README.md; rm tool.sh; echo n > new.py; mkdir build; touch build/a"
    setup = await run_setup(base, script, bubblewrap)
    assert setup.notes == (
        "The setup changed README.md, new.py, tool.sh, which git does not ignore: not taken over",
    )
    assert [each.path for each in setup.base.made] == [b"build"]
    assert (workspace_with_rules / "README.md").read_text() == "hello\n"
    assert not (workspace_with_rules / "build").exists()


async def test_a_setup_that_fails_is_told_with_its_last_lines_and_leaves_nothing(
    workspace_with_rules: Path, confinement: Confinement
) -> None:
    base = await take_generation(workspace_with_rules, RUN)
    script = "seq 1 40; echo no such package >&2; touch one.log; exit 3"
    with pytest.raises(SandboxError, match=r"(?s)exit code 3.*\n40.*setup\.log") as failure:
        await run_setup(base, script, confinement)
    assert "no such package" in str(failure.value)
    assert "\n12\n" not in str(failure.value)
    folder = generations_folder(workspace_with_rules, RUN)
    assert sorted(path.name for path in folder.iterdir()) == ["g0", "setup.log"]
    assert "\n12\n" in (folder / "setup.log").read_text()
    assert (await load_generation(workspace_with_rules, RUN, 0)).made == ()


async def test_a_setup_that_does_not_end_is_ended(
    workspace_with_rules: Path, bubblewrap: Confinement
) -> None:
    base = await take_generation(workspace_with_rules, RUN)
    with pytest.raises(SandboxError, match="ended"):
        await run_setup(base, "sleep 100", bubblewrap, limits=Limits(deadline_s=0.2))


async def test_a_setup_sees_the_users_dependencies_unless_it_makes_them_anew(
    workspace_with_rules: Path, bubblewrap: Confinement
) -> None:
    write(workspace_with_rules, {"node_modules/old/index.js": "old"})
    base = await take_generation(workspace_with_rules, RUN)
    await run_setup(base, "cp node_modules/old/index.js one.log", bubblewrap)
    script = "test ! -e node_modules && mkdir node_modules && echo new > node_modules/new.js"
    setup = await run_setup(base, script, bubblewrap, fresh=True)
    sandbox = await prepare_sandbox(setup.base, "coder")
    provided = await provide(setup.base, sandbox.work_dir, bubblewrap)
    view = worker_view(sandbox, read_only=provided.binds)
    assert await said_by(bubblewrap, view, "ls node_modules") == "new.js"
    assert (workspace_with_rules / "node_modules/old/index.js").read_text() == "old"


async def test_a_setup_is_confined_and_its_secrets_are_not_in_the_log(
    workspace_with_rules: Path, confinement: Confinement, tmp_path: Path
) -> None:
    write(tmp_path, {"private": "key material"})
    base = await take_generation(workspace_with_rules, RUN)
    script = (
        f"echo $TOKEN; cat {tmp_path}/private; echo x > {workspace_with_rules}/../planted; true"
    )
    setup = await run_setup(base, script, confinement, env={"TOKEN": "very-secret-token"})
    assert "[TOKEN]" in setup.log.read_text()
    assert "very-secret-token" not in setup.log.read_text()
    assert "key material" not in setup.log.read_text()
    assert not (tmp_path / "planted").exists()


async def test_a_link_that_a_setup_made_opens_nothing(
    workspace_with_rules: Path, bubblewrap: Confinement, tmp_path: Path
) -> None:
    write(tmp_path, {"private/key": "k"})
    write(workspace_with_rules, {".gitignore": "node_modules\ngen\n"})
    base = await take_generation(workspace_with_rules, RUN)
    script = f"ln -s {tmp_path}/private node_modules; ln -s {tmp_path}/private gen"
    setup = await run_setup(base, script, bubblewrap)
    assert {each.use for each in setup.base.made} == {Use.OWN}
    sandbox = await prepare_sandbox(setup.base, "coder")
    provided = await provide(setup.base, sandbox.work_dir, bubblewrap)
    assert provided.binds == ()
    view = worker_view(sandbox, read_only=provided.binds)
    assert await said_by(bubblewrap, view, "cat gen/key node_modules/key 2>/dev/null; true") == ""
    assert (sandbox.work_dir / "gen").is_symlink()
