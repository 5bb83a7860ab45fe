"""The filter of system calls that every Linux back-end loads, written as a seccomp program.

It closes what neither namespaces nor Landlock see: kernel interfaces with a long history of holes,
keyrings, terminal injection, set-user-id files, and socket families that no namespace contains. It
only forbids what no build tool needs, and answers ENOSYS, so that libraries fall back.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from enum import Enum
from functools import lru_cache

from agentcanvas.errors import SandboxError

_CPUS = {"x86_64": 0, "aarch64": 1}
_ARCHITECTURE = (0xC000003E, 0xC00000B7)
_X32 = 0x40000000
_ABSENT = -1  # this processor's kernel does not have the call

_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_OF, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_EPERM, _EACCES, _ENOSYS, _EOPNOTSUPP = 1, 13, 38, 95
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

Instruction = tuple[int, int, int, int]
Rule = tuple[tuple[int, int], tuple[Instruction, ...]]
_ALLOWED: Instruction = (_RETURN, 0, 0, _ALLOW)

# The number of each call on x86_64 and aarch64.
FORBIDDEN = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clock_settime": (227, 112),
    "clone3": (435, 435),  # its flags are in memory, where a filter cannot look: clone serves
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, _ABSENT),
    "iopl": (172, _ABSENT),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "openat2": (437, 437),  # as clone3: openat serves
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}

# Where a PID namespace keeps others out of sight, debuggers and sanitizers may have these.
OF_OTHER_PROCESSES = {
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
}

# Where there is no IPC namespace, these lead to the memory of the user's other programs, by number
# or by a name that is no path, and what they make outlives its maker.
OF_THE_MACHINES_IPC = {
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
}

# Where the user's files are in reach, no Landlock rule keeps these from them. What tools that copy
# files expect of a disk without attributes is said.
OF_THE_USERS_FILES = {
    "file_setattr": (469, 469),
    "fremovexattr": (199, 16),
    "fsetxattr": (190, 7),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
}

# No capability and no Landlock rule keeps these from the user's other processes: they may be
# called for oneself (0) alone. call: (numbers, which argument is the process)
_FOR_ONESELF = {
    "ioprio_set": ((251, 30), 1),
    "prlimit64": ((302, 261), 0),
    "sched_setaffinity": ((203, 122), 0),
    "sched_setattr": ((314, 274), 0),
    "sched_setparam": ((142, 118), 0),
    "sched_setscheduler": ((144, 119), 0),
    "setpriority": ((141, 140), 1),
}

_CLONE, _IOCTL, _SOCKET, _LISTEN = (56, 220), (16, 29), (41, 198), (50, 201)
_LARGEST_SEGMENT = 64 * 1024
"""Of System V shared memory, which nobody sees fill up: a namespace has 4,096 of them at most."""
_NEW_NAMESPACES = 0x7E020000
_TYPE_INTO_A_TERMINAL = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

# call: (numbers, which argument is the mode)
_TAKES_A_MODE = {
    "chmod": ((90, _ABSENT), 1),
    "creat": ((85, _ABSENT), 1),
    "fchmod": ((91, 52), 1),
    "fchmodat": ((268, 53), 2),
    "fchmodat2": ((452, 452), 2),
    "mknod": ((133, _ABSENT), 1),
    "mknodat": ((259, 33), 2),
}
# call: (numbers, flags, mode); the mode counts only when a file is made
_OPENS = {"open": ((2, _ABSENT), 1, 2), "openat": ((257, 56), 2, 3)}
_MAKES_A_FILE = 0o100 | 0o20000000
_SET_USER_ID = 0o4000

# A connection made by sending does not pass Landlock's check of the port. call: (numbers, flags)
_CONNECTS_BY_SENDING = {
    "sendto": ((44, 206), 3),
    "sendmsg": ((46, 211), 2),
    "sendmmsg": ((307, 269), 3),
}
_FAST_OPEN = 0x20000000

_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_KIND_OF_SOCKET, _STREAM = 0xF, 1
_TCP = (0, 6)  # named, because multipath TCP is not what Landlock takes for TCP


class Sockets(Enum):
    """Which sockets a process may make; a unix socket can be a door to docker or D-Bus."""

    NONE = "none"
    TCP = "outgoing TCP, for Landlock to judge"
    INTERNET = "internet"
    IN_OWN_NAMESPACE = "in a network namespace of its own"


_FAMILIES = {
    Sockets.NONE: (),
    Sockets.TCP: (_INET, _INET6),
    Sockets.INTERNET: (_INET, _INET6, _NETLINK),
    Sockets.IN_OWN_NAMESPACE: (_UNIX, _INET, _INET6, _NETLINK),
}


@lru_cache
def filter_program(sockets: Sockets, *, sees_others: bool) -> bytes:
    """Write the program; ``sees_others`` when what is the machine's or the user's is in reach."""
    machine = os.uname().machine
    cpu = _CPUS.get(machine)
    if cpu is None:
        raise SandboxError(f"There is no list of system calls for the processor {machine}")
    program: list[Instruction] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, _ARCHITECTURE[cpu]),
        _failed(_EPERM),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, _X32),
        _failed(_ENOSYS),
    ]
    for numbers, then in _rules(sockets, sees_others=sees_others):
        if numbers[cpu] != _ABSENT:
            program += [(_EQUAL, 0, len(then), numbers[cpu]), *then]
    program.append(_ALLOWED)
    return b"".join(struct.pack("HBBI", *line) for line in program)


def _rules(sockets: Sockets, *, sees_others: bool) -> Iterator[Rule]:
    """Give what is done about each call; each ends with a verdict."""
    for numbers in FORBIDDEN.values():
        yield numbers, (_failed(_ENOSYS),)
    if sees_others:
        for numbers in (*OF_OTHER_PROCESSES.values(), *OF_THE_MACHINES_IPC.values()):
            yield numbers, (_failed(_ENOSYS),)
        for numbers in OF_THE_USERS_FILES.values():
            yield numbers, (_failed(_EOPNOTSUPP),)
        for numbers, process in _FOR_ONESELF.values():
            yield numbers, (_argument(process), (_EQUAL, 1, 0, 0), _failed(_EPERM), _ALLOWED)
    else:
        yield OF_THE_MACHINES_IPC["shmget"], _unless_larger(1, _LARGEST_SEGMENT)
    yield _CLONE, _unless_set(0, _NEW_NAMESPACES)
    yield _IOCTL, (_argument(1), *_unless_one_of(_TYPE_INTO_A_TERMINAL))
    for numbers, mode in _TAKES_A_MODE.values():
        yield numbers, _unless_set(mode, _SET_USER_ID)
    for numbers, flags, mode in _OPENS.values():
        makes = (_argument(flags), (_ANY_OF, 1, 0, _MAKES_A_FILE), _ALLOWED)
        yield numbers, (*makes, *_unless_set(mode, _SET_USER_ID))
    yield _SOCKET, _sockets(sockets)
    if sockets is Sockets.TCP:
        yield _LISTEN, (_failed(_EACCES),)  # on a socket without a port it would get one unasked
        for numbers, flags in _CONNECTS_BY_SENDING.values():
            yield numbers, _unless_set(flags, _FAST_OPEN)


def _argument(number: int) -> Instruction:
    """Load the lower half: the kernel looks at no more of these arguments, nor may we."""
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * number)


def _failed(error: int) -> Instruction:
    return (_RETURN, 0, 0, _FAIL | error)


def _unless_set(argument: int, bits: int) -> tuple[Instruction, ...]:
    return (_argument(argument), (_ANY_OF, 0, 1, bits), _failed(_EPERM), _ALLOWED)


def _unless_larger(argument: int, most: int) -> tuple[Instruction, ...]:
    """Of a size the kernel looks at all the bits."""
    upper_half = (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * argument + 4)
    small = (_argument(argument), (_AT_LEAST, 0, 1, most + 1), _failed(_ENOSYS), _ALLOWED)
    return (upper_half, (_EQUAL, 1, 0, 0), _failed(_ENOSYS), *small)


def _unless_one_of(values: tuple[int, ...]) -> tuple[Instruction, ...]:
    tests = [line for value in values for line in ((_EQUAL, 0, 1, value), _failed(_EPERM))]
    return (*tests, _ALLOWED)


def _sockets(sockets: Sockets) -> tuple[Instruction, ...]:
    refused = _failed(_EACCES)
    family = _one_of(_FAMILIES[sockets])
    if sockets is not Sockets.TCP:
        return (_argument(0), *family, refused, _ALLOWED)
    kind = (_argument(1), (_AND, 0, 0, _KIND_OF_SOCKET), *_one_of((_STREAM,)), refused)
    protocol = (_argument(2), *_one_of(_TCP), refused)
    return (_argument(0), *family, refused, *kind, *protocol, _ALLOWED)


def _one_of(values: tuple[int, ...]) -> tuple[Instruction, ...]:
    """Skip the instruction that follows when the value is one of these."""
    last = len(values)
    return tuple((_EQUAL, last - place, 0, value) for place, value in enumerate(values))
