"""Secrets that a patch would bring into the repository: pointed out, never repeated (D48).

Only added lines are looked at, and of binary files nothing. A finding names the file, the line and
the rule; its excerpt ends where the secret begins. What a secret looks like is ``secret_rules``;
what follows from a finding is for the reviewer.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Final

import msgspec

from agentcanvas.errors import ProposalMalformed
from agentcanvas.proposals.outline import NotPlainError, read_outline
from agentcanvas.proposals.policy import show
from agentcanvas.proposals.secret_looks import Hit
from agentcanvas.proposals.secret_rules import RULES, in_key_block, opens_key_block

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agentcanvas.proposals.outline import FileSection, Hunk

MOST_FINDINGS: Final = 200
_SHOWN_BEFORE: Final = 40
_KEY_LINES: Final = 6
_PRIVATE_KEY: Final = "private_key"
# Long runs beside a secret may be another one that no rule knows.
_OPAQUE: Final = re.compile(r"(?![a-z_-]{16,}\b)[A-Za-z0-9+/=_-]{16,}")


class SecretFinding(msgspec.Struct, frozen=True):
    """One secret; ``excerpt`` is the line up to it."""

    path: str
    line: int
    rule: str
    excerpt: str

    @property
    def sentence(self) -> str:
        return f"{self.path}:{self.line} looks like a secret ({self.rule}): {self.excerpt}"


def secrets_in(patch: bytes) -> tuple[SecretFinding, ...]:
    """What the added lines of a plain patch give away, at most ``MOST_FINDINGS``."""
    try:
        sections = read_outline(patch)
    except NotPlainError as problem:
        raise ProposalMalformed(f"The patch cannot be searched for secrets: {problem}.") from None
    return secrets_in_sections(sections)


def without_secrets(text: str) -> str:
    """A text that is to be kept, with whatever looks like a secret in it left out."""
    lines = text.split("\n")
    spans: dict[int, list[Hit]] = {}
    for at, hit in _hits("", lines):
        spans.setdefault(at, []).append(hit)
    for at, hits in spans.items():
        for hit in sorted(_longest_first(hits), key=lambda hit: -hit.start):
            lines[at] = f"{lines[at][: hit.start]}…{lines[at][hit.end :]}"
    return "\n".join(lines)


def secrets_in_sections(sections: Iterable[FileSection]) -> tuple[SecretFinding, ...]:
    found: list[SecretFinding] = []
    for section in sections:
        found += _in_file(section)
        if len(found) >= MOST_FINDINGS:
            break
    return tuple(found[:MOST_FINDINGS])


def _in_file(section: FileSection) -> list[SecretFinding]:
    path = show(section.name)
    numbers, lines = [], []
    for hunk in section.hunks:
        for number, line, added in hunk.after():
            if added:
                numbers.append(number)
                lines.append(line.decode(errors="replace"))
    hits: dict[int, list[Hit]] = {}
    if lines:
        for at, hit in _hits(path, lines):
            hits.setdefault(at, []).append(hit)
    found = [
        SecretFinding(path, numbers[at], hit.rule, _excerpt(lines[at], hit, of_line))
        for at, of_line in hits.items()
        for hit in _longest_first(of_line)
    ]
    found += [
        SecretFinding(path, number, _PRIVATE_KEY, "-----BEGIN … PRIVATE KEY-----…")
        for hunk in section.hunks
        for number in _private_keys(hunk)
    ]
    return sorted(found, key=lambda finding: (finding.line, finding.rule))


def _hits(path: str, lines: Sequence[str]) -> Iterator[tuple[int, Hit]]:
    """Search all added lines of a file at once: a rule without its trigger costs one look."""
    text = "\n".join(lines)
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    lowered = text.lower()
    for rule in RULES:
        if not rule.may_occur(lowered):
            continue
        for hit in islice(rule.search(path, text), MOST_FINDINGS):
            at = bisect_right(starts, hit.start) - 1
            yield at, hit.moved(-starts[at])


def _longest_first(hits: Sequence[Hit]) -> Iterator[Hit]:
    """One finding for each place, though several rules may know it."""
    taken: list[Hit] = []
    for hit in sorted(hits, key=lambda hit: hit.specific, reverse=True):
        if not any(hit.start < other.end and other.start < hit.end for other in taken):
            taken.append(hit)
            yield hit


def _excerpt(line: str, hit: Hit, of_line: Sequence[Hit]) -> str:
    """What stands before the secret, without any other, and the public part of the secret."""
    before, reached = "", 0
    for other in sorted(of_line, key=lambda other: other.start):
        if other.start < hit.start:
            before += line[reached : max(other.start, reached)] + "…"
            reached = max(reached, min(other.end, hit.start))
    before += line[reached : hit.start]
    before = _OPAQUE.sub("…", before[-5 * _SHOWN_BEFORE :])[-_SHOWN_BEFORE:].lstrip()
    before = "".join(char if char.isprintable() else "·" for char in before)
    return f"{before}{hit.public}… ({hit.end - hit.start} characters)"


def _private_keys(hunk: Hunk) -> Iterator[int]:
    """Where the patch adds a part of a private key: its first line, or lines below it."""
    lines = [(number, line.decode(errors="replace"), added) for number, line, added in hunk.after()]
    for at, (number, line, added) in enumerate(lines):
        if not opens_key_block(line):
            continue
        block = lines[at + 1 : at + 1 + _KEY_LINES]
        body = [one for _, text, one in block if in_key_block(text)]
        on_one_line = in_key_block(line.partition("-----BEGIN")[2].partition("-----")[2])
        if (added and (body or on_one_line)) or any(body):
            yield number
