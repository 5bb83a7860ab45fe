"""A proposal as a file for others: one that ``git am`` and ``git apply`` take alike (D16).

Agents write summaries, so nothing in one may be read as a header, as another mail or as a patch.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING, Final

from agentcanvas.errors import ApplyFailed, ValidationError
from agentcanvas.proposals.ways import cleaned

if TYPE_CHECKING:
    from pathlib import Path

    from agentcanvas.proposals.ways import Identity, Message

# What ``git am`` and ``git apply`` would take for the start of a patch, another mail or a header.
_NO_PROSE: Final = re.compile(
    r"^(?=---|\+\+\+|diff |@@|Index: |>*From |[A-Za-z-]+:|\[|GIT binary|-- ?$|.*8<|.*>8)",
    re.MULTILINE,
)


def as_mail(patch: bytes, message: Message, author: Identity, when_ms: int) -> bytes:
    """A patch for ``git am`` and ``git apply`` alike.

    Files with CRLF line ends need ``git am --keep-cr``, as with git's own mails.
    """
    when = format_datetime(datetime.fromtimestamp(when_ms / 1000, UTC))
    body = message.text.partition("\n\n")[2].removesuffix(message.trailers)
    prose = _NO_PROSE.sub(" ", body)
    head = (
        f"From {'0' * 40} Mon Sep 17 00:00:00 2001\n"
        f"From: {_header_words(author.name.replace('@', ' at '))} <{cleaned(author.email)}>\n"
        f"Date: {when}\n"
        f"Subject: [PATCH] {_header_words(message.subject)}\n"
        "MIME-Version: 1.0\n"
        "Content-Type: text/plain; charset=UTF-8\n"
        "Content-Transfer-Encoding: 8bit\n"
        f"\n{prose}{message.trailers}---\n\n"
    )
    return head.encode() + patch + b"-- \nAgentCanvas\n\n"


def save_mail(target: Path, mail: bytes) -> None:
    """Write it whole or not at all, and over nothing that is there."""
    fresh = target.with_name(f".{target.name}.part")
    try:
        fresh.unlink(missing_ok=True)
        with fresh.open("xb") as file:
            file.write(mail)
            file.flush()
            os.fsync(file.fileno())
        os.link(fresh, target)  # unlike a rename it replaces nothing
    except FileExistsError:
        raise ValidationError(f"{target} exists already; name another file.") from None
    except OSError as problem:
        raise ApplyFailed(f"{target} was not written: {problem.strerror}.") from problem
    finally:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)


def _header_words(text: str) -> str:
    return " ".join(cleaned(text).replace("<", "(").replace(">", ")").split())
