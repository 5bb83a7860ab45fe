"""What a confined process can and cannot do, by trying it (D8, D9, S2)."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import pwd
import resource
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from agentcanvas.errors import SandboxError
from agentcanvas.sandbox.confine import Bind, Command, Confinement, Network, View
from agentcanvas.sandbox.confinements.seatbelt import profile
from agentcanvas.sandbox.confinements.seccomp import (
    FORBIDDEN,
    OF_THE_MACHINES_IPC,
    OF_THE_USERS_FILES,
)
from agentcanvas.sandbox.diff import make_patch
from agentcanvas.sandbox.egress.proxy import open_egress
from agentcanvas.sandbox.egress.rules import Rules
from agentcanvas.sandbox.generation import take_generation
from agentcanvas.sandbox.prepare import Sandbox, prepare_sandbox
from agentcanvas.sandbox.private_git import make_private_git
from agentcanvas.sandbox.process import Limits, run_confined
from agentcanvas.sandbox.views import reader_view, worker_view
from tests.sandbox.conftest import RUN, git, tree_of, write
from tests.sandbox.ordinary_user import ordinary_process
from tests.sandbox.probe import CREDENTIALS, SOCKETS

pytestmark = pytest.mark.req("PR4")

EVERYWHERE = {0, 65534}
"""Root and nobody: their names tell nothing."""
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
async def other(sandbox: Sandbox) -> Sandbox:
    """Give another agent of the run its sandbox."""
    return await prepare_sandbox(sandbox.base, "other")


@pytest.fixture
def outside(
    tmp_path: Path, home: Path, sandbox: Sandbox, other: Sandbox, datagrams: socket.socket
) -> Iterator[dict[str, str]]:
    """Set up what a hostile program would like to reach, and look afterwards."""
    write(tmp_path, {"outside/victim": "precious"})
    workspace = sandbox.base.workspace
    internal = {"agentcanvas.db": "the store", "server.json": "the token"}
    write(workspace / ".agentcanvas", dict(internal))
    write(home, dict.fromkeys(CREDENTIALS.values(), "credential"))
    neighbours = tree_of(other.work_dir)
    limits = resource_limits()
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        # The name of a socket must be short.
        short = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ac-", dir="/tmp")))
        for name in (*SOCKETS, "any"):
            listening(stack, str(short / name))
        listening(stack, f"\0{short}")
        neighbour = stack.enter_context(ordinary_process())
        segment = stack.enter_context(shared_memory(b"secret"))
        queue = stack.enter_context(message_queue())
        ways = ways_to_run(neighbour)
        yield {
            "neighbour": str(neighbour),
            "segment": str(segment),
            "queue": queue,
            "ipc": str(Path("/proc/self/ns/ipc").stat().st_ino),
            "victim": f"{tmp_path}/outside/victim",
            "folder": f"{tmp_path}/outside",
            "secret": f"{workspace}/secret.log",
            "store": f"{workspace}/.agentcanvas/agentcanvas.db",
            "server": f"{workspace}/.agentcanvas/server.json",
            "other": str(other.work_dir),
            "proposal": str(sandbox.paths.proposal_dir),
            "tree": str(sandbox.base.tree),
            "home": str(home),
            "parent": str(os.getpid()),
            "port": str(tcp.getsockname()[1]),
            "udp_port": str(datagrams.getsockname()[1]),
            "socket": str(short / "any"),
            "sockets": str(short),
            "abstract": str(short),
            "calls": json.dumps(FORBIDDEN),
            "disk": disk_under("/"),
            "users": ",".join(
                user.pw_name for user in pwd.getpwall() if user.pw_uid not in EVERYWHERE
            ),
            "machine": platform.node(),
        }
        assert ways_to_run(neighbour) == ways
    assert tree_of(tmp_path / "outside") == {b"victim": ("file", b"precious")}
    assert not (home / ".profile").exists()
    assert list(sandbox.paths.proposal_dir.iterdir()) == []
    assert tree_of(other.work_dir) == neighbours
    assert {name: (workspace / ".agentcanvas" / name).read_text() for name in internal} == internal
    assert resource_limits() == limits


def listening(stack: ExitStack, address: str) -> None:
    listener = stack.enter_context(socket.socket(socket.AF_UNIX))
    listener.bind(address)
    listener.listen()


def resource_limits() -> tuple[object, ...]:
    return resource.getrlimit(resource.RLIMIT_CORE), os.getpriority(os.PRIO_PROCESS, 0)


def ways_to_run(pid: int) -> tuple[object, ...]:
    return os.sched_getaffinity(pid), os.sched_getscheduler(pid), os.getpriority(0, pid)


@contextmanager
def shared_memory(content: bytes) -> Iterator[int]:
    """Share memory as programs with windows do; gives its number."""
    libc = ctypes.CDLL(None)
    libc.shmat.restype = ctypes.c_void_p
    number = libc.shmget(0, 4096, 0o1600)
    try:
        here = libc.shmat(number, None, 0)
        ctypes.memmove(here, content, len(content))
        yield number
        libc.shmdt(ctypes.c_void_p(here))
    finally:
        libc.shmctl(number, 0, None)


@contextmanager
def message_queue() -> Iterator[str]:
    """Make a queue of the user's, and see that it is still there and alone afterwards."""
    libc = ctypes.CDLL(None)
    name = f"agentcanvas-{os.getpid()}"
    os.close(libc.mq_open(f"/{name}".encode(), os.O_RDWR | os.O_CREAT, 0o600, None))
    try:
        yield name
    finally:
        gone = libc.mq_unlink(f"/{name}".encode())
        left = libc.mq_unlink(f"/{name}-left".encode())
    assert (gone, left) == (0, -1)


