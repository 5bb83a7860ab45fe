"""Text of agents, made fit for a terminal: nothing in it is obeyed, and nothing in it is endless.

Escape sequences, control and direction marks are shown as their escapes. Whoever draws uses
``rich.text.Text``, so that markup in a text is just text.
"""

from __future__ import annotations

import re
from typing import Final

_KEPT: Final = frozenset("\n\t")
_TAB: Final = "    "
_LONGEST_LINE: Final = 2_000
_UNFIT_IN_JSON: Final = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def clean(text: str) -> str:
    """The text with its line breaks, and with whatever a terminal would obey written out."""
    whole = text.replace("\r\n", "\n")
    if whole.isprintable():
        return whole
    return "".join(
        each if each.isprintable() or each in _KEPT else _escaped(each) for each in whole
    )


def lines_of(text: str, longest: int = _LONGEST_LINE) -> list[str]:
    """Clean lines, each of a length that can be looked at; blank ones at the end are left out."""
    return [
        shortened(line.rstrip().replace("\t", _TAB), longest)
        for line in clean(text).rstrip().split("\n")
    ]


def one_line(text: str, longest: int = 200) -> str:
    """The text on one clean line, cut with … where it is too long."""
    # Cut before it is cleaned: a text of megabytes has no more to say in one line.
    return shortened(clean(" ".join(text[: 8 * longest].split())), longest)


def shortened(text: str, longest: int) -> str:
    """At most so many characters; … stands for the rest."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def json_line(encoded: bytes) -> str:
    """JSON on one line that a terminal can show: what JSON leaves unescaped is escaped too."""
    return _UNFIT_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", encoded.decode())


def _escaped(character: str) -> str:
    # A lone surrogate has no UTF-8; both kinds of characters get the same form.
    return character.encode("unicode_escape").decode("ascii")
