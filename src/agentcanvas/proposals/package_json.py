"""What a change of a package.json makes npm run or fetch.

The values before and after are compared, so that no way of writing them hides anything. Where the
file before is not at hand, each changed line has to be of a kind that can only be harmless.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

NAME: Final = "package.json"
_RUNS: Final = "changes a script that npm runs, on install too"
_FETCHES: Final = "takes a dependency from elsewhere than the registry"
_STEERS: Final = "changes settings by which npm or other tools run something"
_UNREADABLE: Final = "cannot be read, so what it makes npm run is unknown"
_PERHAPS: Final = "may change what npm runs, on install too"

_SCRIPTS: Final = ("scripts", "gypfile")
_DEPENDENCIES: Final = frozenset(
    f"{kind}ependencies" for kind in ("d", "devD", "peerD", "optionalD")
)
_WORDS: Final = frozenset(
    {"name", "version", "description", "keywords", "homepage", "bugs", "license", "author"}
    | {"contributors", "maintainers", "funding", "repository", "private", "publishConfig"}
    | {"files", "main", "module", "browser", "exports", "types", "typings", "typesVersions"}
    | {"type", "sideEffects", "engines", "os", "cpu", "peerDependenciesMeta", "man", "$schema"}
)
# A range of versions or a tag of the registry; of the project itself; nothing with a place in it.
_FROM_REGISTRY: Final = re.compile(r"(?:(?:workspace|catalog):)?[\w.^~<>=|*+ -]*")
_VERSION: Final = rb'"[\^~<>=v]*\d[\w.+-]*"|"\*"|"latest"'
_KEY: Final = rb'"(?!(?:pre|post)?(?:install|prepare|pack|publish)\w*")[\w@./-]+"'
_WORD: Final = "|".join(sorted(map(re.escape, _WORDS))).encode()
_HARMLESS_LINE: Final = re.compile(
    rb"[-+](?:[\s{}\[\],]*|\s*(?:%b\s*:\s*(?:%b)|\"(?:%b)\"\s*:\s*(?:\"[^\"\\]*\"|true|false))\s*,?\s*)"
    % (_KEY, _VERSION, _WORD)
)


def changes_between(before: bytes, after: bytes) -> Iterator[str]:
    """What is to be said of the change, each beginning with a verb."""
    old, new = _read(before), _read(after)
    if new is None:
        yield _UNREADABLE
        return
    old = old or {}
    differing = {key for key in old.keys() | new.keys() if old.get(key) != new.get(key)}
    if not differing.isdisjoint(_SCRIPTS):
        yield _RUNS
    if any(_fetches(old.get(key), new.get(key)) for key in differing & _DEPENDENCIES):
        yield _FETCHES
    if differing.difference(_SCRIPTS, _DEPENDENCIES, _WORDS):
        yield _STEERS


def changes_in(lines: Iterable[bytes]) -> Iterator[str]:
    """The same where only changed lines with their signs are known."""
    signed = (line for line in lines if line[:1] in {b"-", b"+"})
    if not all(_HARMLESS_LINE.fullmatch(line) for line in signed):
        yield _PERHAPS


def _read(text: bytes) -> dict[str, object] | None:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _fetches(old: object, new: object) -> bool:
    """Whether a dependency comes from a place that it did not come from before."""
    if not isinstance(new, dict):
        return new is not None
    known = old if isinstance(old, dict) else {}
    return any(
        known.get(name) != wanted
        and not (isinstance(wanted, str) and _FROM_REGISTRY.fullmatch(wanted))
        for name, wanted in new.items()
    )
