"""The program that confines a command by Landlock and seccomp, and outlives its descendants.

``start`` runs it, in a bare interpreter (``-I -S``); it stands alone, because it must be there in
milliseconds. It becomes a sub-reaper: orphans come back to it instead of escaping to init. When the
command ends, when it is told to (SIGTERM) or when whoever started it dies, it kills every
descendant and leaves only after the kernel says that none is left.

Options: --parent PID, --report-to FD, --network none|open, --read PATH, --write PATH, --device
PATH, --unconfined. Exit code 78 when the kernel cannot enforce what is asked: it fails closed.
"""

from __future__ import annotations

# The bare module: `signal` dresses the same functions in enums, for a third of the start-up time.
import _signal as signal  # type: ignore[import-not-found]  # has no stubs, being private
import ctypes
import os
import resource
import struct
import sys
import warnings  # noqa: F401 - execvp imports it, which the restriction would forbid by then

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to import than all the rest
    pass

CANNOT_CONFINE = 78
LEAST_ABI = 3  # below, truncate(2) outside the tree cannot be forbidden

_libc = ctypes.CDLL(None, use_errno=True)
_NUMBERS_OF_CPU = {"x86_64": 0, "aarch64": 1}

# prctl(2)
_SET_DEATH_SIGNAL, _SET_SECCOMP, _DROP_CAPABILITY = 1, 22, 24
_SET_SUBREAPER, _NO_NEW_PRIVILEGES = 36, 38
_CAPABILITY_VERSION, _MOST_CAPABILITIES = 0x20080522, 64

# landlock(7); the numbers are the same on every architecture
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_RIGHTS_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15}
_ALL_RIGHTS = 16
_ABI_WITH_NETWORK, _ABI_WITH_SCOPES = 4, 6

# seccomp(2) programs
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_EPERM, _EACCES, _ENOSYS = 1, 13, 38
_ARCHITECTURE = (0xC000003E, 0xC00000B7)
_SOCKET = (41, 198)
_X32 = 0x40000000
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_FORBIDDEN = {
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "ptrace": (101, 117),
    "mount": (165, 40),
    "unshare": (272, 97),
    "setns": (308, 268),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "pidfd_getfd": (438, 438),
}


class CannotConfine(Exception):
    """The kernel cannot keep the promise; the sentence says which part."""


