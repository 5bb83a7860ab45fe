"""Files of a change that also decide how it is checked: a patch must not bring its own judge.

Settings of test tools, what takes the place of such a tool, scripts that a check runs, and tests
that are there already and demand less than before. Nothing is refused for it: people and reviewers
are told, and code alone then approves nothing. It goes by names and lines, against what agents do
by mistake or for want of a better idea; checks run the code of the change, and that can always lie.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from agentcanvas.proposals.demands import is_test, lost_demands
from agentcanvas.proposals.invocation import invocation_of
from agentcanvas.proposals.model import Wire
from agentcanvas.proposals.policy import fold
from agentcanvas.proposals.steering_files import STEERING_FILES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from agentcanvas.proposals.invocation import Invocation

RUN_BY_A_CHECK: Final = "is run by a check"
GIVEN_TO_A_CHECK: Final = "holds settings that a check is given"
BESIDE_A_SCRIPT: Final = "lies beside a script of tests that a check runs"
IN_PLACE_OF_A_TOOL: Final = "takes the place of the tool of a check"
IN_PLACE_OF_PYTHON: Final = "takes the place of a module of Python"

_PYTHON_ENDS: Final = (".py", ".pyc", ".so", ".pyd")
_OF_PYTHON: Final = {name.casefold() for name in sys.stdlib_module_names}
_MOST_NAMED: Final = 5


class Steering(Wire, frozen=True):
    """One file; ``reason`` continues a sentence that begins with the path."""

    path: str
    reason: str


def steering_of(
    patch: bytes,
    changed: Iterable[str],
    commands: Iterable[str],
    *,
    scripts: Mapping[str, str],
    is_new: Callable[[str], bool],
) -> tuple[Steering, ...]:
    """All of a patch, one reason a file; ``scripts`` are those of the base's package.json."""
    invocation = invocation_of(commands, scripts)
    found: dict[str, str] = {}
    for path in changed:
        reason = next(_reasons(path, invocation, new=is_new(path)), None)
        if reason is not None:
            found[path] = reason
    for path, reason in lost_demands(patch):
        found.setdefault(path, reason)
    return tuple(Steering(path, reason) for path, reason in found.items())


def told(steering: Iterable[Steering]) -> str:
    """For people, the first few of each reason by name."""
    by_reason: dict[str, list[str]] = {}
    for each in steering:
        by_reason.setdefault(each.reason, []).append(each.path)
    return "; ".join(f"{_some(paths)} ({reason})" for reason, paths in by_reason.items())


def _some(paths: list[str]) -> str:
    more = len(paths) - _MOST_NAMED
    return ", ".join(paths[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")


def _reasons(path: str, invocation: Invocation, *, new: bool) -> Iterator[str]:
    if not new and _is_helper(path, invocation.programs):
        yield BESIDE_A_SCRIPT
    for folder in sorted(invocation.folders):
        if folder and not path.startswith(f"{folder}/"):
            continue
        here = path[len(folder) + 1 :] if folder else path
        if here in invocation.programs:
            yield RUN_BY_A_CHECK
        if here in invocation.settings:
            yield GIVEN_TO_A_CHECK
        folded = "/".join(map(fold, here.split("/")))
        for reason, patterns in STEERING_FILES.items():
            if any(pattern.fullmatch(folded) for pattern in patterns):
                yield reason
        yield from _in_place_of(folded, invocation.modules, new=new)


def _is_helper(path: str, programs: Iterable[str]) -> bool:
    """What a script of tests imports lies beside it; beside another script lies what is tested."""
    folder, _, name = path.rpartition("/")
    return (
        name.endswith(".py")
        and not name.startswith("test_")
        and any(is_test(run) and run.rpartition("/")[0] == folder for run in programs)
    )


def _in_place_of(path: str, modules: Iterable[str], *, new: bool) -> Iterator[str]:
    """What Python finds where it was started comes before everything that is installed."""
    first, _, rest = path.partition("/")
    name = first.partition(".")[0]
    if not path.endswith(_PYTHON_ENDS):
        return
    if name in {module.casefold() for module in modules}:
        yield IN_PLACE_OF_A_TOOL
    if new and name in _OF_PYTHON and (not rest or rest.startswith("__init__.")):
        yield IN_PLACE_OF_PYTHON
