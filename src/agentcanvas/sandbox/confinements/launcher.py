"""The program that confines a command by Landlock and seccomp, and outlives its descendants.

``start`` runs it, in a bare interpreter (``-I -S``); it stands alone, because it must be there in
milliseconds. It becomes a sub-reaper: orphans come back to it instead of escaping to init. When the
command ends, when it is told to (SIGTERM) or when whoever started it dies, it kills every
descendant and leaves only after the kernel says that none is left.

Options: --parent PID; the descriptors --report-to, --go and --calls (see ``confine.Wires``);
--network none|open, --port N (TCP to it is allowed nevertheless), --read PATH, --write PATH,
--device PATH; --unconfined. Exit code 78 when the kernel cannot enforce what is asked.
"""

from __future__ import annotations

# The bare modules: `signal` and `ctypes` dress the same up, for a third of the start-up time.
import _signal as signal  # type: ignore[import-not-found]  # has no stubs, being private
import os
import struct
import sys
import warnings  # noqa: F401 - execvp imports it, which the restriction would forbid by then
from _ctypes import (
    FUNCFLAG_CDECL,
    FUNCFLAG_USE_ERRNO,
    Array,
    CFuncPtr,
    _SimpleCData,
    addressof,
    dlopen,
    dlsym,
    get_errno,
)

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to import than all the rest
    pass

CANNOT_CONFINE = 78
LEAST_ABI = 3  # below, truncate(2) outside the tree cannot be forbidden


class _Int(_SimpleCData):  # type: ignore[type-arg]  # here it takes none
    _type_ = "i"


class _Char(_SimpleCData):  # type: ignore[type-arg]  # as above
    _type_ = "c"


class _Function(CFuncPtr):
    _flags_ = FUNCFLAG_CDECL | FUNCFLAG_USE_ERRNO
    _restype_ = _Int


class _Library:
    """Finds functions when they are called: not every system that imports this has them."""

    def __getattr__(self, name: str) -> _Function:
        opened = dlopen(None, 0)  # type: ignore[arg-type]  # None is what everybody has open
        return _Function(dlsym(opened, name))


_libc = _Library()

# prctl(2)
_SET_DEATH_SIGNAL, _SET_SECCOMP, _DROP_CAPABILITY = 1, 22, 24
_SET_SUBREAPER, _NO_NEW_PRIVILEGES = 36, 38
_CAPABILITY_VERSION, _MOST_CAPABILITIES = 0x20080522, 64

# landlock(7); the numbers are the same on every architecture
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_OF_A_PATH, _RULE_OF_A_PORT, _CONNECT = 1, 2, 2
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_RIGHTS_BY_ABI = {1: 13, 2: 14, 3: 15, 4: 15}
_ALL_RIGHTS = 16
_ABI_WITH_NETWORK, _ABI_WITH_SCOPES = 4, 6

_MOST_OF_A_FILTER = 65_536


class CannotConfine(Exception):
    """The kernel cannot keep the promise; the sentence says which part."""


def landlock_abi() -> int:
    """Ask the kernel, not the list of modules: 0 when there is no Landlock."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, 1)))


def restrict(options: dict[str, list[str]]) -> None:
    """Leave the process only the given paths, and TCP to one port or with an open network."""
    abi = landlock_abi()
    if abi < LEAST_ABI:
        raise CannotConfine(f"Landlock ABI {abi}, {LEAST_ABI} is needed (Linux 6.2)")
    rights = (1 << _RIGHTS_BY_ABI.get(abi, _ALL_RIGHTS)) - 1
    if options["--port"] and abi < _ABI_WITH_NETWORK:
        raise CannotConfine(f"Landlock ABI {abi} cannot guard ports, {_ABI_WITH_NETWORK} can")
    ports = 3 if options["--network"] == ["none"] and abi >= _ABI_WITH_NETWORK else 0
    scopes = 3 if abi >= _ABI_WITH_SCOPES else 0
    size = 8 if abi < _ABI_WITH_NETWORK else 16 if abi < _ABI_WITH_SCOPES else 24
    attributes = struct.pack("QQQ", rights, ports, scopes)[:size]
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, attributes, size, 0), "landlock ruleset")
    for path in options["--read"]:
        _allow(ruleset, path, (_EXECUTE | _READ_FILE | _READ_DIR) & rights)
    for path in options["--device"]:
        _allow(ruleset, path, (_READ_FILE | _WRITE_FILE | _IOCTL_DEV) & rights)
    for path in options["--write"]:
        _allow(ruleset, path, rights & ~_IOCTL_DEV)
    for port in options["--port"]:
        rule = struct.pack("=QQ", _CONNECT, int(port))
        _checked(_libc.syscall(_ADD_RULE, ruleset, _RULE_OF_A_PORT, rule, 0), f"port {port}")
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
    _checked(
        _libc.syscall(_ADD_RULE, ruleset, _RULE_OF_A_PATH, rule, 0), f"landlock rule for {path}"
    )
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


def restrict_calls(program: bytes) -> None:
    """Load the seccomp program, written by whoever started us: it sees what Landlock does not."""

    class _Program(Array[_Char]):
        _type_ = _Char
        _length_ = len(program)

    code = _Program.from_buffer_copy(program)
    header = struct.pack("HxxxxxxP", len(program) // 8, addressof(code))
    _checked(_libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    _checked(_libc.prctl(_SET_SECCOMP, 2, header, 0, 0), "seccomp")


def _checked(result: int, what: str) -> int:
    if result < 0:
        raise CannotConfine(f"{what}: {os.strerror(get_errno())}")
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
    report_to, go, calls = (int(options[f"--{name}"][0]) for name in ("report-to", "go", "calls"))
    os.write(report_to, b'{"child-pid": %d}' % os.getpid())
    os.close(report_to)
    if not os.read(go, 1):
        return CANNOT_CONFINE  # whoever started us has given up, or could not set the limits
    os.close(go)
    child = os.fork()
    if child == 0:
        _become(command, options, calls, watched)
    os.close(calls)
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


def _become(
    command: list[str], options: dict[str, list[str]], calls: int, watched: set[int]
) -> None:
    try:
        os.setsid()
        program = os.read(calls, _MOST_OF_A_FILTER)
        if not options["--unconfined"]:
            restrict(options)
            drop_capabilities()
            restrict_calls(program)
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
    wires = ("--parent", "--report-to", "--go", "--calls")
    rules = ("--network", "--port", "--read", "--write", "--device", "--unconfined")
    options: dict[str, list[str]] = {flag: [] for flag in (*wires, *rules)}
    given = iter(arguments[:split])
    for flag in given:
        options[flag].append("yes" if flag == "--unconfined" else next(given))
    return run(arguments[split + 1 :], options)


def start() -> None:
    """Run as a program; nothing is open any more at its end, and tidying up takes milliseconds."""
    os._exit(main(sys.argv[1:]))