def landlock_abi() -> int:
    """Ask the kernel, not the list of modules: 0 when there is no Landlock."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, 1)))


def restrict_files(read: list[str], write: list[str], devices: list[str], network: str) -> None:
    """Leave the process only the given paths, and TCP only when the network is open."""
    abi = landlock_abi()
    if abi < LEAST_ABI:
        raise CannotConfine(f"Landlock ABI {abi}, {LEAST_ABI} is needed (Linux 6.2)")
    rights = (1 << _RIGHTS_BY_ABI.get(abi, _ALL_RIGHTS)) - 1
    ports = 3 if network == "none" and abi >= _ABI_WITH_NETWORK else 0
    scopes = 3 if abi >= _ABI_WITH_SCOPES else 0
    size = 8 if abi < _ABI_WITH_NETWORK else 16 if abi < _ABI_WITH_SCOPES else 24
    attributes = struct.pack("QQQ", rights, ports, scopes)[:size]
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, attributes, size, 0), "landlock ruleset")
    for path in read:
        _allow(ruleset, path, (_EXECUTE | _READ_FILE | _READ_DIR) & rights)
    for path in devices:
        _allow(ruleset, path, (_READ_FILE | _WRITE_FILE | _IOCTL_DEV) & rights)
    for path in write:
        _allow(ruleset, path, rights & ~_IOCTL_DEV)
    _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0), "landlock")
    os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what is not there needs no rule
    if not os.path.isdir(path):  # noqa: PTH112 -- pathlib costs more than all the rest of the start
        rights &= _OF_A_FILE
    rule = struct.pack("=Qi", rights, descriptor)
    _checked(_libc.syscall(_ADD_RULE, ruleset, 1, rule, 0), f"landlock rule for {path}")
    os.close(descriptor)


def drop_capabilities() -> None:
    """Leave root no more than the ownership of files; Landlock does not bind CAP_PERFMON."""
    if os.geteuid():
        return
    for number in range(_MOST_CAPABILITIES):
        if _libc.prctl(_DROP_CAPABILITY, number, 0, 0, 0):
            break  # past the last one that this kernel knows
    header, none = struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24)
    _checked(_libc.capset(header, none), "capabilities")


def restrict_calls(network: str) -> None:
    """Forbid what Landlock does not see: sockets, other processes' memory, namespaces, io_uring."""
    cpu = _NUMBERS_OF_CPU.get(os.uname().machine)
    if cpu is None:
        raise CannotConfine(f"no list of system calls for {os.uname().machine}")
    program = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, _ARCHITECTURE[cpu]),
        (_RETURN, 0, 0, _FAIL | _EPERM),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _FAIL | _ENOSYS),
    ]
    for numbers in _FORBIDDEN.values():
        # ENOSYS, so that libraries fall back instead of giving up
        program += [(_EQUAL, 0, 1, numbers[cpu]), (_RETURN, 0, 0, _FAIL | _ENOSYS)]
    # A unix socket is a door to docker, D-Bus or an ssh agent, so its family is never allowed.
    families = (_INET, _INET6, _NETLINK) if network == "open" else ()
    program += [(_EQUAL, 1, 0, _SOCKET[cpu]), (_RETURN, 0, 0, _ALLOW), (_LOAD, 0, 0, 16)]
    for family in families:
        program += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
    program += [(_RETURN, 0, 0, _FAIL | _EACCES)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    _checked(_libc.prctl(_SET_SECCOMP, 2, ctypes.c_char_p(header), 0, 0), "seccomp")


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise CannotConfine(f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def descendants(of: int) -> list[int]:
    """List the processes below one, itself left out; zombies are not processes any more."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 -- as above
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 -- as above
                state, parent = file.read().rpartition(b")")[2].split(maxsplit=2)[:2]
        except (OSError, ValueError):
            continue
        if state != b"Z":
            children.setdefault(int(parent), []).append(int(name))
        else:
            children.setdefault(int(parent), [])
    found: list[int] = []
    waiting = [of]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def end_all() -> None:
    """Kill every descendant; comes back only when there is none left."""
    while True:
        frozen: set[int] = set()
        # What is stopped cannot fork: freeze until nobody new turns up, then kill.
        while fresh := set(descendants(os.getpid())) - frozen:
            _signal_all(fresh, signal.SIGSTOP)
            frozen |= fresh
        _signal_all(frozen, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        signal.sigtimedwait({signal.SIGCHLD}, 0.01)


def _signal_all(processes: set[int], number: int) -> None:
    for process in processes:
        try:
            os.kill(process, number)
        except OSError:
            continue


def run(command: list[str], options: dict[str, list[str]]) -> int:
    """Start the command confined, and stay until nothing of it is left; gives its exit code."""
    watched = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
    signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    _checked(_libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0), "sub-reaper")
    _checked(_libc.prctl(_SET_DEATH_SIGNAL, int(signal.SIGTERM), 0, 0, 0), "death signal")
    if options["--parent"] and os.getppid() != int(options["--parent"][0]):
        return CANNOT_CONFINE  # it died before the kernel could be asked to tell
    report_to = int(options["--report-to"][0])
    child = os.fork()
    if child == 0:
        os.close(report_to)
        _become(command, options, watched)
    os.write(report_to, b'{"child-pid": %d}' % os.getpid())
    os.close(report_to)
    _let_go_of_pipes()
    status = _watch(child, watched)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _let_go_of_pipes() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)


def _watch(child: int, watched: set[int]) -> int:
    """Wait for the command's end or an order to end it; nothing is left when this returns."""
    while True:
        if signal.sigwait(watched) != signal.SIGCHLD:
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            end_all()
            return status
        while True:
            done, status = os.waitpid(-1, os.WNOHANG)
            if done == child:
                end_all()
                return status
            if not done:
                break


def _become(command: list[str], options: dict[str, list[str]], watched: set[int]) -> None:
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if not options["--unconfined"]:
            network = options["--network"][0]
            read, write, devices = options["--read"], options["--write"], options["--device"]
            restrict_files(read, write, devices, network)
            drop_capabilities()
            restrict_calls(network)
        os.closerange(3, 4096)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, watched)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # an interpreter ignores them, for itself
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 -- running it is what this program is for
    except CannotConfine as reason:
        os.write(2, f"sandbox: {reason}\n".encode())
        os._exit(CANNOT_CONFINE)
    except OSError as error:
        os.write(2, f"sandbox: {command[0]}: {error.strerror}\n".encode())
        os._exit(127)


def main(arguments: list[str]) -> int:
    """Read the command line."""
    split = arguments.index("--")
    flags = ("--parent", "--report-to", "--network", "--read", "--write", "--device")
    options: dict[str, list[str]] = {flag: [] for flag in (*flags, "--unconfined")}
    given = iter(arguments[:split])
    for flag in given:
        options[flag].append("yes" if flag == "--unconfined" else next(given))
    return run(arguments[split + 1 :], options)


def start() -> None:
    """Run as a program; nothing is open any more at its end, and tidying up takes milliseconds."""
    os._exit(main(sys.argv[1:]))