def disk_under(path: str) -> str:
    device = Path(path).stat().st_dev
    return f"/dev/block/{os.major(device)}:{os.minor(device)}"


# What works, without harm. Loopback is there in a network namespace, but leads nowhere. Landlock
# does not guard metadata and shows command lines and names; its warnings say so.
HARMLESS = {
    "bubblewrap": {"network: udp"},
    "landlock": {"input: make it writable", "processes: command line", "leaks: name of the user"},
}
OF_ITS_OWN = {"work", "home", "tmp", "dev"}


def done(results: dict[str, str]) -> set[str]:
    return {name for name, result in results.items() if result == "done"}


def should_work(confinement: Confinement, results: dict[str, str]) -> set[str]:
    own = {name for name in results if name.split(":")[0] in OF_ITS_OWN}
    return own | {"input: read"} | HARMLESS[confinement.name]


async def probed(confinement: Confinement, view: View, outside: dict[str, str]) -> dict[str, str]:
    told = outside | {"input": str(confinement.places(view).input)}
    arguments = [f"{name}={value}" for name, value in told.items()]
    command = Command((PYTHON, "-I", str(PROBE), *arguments))
    ending, lines = await run_confined(confinement, view, command, LIMITS)
    assert ending.exit_code == 0, lines
    return dict(json.loads(lines[-1].text))


@pytest.mark.req("D8", "S2")
async def test_a_hostile_program_reaches_nothing_outside(
    confinement: Confinement, view: View, outside: dict[str, str], sandbox: Sandbox
) -> None:
    before = tree_of(sandbox.base.workspace), tree_of(sandbox.paths.input_dir)
    results = await probed(confinement, view, outside)
    assert done(results) == should_work(confinement, results)
    assert len(done(results) - HARMLESS[confinement.name]) == 14
    assert len(results) >= 130, "every other try was refused"

    assert (tree_of(sandbox.base.workspace), tree_of(sandbox.paths.input_dir)) == before
    changed = {change.path for change in (await make_patch(sandbox)).changes}
    assert {b"README.md", b"inner-hard", b"inner-link", b"script.sh"} <= changed
    assert b"made" not in changed


async def test_the_filter_itself_refuses_every_dangerous_call(
    confinement: Confinement, view: View, outside: dict[str, str]
) -> None:
    results = await probed(confinement, view, outside)
    calls = {name: result for name, result in results.items() if name.startswith("calls: ")}
    # Another answer would be the kernel's, which looked at the arguments.
    assert calls == {f"calls: {name}": "ENOSYS" for name in FORBIDDEN}
    assert len(calls) == 44
    # Refused before the kernel asks whether there is a terminal at all.
    assert results["system: key press with high bits"] == "EPERM"
    assert results["processes: namespace by clone"] == "EPERM"
    assert results["system: set-user-id by open"] == "EPERM"


