"""What a hostile program tries. Runs inside a confinement, by itself; prints what each try gave.

Arguments: the real paths of things outside, as ``name=path``. Output: JSON {try: "done" or error},
where the error is the kernel's name for it.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import resource
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

OUT = dict(argument.split("=", 1) for argument in sys.argv[1:] if "=" in argument)


def attach() -> None:
    if ctypes.CDLL(None, use_errno=True).ptrace(16, int(OUT["parent"]), 0, 0):
        raise OSError(ctypes.get_errno(), "ptrace")


def new_namespace() -> None:
    if ctypes.CDLL(None, use_errno=True).unshare(0x10000000):
        raise OSError(ctypes.get_errno(), "unshare")


def in_a_thread() -> None:
    done: list[int] = []
    thread = threading.Thread(target=done.append, args=(1,))
    thread.start()
    thread.join()
    assert done


def read_through_a_link() -> None:
    Path("link-out").symlink_to(OUT["secret"])
    Path("link-out").read_bytes()


def link_hard() -> None:
    os.link(OUT["secret"], "hard-link")
    Path("hard-link").read_bytes()


def connect(family: int, address: object) -> None:
    with socket.socket(family) as client:
        client.connect(address)  # type: ignore[arg-type]  # each family has addresses of its own


def say_by_udp() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", ("127.0.0.1", int(OUT["udp_port"])))


def read(*names: str) -> None:
    with Path(*names).open("rb") as file:
        file.read(1)


def make_a_socketpair() -> None:
    for end in socket.socketpair():
        end.close()


def run_a_script() -> None:
    Path("script.sh").write_text("#!/bin/sh\nexit 0\n")
    Path("script.sh").chmod(0o755)
    subprocess.run(["./script.sh"], check=True)


LIBC = ctypes.CDLL(None, use_errno=True)
CPU = {"x86_64": 0, "aarch64": 1}[os.uname().machine]


def call(number: int, *arguments: object) -> int:
    """Make a system call as it is, without what a library would do first."""
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = int(LIBC.syscall(ctypes.c_long(number), *given))
    if result < 0:
        raise OSError(ctypes.get_errno(), str(number))
    return result


def attach_shared_memory() -> None:
    LIBC.shmat.restype = ctypes.c_void_p
    found = LIBC.shmat(int(OUT["segment"]), None, 0)
    if found == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "shmat")
    if ctypes.string_at(found, 6) != b"secret":
        raise LookupError


def leave_shared_memory() -> None:
    """Make what outlives its maker: it counts as done where others can see it."""
    if LIBC.shmget(0, 4096, 0o1600) < 0:
        raise OSError(ctypes.get_errno(), "shmget")
    is_apart()


def is_apart() -> None:
    if os.stat("/proc/self/ns/ipc").st_ino != int(OUT["ipc"]):  # noqa: PTH116 -- as the kernel has it
        raise LookupError


def open_a_queue(name: str, flags: int) -> None:
    os.close(call((240, 180)[CPU], name.encode(), flags, 0o600, None))
    is_apart()


def remove_a_queue(name: str) -> None:
    call((241, 181)[CPU], name.encode())


def set_an_attribute(name: str, path: str) -> None:
    os.setxattr(path, name, b"")
    os.removexattr(path, name)


def slow_down(how: str) -> None:
    neighbour = int(OUT["neighbour"])
    if how == "cores":
        os.sched_setaffinity(neighbour, {min(os.sched_getaffinity(0))})
    elif how == "scheduler":
        os.sched_setscheduler(neighbour, os.SCHED_IDLE, os.sched_param(0))
    else:
        idle = (48).to_bytes(4, sys.byteorder) + (5).to_bytes(4, sys.byteorder)
        call((314, 274)[CPU], neighbour, ctypes.create_string_buffer(idle, 48), 0)


def try_a_call(name: str) -> None:
    numbers = json.loads(OUT["calls"])[name]
    # A parameter block full of zeros: what most of them could begin with.
    call(numbers[CPU], 1, ctypes.create_string_buffer(256), 0, 0, 0, 0)


def clone_a_namespace() -> None:
    """Make a user namespace by clone(2), which takes the same flags as unshare(2)."""
    child = call((56, 220)[CPU], 0x10000000 | 17, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)


def type_into_the_terminal() -> None:
    """Inject a key press, as if the user had typed it."""
    for descriptor in (0, 1, 2):
        with suppress(OSError):
            fcntl.ioctl(descriptor, 0x5412, b"x")
            return
    fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), 0x5412, b"x")


def type_with_high_bits() -> None:
    """Say TIOCSTI with bits above those that the kernel reads: a filter must not look at them."""
    if LIBC.ioctl(0, ctypes.c_ulong(0x1_0000_5412), b"x") < 0:
        raise OSError(ctypes.get_errno(), "ioctl")


def win_a_race_of_links() -> None:
    """Swap a link back and forth under a reader; one byte of the secret is enough."""
    stop = threading.Event()
    names = [Path("race-a"), Path("race-b")]

    def swap() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            fresh = names[turn % 2]
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(("README.md", OUT["secret"])[turn % 2])
            fresh.replace("race")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(3_000):
            with suppress(OSError):
                if "ignored, so not" in Path("race").read_text():
                    return
    finally:
        stop.set()
        thread.join()
    raise PermissionError(errno.EACCES, "never read it")


def fast_open() -> None:
    with socket.socket() as client:
        client.sendto(b"x", 0x20000000, ("127.0.0.1", int(OUT["port"])))


def multipath() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262) as client:
        client.connect(("127.0.0.1", int(OUT["port"])))


def make_and_close(*kind: int) -> None:
    socket.socket(*kind).close()


def listen_on_any_port() -> None:
    with socket.socket() as server:
        server.listen()
        port = server.getsockname()[1]
    # In a network namespace it is nobody's port but ours.
    if Path("/proc/net/dev").read_text().count(":") <= 1:
        raise OSError(errno.EACCES, f"{port}, in our own namespace")


def make_privileged(how: str) -> None:
    path = Path(f"privileged-{how}")
    if how == "by chmod":
        path.write_text("x")
        path.chmod(0o4755)
    elif how == "by open":
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o4755))
    else:
        os.mknod(path, 0o4755 | stat.S_IFREG)
    if not path.stat().st_mode & stat.S_ISUID:
        raise PermissionError(errno.EPERM, "the bit did not stick")


def gain_privileges() -> None:
    status = Path("/proc/self/status").read_text()
    if "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status:
        raise PermissionError(errno.EPERM, "set-user-id programs give nothing, and nothing is left")


def find_inherited() -> None:
    """Look for descriptors beyond the three; the listing itself needs one."""
    found = {int(name) for name in os.listdir("/proc/self/fd")}  # noqa: PTH208 -- names only
    still = [number for number in found - {0, 1, 2} if is_open(number)]
    if not still:
        raise FileNotFoundError(errno.ENOENT, "no more than three")


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def find_the_user() -> None:
    """Look for the name of whoever runs all this."""
    known = [os.environ.get("USER", ""), os.environ.get("LOGNAME", ""), socket.gethostname()]
    known += Path("/etc/passwd").read_text().split()
    words = {word for text in known for word in text.split(":")}
    if words.isdisjoint(OUT["users"].split(",")) and OUT["machine"] not in words:
        raise LookupError


def open_for_writing(path: str) -> None:
    """Open what is the whole machine's, and write nothing: it might work."""
    os.close(os.open(path, os.O_WRONLY))


