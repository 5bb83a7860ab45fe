"""What a confined process can and cannot do, by trying it (D8, D9, S2)."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from agentcanvas.sandbox.confine import Bind, Command, Confinement, Network, View
from agentcanvas.sandbox.confinements.seatbelt import profile
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.generation import take_generation
from agentcanvas.sandbox.prepare import Sandbox, prepare_sandbox
from agentcanvas.sandbox.private_git import make_private_git
from agentcanvas.sandbox.process import Limits, run_confined
from agentcanvas.sandbox.views import reader_view, worker_view
from tests.sandbox.conftest import RUN, git, tree_of, write

pytestmark = pytest.mark.req("PR4")

PROBE = Path(__file__).with_name("probe.py")
PREFIX = Path(sys.base_prefix)
PYTHON = f"{PREFIX}/bin/python3"
LIMITS = Limits(deadline_s=60)


@pytest.fixture
async def sandbox(workspace: Path) -> Sandbox:
    write(workspace, {"secret.log": "ignored, so not in the copy"})
    return await prepare_sandbox(await take_generation(workspace, RUN), "coder")


@pytest.fixture
def view(sandbox: Sandbox) -> View:
    """Show a worker its sandbox, and this Python and the probe."""
    tools = (Bind(PREFIX, PREFIX), Bind(PROBE.parent, PROBE.parent))
    return worker_view(sandbox, read_only=tools)


@pytest.fixture
def datagrams() -> Iterator[socket.socket]:
    """Listen for what leaves by UDP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(0)
        yield listener


@pytest.fixture
def outside(
    tmp_path: Path, home: Path, sandbox: Sandbox, datagrams: socket.socket
) -> Iterator[dict[str, str]]:
    """Set up what a hostile program would like to reach, and look afterwards."""
    write(tmp_path, {"outside/victim": "precious"})
    workspace = sandbox.base.workspace
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        named = stack.enter_context(socket.socket(socket.AF_UNIX))
        short = Path(f"/tmp/ac-{os.getpid()}-{tcp.getsockname()[1]}")
        named.bind(str(short))
        named.listen()
        stack.callback(short.unlink)
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0{short}")
        abstract.listen()
        yield {
            "victim": f"{tmp_path}/outside/victim",
            "folder": f"{tmp_path}/outside",
            "secret": f"{workspace}/secret.log",
            "proposal": str(sandbox.paths.proposal_dir),
            "tree": str(sandbox.base.tree),
            "home": str(home),
            "parent": str(os.getpid()),
            "port": str(tcp.getsockname()[1]),
            "udp_port": str(datagrams.getsockname()[1]),
            "socket": str(short),
            "abstract": str(short),
        }
    assert tree_of(tmp_path / "outside") == {b"victim": ("file", b"precious")}
    assert not (home / ".profile").exists()
    assert list(sandbox.paths.proposal_dir.iterdir()) == []


# Loopback is there in a network namespace, but leads nowhere; Landlock does not guard metadata,
# which its warnings say.
HARMLESS = {"bubblewrap": {"network: udp"}, "landlock": {"input: make it writable"}}


def done(results: dict[str, str]) -> set[str]:
    return {name for name, result in results.items() if result == "done"}


async def probed(confinement: Confinement, view: View, outside: dict[str, str]) -> dict[str, str]:
    told = outside | {"input": str(confinement.places(view).input)}
    arguments = [f"{name}={value}" for name, value in told.items()]
    command = Command((PYTHON, "-I", str(PROBE), *arguments))
    ending, lines = await run_confined(confinement, view, command, LIMITS)
    assert ending.exit_code == 0, lines
    return dict(json.loads(lines[-1].text))


async def test_a_hostile_program_reaches_nothing_outside(
    confinement: Confinement, view: View, outside: dict[str, str], sandbox: Sandbox
) -> None:
    before = tree_of(sandbox.base.workspace), tree_of(sandbox.paths.input_dir)
    results = await probed(confinement, view, outside)
    mine = {name for name in results if name.split(":")[0] in {"work", "home", "tmp", "dev"}}
    should_work = mine | {"input: read"}
    assert len(should_work) == 14
    assert done(results) == should_work | HARMLESS[confinement.name]
    assert len(results) - len(done(results)) == 25, "every other try was refused"

    assert (tree_of(sandbox.base.workspace), tree_of(sandbox.paths.input_dir)) == before
    changed = {change.path for change in (await make_patch(sandbox)).changes}
    assert {b"README.md", b"inner-hard", b"inner-link", b"script.sh"} <= changed
    assert b"made" not in changed


async def test_an_open_network_opens_the_network_and_no_unix_socket(
    confinement: Confinement, view: View, outside: dict[str, str], datagrams: socket.socket
) -> None:
    await probed(confinement, view, outside)
    with pytest.raises(BlockingIOError):
        datagrams.recv(1)
    results = await probed(confinement, replace(view, network=Network.OPEN), outside)
    assert results["network: tcp"] == "done"
    assert datagrams.recv(1) == b"x"
    assert results["network: unix socket"] != "done"
    assert results["outside: write"] != "done"


