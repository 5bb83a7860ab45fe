"""Which values of variables are looked for, wherever they turn up, to be replaced by their names.

A value that is short or an ordinary word stands in every second sentence: to take it out would hide
nothing, and make records unreadable (D37). A name that promises a secret is believed; any other
variable is passed along for its use, and only what does not read like words or a path is hidden.
"""

from __future__ import annotations

import re

SHORTEST = 8

SECRET_NAME = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$", re.IGNORECASE
)

_PLAIN = re.compile(
    r"""
    [A-Za-z]+ (?: [-_.,:/ ] [A-Za-z]+ )*          # production, en-US.UTF, python:slim
    | ~?\.{0,2} (?: / [\w.+ -]* )+                  # /home/ann/project
    | https?:// [\w.-]+ (?: : \d+ )? (?: / [\w.-]* )*   # an address without a login
    | v? \d+ (?: [-.,:/] \d+ )*                       # a number, a date, a version
    """,
    re.VERBOSE,
)
_SAID_IN_PLACE_OF_ONE = frozenset(
    {
        "anonymous",
        "changeme",
        "disabled",
        "example",
        "localhost",
        "not-needed",
        "not-required",
        "notneeded",
        "password",
        "passwort",
        "placeholder",
        "required",
        "undefined",
        "unlimited",
    }
)


def is_hidden(name: str, value: str) -> bool:
    """Whether the value of a variable is looked for."""
    word = value.strip()
    if len(word) < SHORTEST or word.lower() in _SAID_IN_PLACE_OF_ONE:
        return False
    return bool(SECRET_NAME.search(name)) or not _PLAIN.fullmatch(word)
