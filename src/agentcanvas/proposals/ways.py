"""The ways a proposal can land (D16): in the working tree, as a commit, on a branch, or as a file.

Values only. ``Landing.apply`` takes one of the first three, and ``sealing`` makes the commit; the
file, for somebody else's ``git am`` or ``git apply``, is ``mail``.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from agentcanvas.errors import ValidationError

_SUBJECT: Final = 72
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class Identity(msgspec.Struct, frozen=True):
    """Who makes a commit."""

    name: str
    email: str


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit says: the proposal's summary, and where it comes from, as trailers."""

    summary: str
    proposal_id: str
    run_id: str
    agent_id: str
    reverts: str = ""

    @property
    def subject(self) -> str:
        lines = [line.strip().lstrip("#").strip() for line in cleaned(self.summary).splitlines()]
        first = next((line for line in lines if line), f"Land {self.proposal_id}")
        return first if len(first) <= _SUBJECT else f"{first[: _SUBJECT - 1].rstrip()}…"

    @property
    def trailers(self) -> str:
        """The last paragraph; each value is one line, so that none can bring trailers along."""
        named = {
            "Proposal": self.proposal_id,
            "Run": self.run_id,
            "Agent": self.agent_id,
            "Reverts": self.reverts,
        }
        for key, value in named.items():
            if value != " ".join(value.split()) or _CONTROL.search(value):
                raise ValidationError(f"{key} of a commit must be one plain line, not {value!r}.")
        return "".join(f"{key}: {value}\n" for key, value in named.items() if value)

    @property
    def text(self) -> str:
        first, _, rest = cleaned(self.summary).strip().partition("\n")
        said = first.strip().lstrip("#").strip() in {self.subject, ""}
        body = (rest if said else f"{first}\n{rest}").strip()
        told = f"{body}\n\n" if body else ""
        return f"{self.subject}\n\n{told}{self.trailers}"

    def reverting(self, commit: str) -> Message:
        return Message(
            summary=f'Revert "{self.subject}"',
            proposal_id=self.proposal_id,
            run_id=self.run_id,
            agent_id=self.agent_id,
            reverts=commit,
        )


class Worktree(msgspec.Struct, frozen=True, tag="worktree"):
    """Files only: no commit, and the index is left alone. The default."""


class Commit(msgspec.Struct, frozen=True, tag="commit"):
    """Files, and a commit of the touched paths on what is checked out."""

    message: Message


class Branch(msgspec.Struct, frozen=True, tag="branch"):
    """A new branch that holds the commit; files, index and HEAD are left alone."""

    name: str
    message: Message


Way = Worktree | Commit | Branch


def cleaned(text: str) -> str:
    """A text of an agent without what a terminal or git would obey."""
    return _CONTROL.sub("", text.replace("\r\n", "\n"))
