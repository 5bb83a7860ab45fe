"""Work on thousands of files, spread over processes: an interpreter keeps one core busy, not two.

Threads would not do: at each call of the system one hands the interpreter to the other, and where a
core is slow to wake, as on some virtual machines, two take longer than one. So each other core gets
a bare interpreter (``helping``), which is handed batches of files while we work on others. It ends
with the work, or with us.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from agentcanvas.sandbox.copying import Folders
from agentcanvas.sandbox.helping import receive, send

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

BATCH = 128
# To start an interpreter takes as long as some hundred files; below this it would come too late.
_WORTH_HELP = 8
_MOST_HELPERS = 3

_HOME = Path(__file__).parents[2]
# At the end of the path, where it cannot stand in for anything of the standard library.
_START = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from agentcanvas.sandbox.helping import help_out; help_out()"
)

# Two trees at once only fight over the cores; one after the other, all are there sooner.
one_tree = threading.RLock()


def helpers_at_most() -> int:
    """Count the cores that we may use besides this one, as far as they are of use."""
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return min(cores - 1, _MOST_HELPERS)


def spread(
    work: Callable[[Folders, _Item], _Result], folders: Folders, items: Sequence[_Item]
) -> list[_Result]:
    """Do the work for every item; gives the results in order.

    ``work`` is a function of ``copying``, ``folders`` are descriptors. An error is raised when all
    that was begun has come to its end.
    """
    batches = [items[start : start + BATCH] for start in range(0, len(items), BATCH)]
    helpers = helpers_at_most() if len(batches) >= _WORTH_HELP else 0
    if not helpers:
        return [work(folders, item) for item in items]
    results: list[list[_Result]] = [[] for _ in batches]
    waiting = deque(range(len(batches)))

    def help_along() -> None:
        try:
            with _helper(work.__name__, folders) as do:
                for number in _until_empty(waiting.pop):  # from the other end, in other folders
                    results[number] = do(batches[number])
        except _NoHelper:
            return
        except BaseException:
            waiting.clear()
            raise

    with one_tree, ThreadPoolExecutor(helpers) as threads:
        helping = [threads.submit(help_along) for _ in range(helpers)]
        try:
            for number in _until_empty(waiting.popleft):
                results[number] = [work(folders, item) for item in batches[number]]
        finally:
            waiting.clear()
        for each in helping:
            each.result()
    return [result for batch in results for result in batch]


def _until_empty(take: Callable[[], int]) -> Iterator[int]:
    while True:
        try:
            number = take()
        except IndexError:
            return
        yield number


class _NoHelper(Exception):
    """Another interpreter cannot be started; we can do without."""


@contextmanager
def _helper(work: str, folders: Folders) -> Iterator[Callable[[Sequence[Any]], Any]]:
    """Start another interpreter; gives what has it do the work for some items."""
    command = [sys.executable, "-I", "-S", "-c", _START, str(_HOME), work]
    try:
        process = subprocess.Popen(  # noqa: S603 -- our own interpreter
            [*command, *map(str, folders)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            pass_fds=folders,
            start_new_session=True,  # Ctrl-C is for us
        )
    except OSError as error:
        raise _NoHelper from error
    assert process.stdin
    assert process.stdout
    to, answers = process.stdin, process.stdout

    def do(items: Sequence[Any]) -> Any:
        try:
            send(to, items)
            well, answer = receive(answers)
        except (BrokenPipeError, EOFError) as error:
            with suppress(BrokenPipeError):
                to.close()
            told = "a process that helped to copy was ended"
            raise OSError(errno.EIO, told) from error
        if not well:
            raise OSError(*answer)
        return answer

    with process:
        yield do
