"""What the tests that are there already demand, and whether a change takes some of it away.

Tests are told by their names, demands by the words that test frameworks share: more is not known of
every language. A worker who adds tests, moves them or changes what they stand on is not meant; a
line that demanded something and is gone is, for then the change is judged by other tests than the
user's.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from agentcanvas.errors import ProposalMalformed
from agentcanvas.proposals.outline import NotPlainError, read_outline
from agentcanvas.proposals.policy import fold, show

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from agentcanvas.proposals.outline import FileSection

DELETED: Final = "is a test that is deleted"
LOOSENED: Final = "is a test that no longer demands all that it did"
SWITCHED_OFF: Final = "is a test of which a part is switched off"

_CODE: Final = (
    r"(?:[cm]?[jt]sx?|pyi?|rb|rs|go|java|kt|kts|scala|groovy|c|cc|cpp|cxx|h|hpp|cs|fs|vb|php|pl"
    r"|pm|t|sh|bash|bats|swift|m|mm|ex|exs|erl|clj|cljs|hs|ml|lua|jl|r|dart|vue|svelte|feature)"
)
_TEST: Final = re.compile(
    rf"(?:.*/)?(?:(?:tests?|specs?|__tests__|__snapshots__|testing|e2e)/(?:.*/)?[^/]+\.{_CODE}"
    rf"|test[_-][^/]*\.{_CODE}|[^/]*[_.-](?:tests?|specs?)\.{_CODE}|tests?\.{_CODE}"
    r"|[^/]*\.(?:snap|ambr|approved\.[^/]+))"
)
_UPPER_TEST: Final = re.compile(rf"(?:.*/)?(?:Test[A-Z]\w*|\w+(?:Tests?|Spec|IT))\.{_CODE}")
_SNAPSHOT: Final = re.compile(r".*\.(?:snap|ambr|approved\.[^/]+)")
_DEMANDS: Final = re.compile(
    rb"(?i:assert|expect|should|\bfail|raises|throws|verify|\bmust)"
    rb"|\bt\.(?:Error|Fatal)|\brequire\.[A-Z]|\bpanic!"
    rb"|^\s*(?:async\s+)?def\s+test|^\s*class\s+\w*Test|\bfunc\s+(?:Test|Fuzz)|@Test\b|#\[[\w:]*test"
    rb"|\b(?:it|test|describe|context|scenario|specify)\b\s*[(.\"'`]|\bTEST(?:_[FP])?\("
)
_OFF: Final = re.compile(
    rb"@(?:[\w.]+\.)?(?i:skip|xfail|disabled|ignore)|\bpytest\.(?:skip|xfail|mark\.(?:skip|xfail))"
    rb"|\bskipTest\(|\bSkipTest\b|\.(?:skip|only|todo)\b\s*[(.`]|#\[ignore|\bt\.Skip"
    rb"|(?<![.\w])(?:x(?:it|describe|test)|f(?:it|describe))\("
)


def is_test(path: str) -> bool:
    """Tell by its name whether a file is one of tests, or of what tests compare with."""
    folded = "/".join(map(fold, path.split("/")))
    return bool(_TEST.fullmatch(folded) or _UPPER_TEST.fullmatch(path))


def lost_demands(patch: bytes) -> Iterator[tuple[str, str]]:
    """Path and reason of each test file of the base that a patch deletes or makes demand less."""
    try:
        sections = read_outline(patch)
    except NotPlainError as problem:
        raise ProposalMalformed(f"The patch cannot be looked through: {problem}.") from None
    tests = [section for section in sections if is_test(show(section.name))]
    # A line that comes back in any test was moved.
    lost = Counter(line for section in tests for line in _demands(section))
    lost -= Counter(line for section in tests for line in _changed(section, b"+"))
    for section in tests:
        if not section.created and (reason := _reason(section, lost)):
            yield show(section.name), reason


def _reason(section: FileSection, lost: Container[bytes]) -> str:
    demands = _demands(section)
    is_less = any(line in lost for line in demands)
    if section.deleted:
        return DELETED if is_less or not demands else ""
    if is_less or section.binary:
        return LOOSENED
    return SWITCHED_OFF if any(map(_OFF.search, _changed(section, b"+"))) else ""


def _demands(section: FileSection) -> list[bytes]:
    is_snapshot = _SNAPSHOT.fullmatch(show(section.name))
    return [line for line in _changed(section, b"-") if is_snapshot or _DEMANDS.search(line)]


def _changed(section: FileSection, sign: bytes) -> Iterator[bytes]:
    lines = (line for hunk in section.hunks for line in hunk.lines if line[:1] == sign)
    return (stripped for line in lines if (stripped := line[1:].strip()))