def see_others() -> None:
    Path("/proc", OUT["parent"], "cmdline").read_bytes()


def mount_something() -> None:
    if LIBC.mount(b"none", b"/tmp", b"tmpfs", 0, None):
        raise OSError(ctypes.get_errno(), "mount")


def fill(where: str) -> None:
    """Write where only memory is behind: nobody would see it grow."""
    path = Path(where, "filling")
    with path.open("wb") as file:
        file.truncate(1)
    path.unlink()


CREDENTIALS = {
    "ssh": ".ssh/id_ed25519",
    "aws": ".aws/credentials",
    "gcloud": ".config/gcloud/credentials.db",
    "netrc": ".netrc",
    "docker": ".docker/config.json",
    "kube": ".kube/config",
    "gh": ".config/gh/hosts.yml",
    "gnupg": ".gnupg/private-keys-v1.d/key",
    "history": ".bash_history",
}
SOCKETS = ("docker", "dbus", "ssh-agent", "x11")

TRIES: dict[str, Callable[[], object]] = {
    "work: write": lambda: Path("made").write_text("x"),
    "work: rename": lambda: Path("made").rename("moved"),
    "work: remove": lambda: Path("moved").unlink(),
    "work: folder": lambda: Path("a/b/c").mkdir(parents=True),
    "work: link": lambda: Path("inner-link").symlink_to("README.md"),
    "work: hard link": lambda: os.link("README.md", "inner-hard"),
    "work: run a script": run_a_script,
    "work: edit": lambda: Path("README.md").write_text("edited"),
    "work: thread": in_a_thread,
    "work: socketpair": make_a_socketpair,
    "home: write": lambda: (Path(os.environ["HOME"]) / "x").write_text("x"),
    "tmp: write": lambda: (Path(os.environ["TMPDIR"]) / "x").write_text("x"),
    "input: read": lambda: read(OUT["input"], "README.md"),
    "dev: null": lambda: Path("/dev/null").write_text("x"),
    "input: write": lambda: (Path(OUT["input"]) / "README.md").write_text("forged"),
    "input: make it writable": lambda: (Path(OUT["input"]) / "README.md").chmod(0o666),
    "input: add": lambda: (Path(OUT["input"]) / "added").write_text("x"),
    "input: remove": lambda: os.unlink(OUT["input"] + "/README.md"),  # noqa: PTH108 -- as the kernel has it
    "outside: read a secret": lambda: Path(OUT["secret"]).read_bytes(),
    "outside: read through a link": read_through_a_link,
    "outside: read through a hard link": link_hard,
    "outside: write": lambda: Path(OUT["victim"]).write_text("owned"),
    "outside: truncate": lambda: os.truncate(OUT["victim"], 0),
    "outside: remove": lambda: Path(OUT["victim"]).unlink(),
    "outside: list": lambda: os.listdir(OUT["folder"]),  # noqa: PTH208 -- names only
    "outside: attributes": lambda: set_an_attribute("user.agentcanvas", OUT["victim"]),
    "input: attributes": lambda: set_an_attribute("user.agentcanvas", OUT["input"] + "/README.md"),
    "outside: rename into": lambda: Path(OUT["victim"]).rename("stolen"),
    "outside: proposal": lambda: (Path(OUT["proposal"]) / "proposal.json").write_text("{}"),
    "outside: frozen tree": lambda: (Path(OUT["tree"]) / "README.md").write_text("forged"),
    "outside: real home": lambda: (Path(OUT["home"]) / ".profile").write_text("owned"),
    "system: write": lambda: Path("/usr/planted").write_text("x"),
    "system: passwords": lambda: Path("/etc/shadow").read_bytes(),
    "processes: environment": lambda: Path(f"/proc/{OUT['parent']}/environ").read_bytes(),
    "processes: memory": lambda: read("/proc", OUT["parent"], "mem"),
    "processes: signal": lambda: os.kill(int(OUT["parent"]), 0),
    "processes: attach": attach,
    "processes: namespace": new_namespace,
    "processes: namespace by clone": clone_a_namespace,
    "processes: command line": see_others,
    "processes: descriptors": lambda: read("/proc", OUT["parent"], "fd", "0"),
    "processes: where it stands": lambda: os.readlink(f"/proc/{OUT['parent']}/cwd"),  # noqa: PTH115 -- plain
    "processes: root folder": lambda: os.listdir(f"/proc/{OUT['parent']}/root/"),  # noqa: PTH208 -- names
    "processes: priority": lambda: os.setpriority(os.PRIO_PROCESS, int(OUT["parent"]), 19),
    "processes: cores": partial(slow_down, "cores"),
    "processes: scheduler": partial(slow_down, "scheduler"),
    "processes: scheduler's attributes": partial(slow_down, "attributes"),
    "processes: shared memory": attach_shared_memory,
    "leaves: shared memory": leave_shared_memory,
    "processes: message queue": lambda: open_a_queue(OUT["queue"], os.O_RDWR),
    "processes: remove a message queue": lambda: remove_a_queue(OUT["queue"]),
    "leaves: message queue": lambda: open_a_queue(OUT["queue"] + "-left", os.O_RDWR | os.O_CREAT),
    "processes: limits": lambda: resource.prlimit(int(OUT["parent"]), resource.RLIMIT_CORE, (0, 0)),
    "outside: other sandbox": lambda: read(OUT["other"], "README.md"),
    "outside: write to other sandbox": lambda: Path(OUT["other"], "x").write_text("x"),
    "outside: store": lambda: read(OUT["store"]),
    "outside: token of the server": lambda: read(OUT["server"]),
    "outside: race of links": win_a_race_of_links,
    "system: mount": mount_something,
    "system: set-user-id by chmod": partial(make_privileged, "by chmod"),
    "system: set-user-id by open": partial(make_privileged, "by open"),
    "system: set-user-id by mknod": partial(make_privileged, "by mknod"),
    "system: privileges": gain_privileges,
    "system: device": lambda: os.mknod("device", 0o666 | stat.S_IFCHR, os.makedev(1, 1)),
    "system: memory device": lambda: read("/dev/mem"),
    "system: kernel log": lambda: read("/dev/kmsg"),
    "system: disk": lambda: read(OUT["disk"]),
    "system: core pattern": partial(open_for_writing, "/proc/sys/kernel/core_pattern"),
    "system: caches": partial(open_for_writing, "/proc/sys/vm/drop_caches"),
    "system: sysrq": partial(open_for_writing, "/proc/sysrq-trigger"),
    "system: interrupts": partial(open_for_writing, "/proc/irq/default_smp_affinity"),
    "system: cgroups": lambda: Path("/sys/fs/cgroup/x").mkdir(),
    "system: keys": lambda: call((250, 219)[CPU], 0, -3, 1),
    "system: key press": type_into_the_terminal,
    "system: key press with high bits": type_with_high_bits,
    "system: fill /": partial(fill, "/"),
    "system: fill /dev": partial(fill, "/dev"),
    "leaks: descriptors": find_inherited,
    "leaks: name of the user": find_the_user,
    "network: tcp": lambda: connect(socket.AF_INET, ("127.0.0.1", int(OUT["port"]))),
    "network: udp": say_by_udp,
    "network: fast open": fast_open,
    "network: multipath": multipath,
    "network: listen": listen_on_any_port,
    "network: raw": lambda: make_and_close(socket.AF_INET, socket.SOCK_RAW, 1),
    "network: packet": lambda: make_and_close(17, socket.SOCK_RAW, 0),
    "network: vsock": lambda: make_and_close(40, socket.SOCK_STREAM, 0),
    "network: crypto": lambda: make_and_close(38, socket.SOCK_SEQPACKET, 0),
    "network: unix socket": lambda: connect(socket.AF_UNIX, OUT["socket"]),
    "network: abstract socket": lambda: connect(socket.AF_UNIX, "\0" + OUT["abstract"]),
}
for _name, _path in CREDENTIALS.items():
    TRIES[f"credentials: {_name}"] = partial(read, OUT.get("home", ""), _path)
for _name in SOCKETS:
    _address = f"{OUT.get('sockets', '')}/{_name}"
    TRIES[f"sockets: {_name}"] = partial(connect, socket.AF_UNIX, _address)
for _name in json.loads(OUT.get("calls", "{}")):
    TRIES[f"calls: {_name}"] = partial(try_a_call, _name)


def main() -> None:
    """Try everything."""
    results = {}
    for name, attempt in TRIES.items():
        try:
            attempt()
        except OSError as error:
            results[name] = errno.errorcode.get(error.errno or 0, type(error).__name__)
        except (LookupError, subprocess.SubprocessError) as error:
            results[name] = type(error).__name__
        else:
            results[name] = "done"
    sys.stdout.write(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
