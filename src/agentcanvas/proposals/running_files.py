"""Which files run by themselves: names that a shell, an editor, a tool or an agent looks for.

A pattern is a name, in any folder, or the end of a path: ``*`` stands for any part of a name,
``/**`` for all that is below a folder, ``{a,b}`` for either; one that begins with a slash is meant
at the top alone. Paths are compared in small letters, and the first line that fits counts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Final


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


@dataclass(frozen=True, slots=True)
class Known:
    """A kind of file; with ``lines`` it is only meant when a changed line fits."""

    occasion: Occasion
    detail: str
    lines: re.Pattern[bytes] | None = None


_ENTER: Final = "runs when a shell enters its folder"
_SHELL: Final = "can run commands when a shell enters"
_OPENS: Final = "can run when the editor opens it"
_EDITOR: Final = "sets which programs the editor runs"
_PLACE: Final = "sets up a container when it is opened"
_TOLD: Final = "tells coding agents what to do"
_HOOK: Final = "runs on commits and pushes"
_TREATED: Final = "changes how git treats files, by filters, diff and merge drivers too"
_WITHIN: Final = "belongs to a git repository within the workspace, as git sees it there"
_CI: Final = "runs in CI, often with secrets at hand"
_FETCH: Final = "steers what an install runs"
_BUILD: Final = "runs when the project is built"
_TESTS: Final = "runs with every test run, before the tests"
_TOOL: Final = "runs whenever its tool is started"
_IMAGE: Final = "runs when the image is built"
_STARTS: Final = "starts containers, with what of this machine they may see"
_JS: Final = "{js,cjs,mjs,ts,cts,mts}"

_O = Occasion
_FILES: Final = (
    # Entering a folder
    (_O.ENTERING, _ENTER, ".envrc .envrc.local .autoenv .autoenv*.zsh .env.enter .env.leave"),
    (_O.ENTERING, _SHELL, "{,.}{mise,rtx}{,.*}.toml .mise/** mise/config*.toml"),
    (_O.ENTERING, _SHELL, ".config/mise{.toml,/**} .tool-versions"),
    (_O.ENTERING, _SHELL, "shell.nix flake.nix default.nix devenv.nix devbox.json"),
    # Opening it in an editor
    (_O.OPENING, _OPENS, ".vscode/{tasks,launch}.json .idea/** *.iml .fleet/** *.sublime-project"),
    (_O.OPENING, _OPENS, ".zed/{tasks,settings,debug}.json .helix/** .vim/** .nvim/**"),
    (_O.OPENING, _OPENS, ".{vimrc,lvimrc,nvimrc,nvim.lua,exrc,emacs} .dir-locals{,-2}.el"),
    (_O.OPENING, _EDITOR, ".vscode/settings.json *.code-workspace"),
    (
        _O.OPENING,
        _PLACE,
        ".devcontainer{.json,/**} .gitpod.* .codesandbox/** .replit .stackblitzrc",
    ),
    # Telling coding agents what to do
    (
        _O.AGENT,
        _TOLD,
        "agent{,s}{,.override,.local}.md {claude,gemini,qwen,crush,warp}{,.local}.md",
    ),
    (_O.AGENT, _TOLD, ".claude/** .codex/** .gemini/** .qwen/** .opencode/** .crush/** .goose/**"),
    (_O.AGENT, _TOLD, ".cursor/** .windsurf/** .roo/** .kilocode/** .continue/** .kiro/**"),
    (_O.AGENT, _TOLD, ".junie/** .amazonq/** .augment/** .factory/** .trae/** .agents/**"),
    (_O.AGENT, _TOLD, ".clinerules{,/**} .cursorrules .windsurfrules .roorules* .roomodes .rules"),
    (_O.AGENT, _TOLD, ".continuerules .goosehints .augment-guidelines .aider* skill.md"),
    (_O.AGENT, _TOLD, "{.,}mcp.json .vscode/mcp.json opencode.json{,c} {.,}crush.json"),
    (_O.AGENT, _TOLD, ".github/{instructions,prompts,chatmodes,agents}/**"),
    (_O.AGENT, _TOLD, ".github/copilot-instructions.md agentcanvas.{yml,yaml}"),
    # git
    (_O.GIT, _HOOK, ".husky/** {.,}git{,-}hooks/** .hooks/** .lefthook{,-local}/** .trunk/**"),
    (_O.GIT, _HOOK, "{.,}lefthook{,-local}.{yml,yaml,toml,json} .overcommit.{yml,yaml} prek.toml"),
    (_O.GIT, _HOOK, ".pre-commit-{config,hooks}.{yml,yaml} .lintstagedrc{,.*}"),
    (_O.GIT, _HOOK, "lint-staged.config.* {.,}simple-git-hooks.*"),
    (_O.GIT, _TREATED, ".gitattributes"),
    (_O.GIT, "can make git run commands where it is included", ".gitconfig"),
    (_O.GIT, _WITHIN, "*.git/** objects/{pack,info}/** refs/{heads,tags,remotes}/** packed-refs"),
    # Continuous integration
    (_O.CI, _CI, ".github/{workflows,actions}/** .{forgejo,gitea}/workflows/** .circleci/**"),
    (_O.CI, _CI, "{,*}.gitlab-ci.{yml,yaml} .gitlab/ci/** .gitlab-ci/** circle.yml wercker.yml"),
    (_O.CI, _CI, "{.travis,.appveyor,appveyor}.{yml,yaml} .cirrus.{yml,yaml,star} .ci/**"),
    (_O.CI, _CI, "jenkinsfile jenkinsfile.* *.jenkinsfile .teamcity/** .tekton/** .semaphore/**"),
    (_O.CI, _CI, "azure-pipelines*.{yml,yaml} .azure-pipelines/** bitbucket-pipelines.{yml,yaml}"),
    (_O.CI, _CI, ".drone.{yml,yaml} .buildkite/** .woodpecker{.yml,.yaml,/**}"),
    (_O.CI, _CI, "cloudbuild.{yml,yaml,json} buildspec.{yml,yaml} netlify.toml vercel.json"),
    # Installing and building
    (_O.INSTALL, _FETCH, ".npmrc .yarnrc{,.yml} .yarn/{releases,plugins,sdks}/** .pnp.*js"),
    (_O.INSTALL, _FETCH, ".pnpmfile.*js pnpm-workspace.{yml,yaml} bunfig.toml deno.json{,c}"),
    (_O.INSTALL, _FETCH, "gemfile *.gemfile gems.rb .bundle/config composer.json nuget.config"),
    (_O.INSTALL, _FETCH, "pipfile pip.conf uv.toml rust-toolchain{,.toml} global.json"),
    (_O.INSTALL, _FETCH, "{,.config/}dotnet-tools.json"),
    (_O.INSTALL, "runs when the package is installed or built", "setup.py"),
    (_O.INSTALL, _BUILD, "build.rs .cargo/config{,.toml} conanfile.{py,txt} extconf.rb *.gemspec"),
    (_O.INSTALL, _BUILD, "{build,settings,init}.gradle{,.kts} *.gradle{,.kts} gradle.properties"),
    (
        _O.INSTALL,
        _BUILD,
        "gradlew{,.bat} gradle/wrapper/** buildsrc/** mvnw{,.cmd} .mvn/** pom.xml",
    ),
    (_O.INSTALL, _BUILD, "directory.{build,packages}.* *.{csproj,fsproj,vbproj,vcxproj,targets}"),
    (
        _O.INSTALL,
        _BUILD,
        "cmakelists.txt cmake{,user}presets.json *.cmake meson{.build,_options.txt}",
    ),
    (_O.INSTALL, _BUILD, "configure configure.{ac,in} autogen.sh build.xml *.gyp *.gypi"),
    (_O.INSTALL, _BUILD, "build build.bazel workspace{,.bazel} module.bazel *.bzl {,*}.bazelrc"),
    (_O.INSTALL, _BUILD, "tools/bazel build.sbt project/*.sbt project/build.properties"),
    (_O.INSTALL, _BUILD, "package.swift podfile cartfile mix.exs rebar.config"),
    (_O.INSTALL, _BUILD, "sconstruct sconscript wscript hatch_build.py noxfile.py tox.{ini,toml}"),
    (_O.INSTALL, _BUILD, "/{tasks,dodo,fabfile}.py rakefile *.rake {gulp,grunt,jake}file{,.*}"),
    (_O.INSTALL, _BUILD, "turbo.json nx.json lerna.json magefile.go"),
    # Tests, and tools that load code along with their settings
    (_O.TESTS, _TESTS, "conftest.py {,.}pytest.{ini,toml}"),
    (_O.TESTS, _TOOL, f"{{jest,vitest,karma,ava}}.{{config,setup,workspace}}{{,.*}}.{_JS}"),
    (_O.TESTS, _TOOL, f"{{playwright,cypress}}.{{config,setup}}{{,.*}}.{_JS} cypress/plugins/**"),
    (_O.TESTS, _TOOL, f"{{vite,webpack,rollup,rspack,esbuild,metro,tsup}}.config{{,.*}}.{_JS}"),
    (_O.TESTS, _TOOL, f"{{next,nuxt,astro,svelte,remix,vue,postcss,tailwind}}.config.{_JS}"),
    (_O.TESTS, _TOOL, f"{{babel,eslint,prettier,stylelint,commitlint,release}}.config.{_JS}"),
    (_O.TESTS, _TOOL, f"{{webpack,rollup,babel,eslint,prettier,vite}}.setup.{_JS}"),
    (_O.TESTS, _TOOL, "{jest,babel,eslint}.config.json cypress.json .{mocha,nyc,c8,swc}rc{,.*}"),
    (_O.TESTS, _TOOL, ".{eslint,babel,prettier,stylelint,postcss,commitlint}rc{,.*}"),
    (_O.TESTS, _TOOL, ".storybook/** nodemon.json .nodemonrc {.,}pylintrc .rubocop.yml .rspec"),
    (_O.TESTS, _TOOL, "phpunit.xml{,.dist} guardfile .{gdbinit,lldbinit,pdbrc,irbrc,pryrc}"),
    # The rest
    (_O.PYTHON, "runs whenever Python starts here", "{site,user}customize.py"),
    (_O.PYTHON, "can run whenever Python starts", "*.pth"),
    (_O.CONTAINER, _IMAGE, "{docker,container}file* *.dockerfile earthfile"),
    (_O.CONTAINER, _STARTS, "{,docker-}compose*.{yml,yaml} vagrantfile tiltfile"),
    (_O.CONTAINER, _STARTS, "{devfile,skaffold}.{yml,yaml}"),
    (_O.MAKE, "runs with make", "{,gnu}makefile makefile.{am,in,inc} *.mk {,.}justfile *.just"),
    (_O.MAKE, "runs with make", "taskfile{,.dist}.{yml,yaml}"),
)
_FILES_BY_LINES: Final = (
    (
        Known(
            _O.INSTALL,
            "changes how the package is built or which programs it brings",
            re.compile(
                rb"[-+]\s*(?:\[build-system\]|requires\s*=|build-backend|backend-path"
                rb"|\[tool\.hatch\.build|\[tool\.(?:setuptools|poetry|pdm|poe|taskipy|tox)\b"
                rb"|\[project\.(?:scripts|entry-points|gui-scripts)|\[tool\.poetry\.scripts\]"
                rb"|build\s*=|script\s*=)"
            ),
        ),
        "pyproject.toml setup.cfg",
    ),
    (
        Known(
            _O.INSTALL,
            "changes what runs when the package is built",
            re.compile(
                rb"[-+]\s*(?:build\s*=|proc-macro\s*=|links\s*=|\[.*build-dependencies|\[patch)"
            ),
        ),
        "cargo.toml",
    ),
)


def known(path: str) -> Known | None:
    """What is known of a file by its path, in small letters."""
    parts = path.split("/")
    table = _table()
    found = [table.ends.get("/".join(parts[at:])) for at in range(len(parts))]
    found.append(table.ends.get("/" + path))
    for start in range(len(parts) - 1):
        found += [
            table.folders.get("/".join(parts[start:end]))
            for end in range(start + 1, min(len(parts), start + 1 + _DEEPEST))
        ]
    found += [rank for rank, form in table.forms if form.fullmatch(path)]
    ranks = [rank for rank in found if rank is not None]
    return table.kinds[min(ranks)] if ranks else None


_DEEPEST: Final = 3
"""How many names the folder of a pattern has at most."""


@dataclass(frozen=True, slots=True)
class _Table:
    """The patterns, each with the rank of its kind: ends of paths, folders, and the rest."""

    kinds: list[Known]
    ends: dict[str, int]
    folders: dict[str, int]
    forms: list[tuple[int, re.Pattern[str]]]


@cache
def _table() -> _Table:
    kinds = [(Known(occasion, detail), patterns) for occasion, detail, patterns in _FILES]
    table = _Table([], {}, {}, [])
    for rank, (kind, patterns) in enumerate((*kinds, *_FILES_BY_LINES)):
        table.kinds.append(kind)
        plain = [one for pattern in patterns.split() for one in _alternatives(pattern)]
        wild = []
        for pattern in plain:
            folder = pattern.removesuffix("/**")
            if "*" in folder:
                wild.append(_expression(pattern))
            elif folder != pattern:
                table.folders.setdefault(folder, rank)
            else:
                table.ends.setdefault(pattern, rank)
        if wild:
            table.forms.append((rank, re.compile(rf"(?:.*/)?(?:{'|'.join(wild)})", re.DOTALL)))
    return table


def _alternatives(pattern: str) -> list[str]:
    """``a{b,c}`` is ``ab`` and ``ac``."""
    before, brace, rest = pattern.partition("{")
    if not brace:
        return [pattern]
    words, _, after = rest.partition("}")
    return [before + word + end for word in words.split(",") for end in _alternatives(after)]


def _expression(pattern: str) -> str:
    parts = {"/**": "/.+", "*": "[^/]*"}
    return "".join(parts.get(part, re.escape(part)) for part in re.split(r"(/\*\*|\*)", pattern))
