"""What a patch may touch, one named reason for each way to fail (S6, S8).

Pure: paths, link targets and numbers in, breaches out. ``patch`` finds out what a patch does and
asks here about each result. Names are compared after folding away what a case-insensitive or
Unicode-normalising disk would fold, so that ``.GIT``, ``.g<ZWNJ>it`` and ``.git.`` are ``.git``;
the short names that NTFS gives to such a folder are that folder, too.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from agentcanvas.sandbox.globs import within
from agentcanvas.sandbox.paths import IGNORED_BY_HFS
from agentcanvas.sandbox.selection import HUGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MEGABYTE: Final = 1024 * 1024
MAX_PATH: Final = 1000
MAX_NAME: Final = 255
MAX_LINK_HOPS: Final = 40
INTERNAL: Final = frozenset({".git", ".agentcanvas"})
# A selection leaves dist/ out at the top alone: one further down that git tracks is source.
_SOURCE_BELOW: Final = frozenset({"dist"})
# NTFS opens ``.agentcanvas`` as AGENTC~1 and, when such names are taken, as AG12F0~1.
_SHORT_NAMES: Final = (
    (".git", re.compile(r"git~\d+")),
    (".agentcanvas", re.compile(r"(?:agentc|ag[0-9a-f]{2,4})~\d+")),
    (".gitmodules", re.compile(r"(?:gitmod|gi[0-9a-f]{2,4})~\d+")),
    ("node_modules", re.compile(r"node_m~\d+")),
)
# Format characters are invisible, as are selectors of a glyph's form; HFS+ ignores many of them.
_SELECTORS: Final = frozenset(map(chr, range(0xFE00, 0xFE10)))
# C0 and C1 controls and line separators: a terminal or a log obeys them.
_CONTROLS: Final = frozenset({"Cc", "Zl", "Zp"})
# Marks that reverse the order in which a name is shown.
_REORDERING: Final = frozenset(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))))


class BreachKind(StrEnum):
    """Why a path, or the patch as a whole, may not land."""

    PATCH_TOO_LARGE = "patch_too_large"
    UNREADABLE = "unreadable"
    NOT_PLAIN_FORM = "not_plain_form"
    NO_CHANGE = "no_change"
    DOES_NOT_APPLY = "does_not_apply"
    WRONG_BASE = "wrong_base"
    MISPLACED_HUNK = "misplaced_hunk"
    DUPLICATE_PATH = "duplicate_path"
    NAME_CLASH = "name_clash"
    FILE_AND_FOLDER = "file_and_folder"
    ABSOLUTE_PATH = "absolute_path"
    PARENT_FOLDER = "parent_folder"
    BAD_NAME = "bad_name"
    INTERNAL_FOLDER = "internal_folder"
    LEFT_OUT_FOLDER = "left_out_folder"
    SUBMODULE = "submodule"
    OUTSIDE_ALLOWED = "outside_allowed"
    OUTSIDE_SCOPE = "outside_scope"
    FORBIDDEN_MODE = "forbidden_mode"
    LINK_LEAVES = "link_leaves"
    LINK_INTO_INTERNAL = "link_into_internal"
    THROUGH_LINK = "through_link"
    SPECIAL_FILE = "special_file"
    EMBEDDED_REPOSITORY = "embedded_repository"
    FILE_TOO_LARGE = "file_too_large"
    TOTAL_TOO_LARGE = "total_too_large"
    TOO_MANY_FILES = "too_many_files"


class Breach(msgspec.Struct, frozen=True):
    """One reason; ``path`` is empty when it is about the patch as a whole."""

    kind: BreachKind
    path: str
    detail: str

    @property
    def sentence(self) -> str:
        return f"{self.path}: {self.detail}" if self.path else self.detail


class Policy(msgspec.Struct, frozen=True):
    """What one task may do; empty ``scope`` or ``allowed`` means no limit of that sort."""

    scope: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ("node_modules", "dist")
    max_patch_bytes: int = 50 * MEGABYTE
    max_file_bytes: int = HUGE
    max_total_bytes: int = 100 * MEGABYTE
    max_files: int = 10_000

    def path_breach(self, raw: bytes) -> Breach | None:
        """The first rule that a changed path breaks."""
        shown = show(raw)
        for kind, detail in self._path_reasons(raw):
            return Breach(kind, shown, detail)
        return None

    def _path_reasons(self, raw: bytes) -> Iterator[tuple[BreachKind, str]]:
        yield from _name_reasons(raw)
        path = show(raw)
        folded = [fold(part) for part in path.split("/")]
        if hit := INTERNAL.intersection(folded):
            yield BreachKind.INTERNAL_FOLDER, f"leads into {min(hit)}, which no proposal may touch"
        meant = {name for part in folded if (name := _long_name(part))}
        if hit := INTERNAL & meant:
            yield BreachKind.INTERNAL_FOLDER, f"is a short name of {min(hit)} on some disks"
        if ".gitmodules" in meant.union(folded):
            yield BreachKind.SUBMODULE, "submodules are not changed by proposals"
        named = meant.union(folded[:1], set(folded[1:]) - _SOURCE_BELOW)
        if away := named.intersection(map(fold, self.left_out)):
            yield BreachKind.LEFT_OUT_FOLDER, f"{min(away)} is left out of sandboxes"
        if self.allowed and not any(_below(path, folder) for folder in self.allowed):
            yield BreachKind.OUTSIDE_ALLOWED, f"is not below {', '.join(self.allowed)}"
        if self.scope and not within(path, self.scope):
            yield BreachKind.OUTSIDE_SCOPE, f"is not in the task's scope: {', '.join(self.scope)}"


def _name_reasons(raw: bytes) -> Iterator[tuple[BreachKind, str]]:
    try:
        path = raw.decode()
    except UnicodeDecodeError:
        yield BreachKind.BAD_NAME, "its name is not UTF-8"
        return
    parts = path.split("/")
    if path.startswith("/"):
        yield BreachKind.ABSOLUTE_PATH, "is an absolute path"
    if ".." in parts:
        yield BreachKind.PARENT_FOLDER, "climbs with .."
    if not path.isprintable() and any(
        unicodedata.category(char) in _CONTROLS or char in _REORDERING for char in path
    ):
        yield BreachKind.BAD_NAME, "holds a control character"
    if "\\" in path:
        yield BreachKind.BAD_NAME, "holds a backslash, a folder separator on some disks"
    if any(part in {"", "."} for part in parts):
        yield BreachKind.BAD_NAME, "has an empty part"
    if not all(map(fold, parts)):
        yield BreachKind.BAD_NAME, "has a part of which some disks leave nothing"
    if len(raw) > MAX_PATH or any(len(part.encode()) > MAX_NAME for part in parts):
        yield BreachKind.BAD_NAME, "is too long"


def fold(name: str) -> str:
    """One path component as the most forgetful disk would see it."""
    visible = name if name.isascii() else "".join(char for char in name if _is_visible(char))
    # NTFS reads "name:stream" as name, and drops trailing dots and spaces.
    return unicodedata.normalize("NFKC", visible).casefold().split(":")[0].rstrip(" .")


def _is_visible(char: str) -> bool:
    return unicodedata.category(char) != "Cf" and char not in _SELECTORS


def _long_name(folded: str) -> str | None:
    """What NTFS may open under a short name."""
    if "~" not in folded:
        return None
    return next((name for name, short in _SHORT_NAMES if short.fullmatch(folded)), None)


def show(raw: bytes) -> str:
    """A path as text that any log can hold."""
    return raw.decode(errors="backslashreplace")


def _below(path: str, folder: str) -> bool:
    folder = folder.removeprefix("./").strip("/")
    return folder in {"", "."} or path.startswith(folder + "/")


def files_as_folders(paths: Iterable[bytes]) -> Iterator[Breach]:
    """Paths that stand below another one, which is a file; all exist after the change."""
    files = {forgetful(raw): raw for raw in sorted(paths)}
    for key, raw in files.items():
        parts = key.split("/")
        above = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        if folder := next((name for name in above if name in files), None):
            detail = f"needs {show(files[folder])} to be a folder, which is a file here"
            yield Breach(BreachKind.FILE_AND_FOLDER, show(raw), detail)


def forgetful(path: bytes) -> str:
    """A name or path as the disks understand it that take two spellings for one file.

    Some ignore case and ways to write an accent, HFS+ letters that nobody sees, and Windows dots
    and blanks at the end of a name. Less is the same here than in ``fold``, which looks for ways to
    hide a name, while this must not take two honest files for one.
    """
    text = caseless(path)
    if not text.isascii():
        text = text.translate(IGNORED_BY_HFS)
    return "/".join(part.rstrip(" .") for part in text.split("/"))


def caseless(path: bytes) -> str:
    """A name or path without case and ways to write an accent."""
    return unicodedata.normalize("NFC", show(path)).casefold()


def same_as(path: bytes, other: bytes) -> str:
    """Where the two are one file, in words."""
    short = caseless(path) == caseless(other)
    return f"{show(other)} on {'a case-insensitive disk' if short else 'some disks'}"


def link_breach(
    path: bytes, target: bytes, readlink: Callable[[bytes], bytes | None]
) -> Breach | None:
    """Follow a proposed link through the tree as it would be; it may never step out of it.

    ``readlink`` answers with the target when a workspace-relative path is a link, else None.
    """
    shown, leads = show(path), f"is a link to {show(target)}, which"
    leaves = Breach(BreachKind.LINK_LEAVES, shown, f"{leads} leaves the workspace")
    here, pending, hops = path.split(b"/")[:-1], [target], 0
    while pending:
        first, _, rest = pending.pop().partition(b"/")
        if not first or b"\0" in first:
            return leaves  # absolute, or no target at all
        if rest := rest.lstrip(b"/"):
            pending.append(rest)
        if first == b"..":
            if not here:
                return leaves
            here.pop()
            continue
        if first == b".":
            continue
        here.append(first)
        folded = fold(show(first))
        if folded in INTERNAL or _long_name(folded) in INTERNAL:
            return Breach(BreachKind.LINK_INTO_INTERNAL, shown, f"{leads} no proposal may reach")
        inner = readlink(b"/".join(here))
        if inner is not None:
            hops += 1
            if hops > MAX_LINK_HOPS:
                return Breach(BreachKind.LINK_LEAVES, shown, f"{leads} never ends")
            here.pop()
            pending.append(inner)
    return None
