"""Files that run by themselves: what a reviewer should know before a change of them lands.

A shell that enters a folder, an editor that opens it, an install, a test run, a push: each runs
something that no one started on purpose. A note is for people and blocks nothing; what may not
land at all is ``policy``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from agentcanvas.errors import ProposalMalformed
from agentcanvas.proposals.outline import NotPlainError, read_outline
from agentcanvas.proposals.policy import fold, show
from agentcanvas.proposals.windows_names import not_for_windows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agentcanvas.proposals.outline import FileSection

_EXECUTABLE: Final = b"100755"
_LINK: Final = b"120000"


class Occasion(StrEnum):
    """What makes it run."""

    ENTERING = "entering_the_folder"
    OPENING = "opening_in_an_editor"
    GIT = "git"
    CI = "ci"
    INSTALL = "install_or_build"
    TESTS = "tests"
    PYTHON = "starting_python"
    CONTAINER = "container"
    MAKE = "make"
    AGENT = "coding_agent"
    EXECUTABLE = "made_executable"
    LINK = "link"
    NAME = "name"


class RunNote(msgspec.Struct, frozen=True):
    """One thing to look at twice; ``detail`` continues a sentence that begins with the path."""

    path: str
    occasion: Occasion
    detail: str

    @property
    def sentence(self) -> str:
        return f"{self.path} {self.detail}"


@dataclass(frozen=True, slots=True)
class _Known:
    """Files known by their folded path; with ``lines`` only when a changed line fits."""

    occasion: Occasion
    path: re.Pattern[str]
    detail: str
    lines: re.Pattern[bytes] | None = None


def _known(occasion: Occasion, path: str, detail: str, lines: bytes | None = None) -> _Known:
    told = re.compile(lines) if lines else None
    return _Known(occasion, re.compile(rf"(?:.*/)?(?:{path})"), detail, told)


_O = Occasion
_FILES: Final = (
    _known(_O.ENTERING, r"\.envrc|\.autoenv|\.env\.leave", "runs when a shell enters its folder"),
    _known(_O.ENTERING, r"\.?mise\.toml|\.mise/.*", "can run commands when a shell enters"),
    _known(_O.CI, r"\.github/(?:workflows|actions)/.+", "runs in CI, often with secrets at hand"),
    _known(
        _O.CI,
        r"\.gitlab-ci\.ya?ml|\.circleci/.+|\.travis\.ya?ml|azure-pipelines\.ya?ml|jenkinsfile"
        r"|bitbucket-pipelines\.ya?ml|\.drone\.ya?ml|appveyor\.ya?ml|\.buildkite/.+"
        r"|\.woodpecker(?:/.+|\.ya?ml)|\.forgejo/workflows/.+|\.gitea/workflows/.+|\.ci/.+",
        "runs in CI, often with secrets at hand",
    ),
    _known(_O.OPENING, r"\.vscode/(?:tasks|launch)\.json", "can run when the editor opens it"),
    _known(
        _O.OPENING,
        r"\.vscode/settings\.json|[^/]*\.code-workspace",
        "sets which programs the editor runs",
    ),
    _known(_O.OPENING, r"\.idea/.+|[^/]*\.iml", "can run when the editor opens the project"),
    _known(
        _O.OPENING,
        r"\.vimrc|\.exrc|\.nvim\.lua|\.nvimrc|\.dir-locals\.el|\.emacs|\.zed/(?:tasks|settings)\.json",
        "can run when the editor opens its folder",
    ),
    _known(_O.OPENING, r"\.devcontainer(?:/.+|\.json)", "sets up a container when it is opened"),
    _known(
        _O.GIT,
        r"\.husky/.+|\.githooks/.+|\.?git-?hooks/.+|lefthook\.ya?ml|\.overcommit\.ya?ml"
        r"|\.pre-commit-config\.ya?ml",
        "runs on commits and pushes",
    ),
    _known(
        _O.GIT,
        r"\.gitattributes",
        "changes how git treats files, by filters, diff and merge drivers too",
    ),
    _known(_O.GIT, r"\.gitconfig", "can make git run commands where it is included"),
    _known(
        _O.GIT,
        r"[^/]+\.git/.+|objects/(?:[0-9a-f]{2}/[0-9a-f]{38,62}|pack/.+|info/.+)"
        r"|refs/(?:heads|tags|remotes)/.+|packed-refs",
        "belongs to a git repository within the workspace, as git sees it there",
    ),
    _known(
        _O.INSTALL,
        r"package\.json",
        "changes a script that npm runs, on install too",
        rb'[-+]\s*"(?:scripts|(?:pre|post)?(?:install|prepare|pack|publish|uninstall|test|start'
        rb'|build|version|restart|stop)[\w:-]*|[\w:-]+)"\s*:\s*(?:\{|"(?![\^~<>=*v]*\d[^"]*"'
        rb'|\*"|latest"|workspace:|npm:|file:))',
    ),
    _known(
        _O.INSTALL, r"\.npmrc|\.yarnrc(?:\.yml)?|\.pnpmfile\.c?js", "steers what an install runs"
    ),
    _known(_O.INSTALL, r"setup\.py", "runs when the package is installed or built"),
    _known(
        _O.INSTALL,
        r"pyproject\.toml|setup\.cfg",
        "changes how the package is built or which programs it brings",
        rb"[-+]\s*(?:\[build-system\]|requires\s*=|build-backend|backend-path|\[tool\.hatch\.build"
        rb"|\[tool\.(?:setuptools|poetry|pdm|poe|taskipy|tox)\b|\[project\.(?:scripts|entry-points"
        rb"|gui-scripts)|\[tool\.poetry\.scripts\]|build\s*=|script\s*=)",
    ),
    _known(
        _O.INSTALL,
        r"build\.rs|\.cargo/config(?:\.toml)?|build\.gradle(?:\.kts)?|gradlew(?:\.bat)?"
        r"|gradle/wrapper/.+|\.mvn/.+|pom\.xml|conanfile\.py|extconf\.rb|[^/]*\.gemspec|binding\.gyp"
        r"|hatch_build\.py|composer\.json|rakefile|cmakelists\.txt|configure|noxfile\.py|tox\.ini",
        "runs when the project is built",
    ),
    _known(_O.TESTS, r"conftest\.py|pytest\.ini", "runs with every test run, before the tests"),
    _known(
        _O.TESTS,
        r"(?:jest|vitest|karma|playwright|cypress|vite|webpack|rollup|babel|eslint|prettier)"
        r"\.(?:config|setup)\.[cm]?[jt]s|\.eslintrc\.c?js",
        "runs whenever its tool is started",
    ),
    _known(_O.PYTHON, r"(?:site|user)customize\.py", "runs whenever Python starts here"),
    _known(_O.PYTHON, r"[^/]+\.pth", "can run whenever Python starts"),
    _known(
        _O.CONTAINER,
        r"dockerfile[^/]*|[^/]+\.dockerfile|containerfile[^/]*",
        "runs when the image is built",
    ),
    _known(
        _O.CONTAINER,
        r"(?:docker-)?compose[^/]*\.ya?ml|vagrantfile|devfile\.ya?ml",
        "starts containers, with what of this machine they may see",
    ),
    _known(_O.MAKE, r"(?:gnu)?makefile|[^/]+\.mk|justfile|taskfile\.ya?ml", "runs with make"),
    _known(
        _O.AGENT,
        r"agents\.md|claude\.md|gemini\.md|\.cursorrules|\.cursor/.+|\.claude/.+|\.mcp\.json"
        r"|\.codex/.+|\.gemini/.+|opencode\.json|\.aider[^/]*|\.github/copilot-instructions\.md",
        "tells coding agents what to do",
    ),
)


def self_running(patch: bytes) -> tuple[RunNote, ...]:
    """What of a plain patch runs without being asked to, in the order of the patch."""
    try:
        sections = read_outline(patch)
    except NotPlainError as problem:
        raise ProposalMalformed(f"The patch cannot be looked through: {problem}.") from None
    return self_running_sections(sections)


def self_running_sections(sections: Iterable[FileSection]) -> tuple[RunNote, ...]:
    return tuple(dict.fromkeys(note for section in sections for note in _notes(section)))


def _notes(section: FileSection) -> Iterator[RunNote]:
    path = show(section.name)
    # As a forgetful disk sees it, for there ``.ENVRC`` runs as well.
    folded = "/".join(fold(part) for part in path.split("/"))
    gone = section.deleted
    for known in _FILES:
        if known.path.fullmatch(folded) and _line_fits(section, known.lines):
            detail = f"{known.detail}; it is deleted" if gone else known.detail
            yield RunNote(path, known.occasion, detail)
            break
    if not gone and section.new_mode == _EXECUTABLE and section.old_mode != _EXECUTABLE:
        made = "is a new executable file" if section.created else "becomes executable"
        yield RunNote(path, Occasion.EXECUTABLE, made)
    if section.created and (name := not_for_windows(path)):
        detail = f"cannot be checked out on Windows, for the name {name!r}"
        yield RunNote(path, Occasion.NAME, detail)
    if not gone and section.new_mode == _LINK:
        yield RunNote(path, Occasion.LINK, "is a link; what it leads to is used in its place")


def _line_fits(section: FileSection, form: re.Pattern[bytes] | None) -> bool:
    return form is None or any(form.match(line) for hunk in section.hunks for line in hunk.lines)