async def test_what_the_host_has_open_is_closed_inside(
    confinement: Confinement, view: View, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with secret.open("rb") as file:
        os.set_inheritable(file.fileno(), True)  # noqa: FBT003 -- its signature
        os.dup2(file.fileno(), 57, inheritable=True)
        try:
            command = Command(("/bin/sh", "-c", "ls -l /proc/self/fd"))
            _, lines = await run_confined(confinement, view, command, LIMITS)
        finally:
            os.close(57)
    numbers = [line.text.split(" -> ")[0].split()[-1] for line in lines if "->" in line.text]
    assert numbers == ["0", "1", "2", "3"], "the last is the listing's own"
    assert "secret" not in " ".join(line.text for line in lines)


async def test_shared_memory_is_there_and_is_limited(bubblewrap: Confinement, view: View) -> None:
    script = "echo x > /dev/shm/x && echo fine; head -c 300000000 /dev/zero > /dev/shm/y"
    _, lines = await run_confined(bubblewrap, view, Command(("/bin/sh", "-c", script)), LIMITS)
    assert lines[0].text == "fine"
    assert "No space left" in lines[1].text


async def test_segments_are_too_small_to_hide_memory_in(
    bubblewrap: Confinement, view: View
) -> None:
    sizes = (64 * 1024, 64 * 1024 + 1, 1 << 32)
    script = (
        "import ctypes; make = ctypes.CDLL(None).shmget; make.argtypes = "
        "(ctypes.c_int, ctypes.c_size_t, ctypes.c_int); "
        f"print(*(make(0, size, 0o1600) >= 0 for size in {sizes}))"
    )
    _, lines = await run_confined(bubblewrap, view, Command((PYTHON, "-c", script)), LIMITS)
    assert [line.text for line in lines] == ["True False False"]


async def test_without_an_ipc_namespace_nothing_is_shared_with_the_machine(
    landlock: Confinement, view: View, outside: dict[str, str]
) -> None:
    results = await probed(landlock, view, outside | {"calls": json.dumps(OF_THE_MACHINES_IPC)})
    calls = {name: result for name, result in results.items() if name.startswith("calls: ")}
    assert calls == {f"calls: {name}": "ENOSYS" for name in OF_THE_MACHINES_IPC}
    assert len(calls) == 13


async def test_where_files_are_in_reach_no_attribute_of_them_is_changed(
    landlock: Confinement, view: View, outside: dict[str, str]
) -> None:
    results = await probed(landlock, view, outside | {"calls": json.dumps(OF_THE_USERS_FILES)})
    calls = {name: result for name, result in results.items() if name.startswith("calls: ")}
    assert calls == {
        f"calls: {name}": errno.errorcode[errno.EOPNOTSUPP] for name in OF_THE_USERS_FILES
    }
    assert len(calls) == 9


@pytest.mark.parametrize("planted", ["vendor", "vendor/deep"])
async def test_a_mount_never_follows_a_link_that_the_agent_has_planted(
    bubblewrap: Confinement, view: View, tmp_path: Path, planted: str
) -> None:
    target, shown = tmp_path / "outside", tmp_path / "dependency"
    target.mkdir()
    shown.mkdir()
    link = view.tree / planted
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(f"/oldroot{target}")
    bind = Bind(shown, view.workspace / "vendor/deep")
    with pytest.raises(SandboxError, match=f"{planted} is a link"):
        await run_confined(bubblewrap, replace(view, read_only=(bind,)), Command(("true",)), LIMITS)
    assert list(target.iterdir()) == [], "bubblewrap would have made a folder there"


async def test_a_working_folder_that_is_a_link_leads_nowhere(
    confinement: Confinement, view: View, tmp_path: Path
) -> None:
    write(tmp_path, {"outside/victim": "precious"})
    (view.tree / "lure").symlink_to(tmp_path / "outside")
    command = Command(("/bin/sh", "-c", "cat victim; echo owned > victim"), cwd="lure")
    _, lines = await run_confined(confinement, view, command, LIMITS)
    assert "precious" not in [line.text for line in lines]
    assert (tmp_path / "outside/victim").read_text() == "precious"


async def test_the_user_inside_is_an_ordinary_one_with_a_name(
    bubblewrap: Confinement, view: View
) -> None:
    script = "id -un; id -u; getent passwd agent | cut -d: -f6; echo $USER; hostname; ls -ld ."
    _, lines = await run_confined(bubblewrap, view, Command(("/bin/sh", "-c", script)), LIMITS)
    *told, listing = [line.text for line in lines]
    assert told == ["agent", "1000", "/sandbox/home", "agent", "sandbox"]
    assert " agent agent " in listing


async def test_an_open_network_opens_the_network_and_no_unix_socket(
    confinement: Confinement, view: View, outside: dict[str, str], datagrams: socket.socket
) -> None:
    results = await probed(confinement, replace(view, network=Network.OPEN), outside)
    assert datagrams.recv(1) == b"x"
    opened = done(results) - should_work(confinement, results)
    assert {"network: tcp"} <= opened
    assert opened <= {f"network: {n}" for n in ("tcp", "udp", "fast open", "multipath", "listen")}
    await probed(confinement, view, outside)
    with pytest.raises(BlockingIOError):
        datagrams.recv(1)


@pytest.mark.req("D11")
@pytest.mark.parametrize("network", [Network.MODEL, Network.HOSTS])
async def test_a_door_opens_nothing_beside_itself(
    confinement: Confinement, view: View, outside: dict[str, str], network: Network
) -> None:
    async with open_egress(Rules(), lambda _: None) as door:
        results = await probed(confinement, replace(view, network=network, door=door), outside)
    assert done(results) == should_work(confinement, results)


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