@pytest.mark.req("D8", "S2")
async def test_an_orchestrator_sees_the_workspace_and_cannot_change_it(
    confinement: Confinement, view: View, outside: dict[str, str], sandbox: Sandbox
) -> None:
    before = tree_of(sandbox.base.tree)
    reading = reader_view(sandbox.base, "planner", read_only=view.read_only)
    command = Command(("/bin/sh", "-c", "cat README.md; echo x > README.md; echo y > new; pwd"))
    _, lines = await run_confined(confinement, reading, command, LIMITS)
    told = [line.text for line in lines if line.source == "stdout"]
    assert told == ["hello", str(confinement.places(reading).tree)]
    assert tree_of(sandbox.base.tree) == before
    with_input = replace(reading, input=view.input)
    results = await probed(confinement, with_input, outside)
    of_its_own = {"work: thread", "work: socketpair", "home: write", "tmp: write", "dev: null"}
    assert done(results) == of_its_own | {"input: read"} | HARMLESS[confinement.name]
    assert tree_of(sandbox.base.tree) == before


@pytest.mark.req("D9")
async def test_the_copy_is_at_the_workspaces_own_path(
    bubblewrap: Confinement, view: View, sandbox: Sandbox
) -> None:
    workspace = sandbox.base.workspace
    command = Command(("/bin/sh", "-c", f"pwd; echo changed > {workspace}/README.md"))
    _, lines = await run_confined(bubblewrap, view, command, LIMITS)
    assert [line.text for line in lines] == [str(workspace)]
    assert (workspace / "README.md").read_text() == "hello\n"
    assert (sandbox.work_dir / "README.md").read_text() == "changed\n"


@pytest.mark.req("D9")
async def test_a_confinement_that_cannot_mount_says_so(landlock: Confinement, view: View) -> None:
    assert landlock.places(view).tree == view.tree
    assert any("absolute links and editable installs" in w for w in landlock.warnings)
    assert any("permissions and times" in warning for warning in landlock.warnings)


@pytest.mark.req("D10")
async def test_git_works_inside_and_reads_the_users_objects(
    confinement: Confinement, view: View, sandbox: Sandbox
) -> None:
    places = confinement.places(view)
    await make_private_git(sandbox.base, sandbox.work_dir, places.objects)
    script = (
        "git status --porcelain && git show HEAD:README.md && echo changed > README.md"
        " && git commit -qam inside && git log --format=%s && git fsck 2>&1"
    )
    ending, lines = await run_confined(
        confinement, view, Command(("/bin/sh", "-c", script)), LIMITS
    )
    assert [line.text for line in lines] == ["hello", "inside", "first"]
    assert ending.exit_code == 0
    assert git(sandbox.base.workspace, "log", "--format=%s") == b"first\n"
    assert [c.path for c in (await make_patch(sandbox)).changes] == [b"README.md"]


async def test_only_named_variables_come_along(
    confinement: Confinement, view: View, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_KEY_OF_THE_USER", "secret")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    command = Command(("/usr/bin/env",), env={"GIVEN": "by name"}, tag="run/agent")
    _, lines = await run_confined(confinement, view, command, LIMITS)
    variables = dict(line.text.split("=", 1) for line in lines)
    assert variables["GIVEN"] == "by name"
    assert variables["HOME"] == str(confinement.places(view).home)
    assert variables["AGENTCANVAS_SANDBOX"].startswith("run/agent/")
    assert set(variables).isdisjoint({"API_KEY_OF_THE_USER", "SSH_AUTH_SOCK"})


async def test_tools_below_the_home_folder_run_and_its_secrets_stay_unseen(
    confinement: Confinement,
    view: View,
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    local = tmp_path / "me" / ".local"
    write(local, {"share/app/bin/tool": "#!/bin/sh\ncat $(dirname $0)/../lib/word\n"})
    write(local, {"share/app/lib/word": "works\n", "share/keyring": "secret\n"})
    (local / "share/app/bin/tool").chmod(0o755)
    (local / "bin").mkdir()
    (local / "bin/tool").symlink_to(local / "share/app/bin/tool")
    monkeypatch.setenv("PATH", f"{local}/bin{os.pathsep}{os.environ['PATH']}")
    script = (
        f"$(readlink $(command -v tool)); cat {local}/share/keyring 2>&1 > /dev/null && echo leak"
    )
    _, lines = await run_confined(confinement, view, Command(("/bin/sh", "-c", script)), LIMITS)
    told = [line.text for line in lines]
    assert told[0] == "works"
    assert "leak" not in told


async def test_the_working_folder_can_be_one_of_the_tree(
    confinement: Confinement, view: View
) -> None:
    command = Command(("/bin/sh", "-c", "pwd"), cwd="src/deep")
    _, lines = await run_confined(confinement, view, command, LIMITS)
    assert lines[0].text == str(confinement.places(view).tree / "src/deep")


async def test_the_mac_profile_names_what_may_be_written_and_no_more(view: View) -> None:
    text = profile(replace(view, tree=Path('/odd "name')))
    writable = next(
        line for line in text.splitlines() if line.startswith("(allow file-write* (sub")
    )
    assert writable.count("subpath") == 3
    assert '(subpath "/odd \\"name")' in writable
    assert str(view.input) in text
    assert str(view.input) not in writable
    assert "network" not in text
    assert "(allow network*)" in profile(replace(view, network=Network.OPEN))
