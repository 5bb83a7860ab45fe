"""Remarks as typed: ``FILE:LINE:TEXT``, or ``FILE:-LINE:TEXT`` for a line before the change."""

from __future__ import annotations

import re

import msgspec

from agentcanvas.errors import ValidationError
from agentcanvas.flows.problem import did_you_mean
from agentcanvas.proposals.remarks import LONGEST_REMARK, Remark, paths_in, quoted

FORM = "FILE:LINE:TEXT"
_TYPED = re.compile(
    r"(?P<path>.+?)(?::(?P<old>-)?(?P<line>\d{1,9}))?:(?P<text>(?!-?\d+:).+)", re.DOTALL
)


def remark_in(typed: str) -> Remark:
    """The remark that somebody typed; without a line it is about the whole file."""
    found = _TYPED.fullmatch(typed.strip())
    if found is None or not found["text"].strip():
        raise ValidationError(
            f"A comment looks like {FORM}, such as: src/parser.py:12:this may be empty"
        )
    if len(found["text"]) > LONGEST_REMARK:
        raise ValidationError(f"A comment may be {LONGEST_REMARK:,} characters long, not more.")
    return msgspec.convert(
        {
            "path": found["path"],
            "line": int(found["line"] or 0),
            "side": "old" if found["old"] else "new",
            "text": found["text"].strip(),
        },
        Remark,
    )


def placed(remark: Remark, patch: bytes) -> Remark:
    """The remark with the line it is about; refused when the change does not touch its file."""
    known = paths_in(patch)
    if remark.path not in known:
        advice = did_you_mean(remark.path, known)
        raise ValidationError(f"{remark.path} is not in the change; {advice}")
    return quoted(remark, patch)
