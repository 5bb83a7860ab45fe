"""Files that decide what a check does, each group with the reason that people are told.

A table to add to. A pattern is for a whole path as a forgetful disk sees it, in small letters; it
may begin in any folder, or with ``_TOP`` in the one where a check starts only. Files that are in
here without need cost a question where changes are approved automatically; one that is missing
lets a change bring its own judge.
"""

from __future__ import annotations

import re
from typing import Final

_TOP: Final = "^"

_GROUPS: Final = {
    "sets how Python's tests are run": (
        r"conftest\.py",
        r"\.?pytest\.(?:ini|toml)",
        r"pyproject\.toml|setup\.(?:cfg|py)|tox\.(?:ini|toml)|noxfile\.py",
        r"hatch\.toml|uv\.toml|poetry\.toml|pdm\.toml|pixi\.toml|pyvenv\.cfg",
        r"\.coveragerc|\.noserc|nose\.cfg|unittest\.cfg",
        r"[^/]+\.(?:dist|egg)-info/.+",  # plugins of pytest are found by these
    ),
    "runs whenever Python starts": (r"(?:site|user)customize(?:\.py|/.+)", r"[^/]+\.pth"),
    "takes the place of what Python's test tools are made of": (
        _TOP + r"(?:unittest|doctest|_?pytest)(?:\.[^/]+|/.+)",
        _TOP + r"(?:pluggy|iniconfig|exceptiongroup|packaging|pygments|colorama|tomli|pytest_[^/]+)"
        r"(?:\.py|/__init__\.py)",
    ),
    "sets how JavaScript's tests are run": (
        r"package\.json|\.npmrc|\.yarnrc(?:\.ya?ml)?|\.yarn/.+|\.pnp\.[cm]?js|\.pnp\.loader\.mjs",
        r"\.pnpmfile\.[cm]?js|pnpm-workspace\.ya?ml|bunfig\.toml|deno\.jsonc?",
        r"(?:jest|vitest|vite|karma|playwright|cypress|ava|nyc|babel|webpack|rollup|rspack|wdio"
        r"|nightwatch|testcafe|web-test-runner|tap|uvu|jasmine|protractor)"
        r"(?:[.-](?:config|conf|setup|workspace|preset)[^/]*)\.(?:[cm]?[jt]s|json)",
        r"cypress\.json|jasmine\.json|jest\.json",
        r"\.(?:mocha|nyc|c8|tap|babel|swc)rc(?:\.[^/]+)?",
        r"setup-?tests?\.[cm]?[jt]sx?",
        r"[jt]sconfig[^/]*\.json",
        r"(?:nx|project|turbo|lerna|rush)\.json",
        r"__mocks__/.+",  # jest takes these instead of what they are named like
    ),
    "sets how Rust's tests are run": (
        r"cargo\.toml|\.cargo/.+|build\.rs|rust-toolchain(?:\.toml)?|\.config/nextest\.toml",
    ),
    "sets how Go's tests are run": (
        r"go\.(?:mod|work|env)",
        _TOP + r"vendor/.+",  # what tests import is taken from here, too
    ),
    "holds the commands of checks": (
        r"(?:gnu)?makefile|[^/]+\.mk|\.?justfile|taskfile\.ya?ml|rakefile|earthfile",
        r"\.pre-commit-config\.ya?ml",
    ),
    "sets how tests are built and run": (
        r"cmakelists\.txt|ctest[^/]*\.cmake|[^/]+\.cmake|meson\.build|configure(?:\.ac)?",
        r"pom\.xml|\.mvn/.+|mvnw|build\.xml|(?:build|settings)\.gradle(?:\.kts)?|gradlew"
        r"|gradle\.properties|gradle/wrapper/.+|build\.sbt",
        r"build(?:\.bazel)?|workspace(?:\.bazel)?|module\.bazel|[^/]+\.bzl|\.bazelrc",
        r"phpunit[^/]*\.xml(?:\.dist)?|composer\.json|gemfile|\.rspec|[^/]+\.runsettings",
        r"directory\.build\.(?:props|targets)|global\.json|nuget\.config|mix\.exs|test_helper\.exs",
        r"package\.swift|pubspec\.ya?ml|dart_test\.ya?ml|deps\.edn|project\.clj|stack\.ya?ml",
    ),
    "chooses which version of a tool runs": (
        r"\.tool-versions|\.?mise\.toml|\.mise/.+|\.(?:python|node|ruby|go|java)-version|\.nvmrc",
    ),
    "sets variables that tools read": (r"\.env(?:\.[^/]+)?",),
    "sets what a linter lets pass": (
        r"\.?mypy\.ini|\.?ruff\.toml|\.flake8|\.?pylintrc(?:\.toml)?|pyrightconfig\.json|\.bandit",
        r"\.eslintrc(?:\.[^/]+)?|eslint\.config\.[cm]?[jt]s|\.eslintignore|biome\.jsonc?"
        r"|\.prettierrc(?:\.[^/]+)?|\.stylelintrc(?:\.[^/]+)?|tslint\.json",
        r"\.?clippy\.toml|\.?rustfmt\.toml|\.golangci\.(?:ya?ml|toml|json)|\.rubocop\.ya?ml"
        r"|\.clang-(?:tidy|format)|\.shellcheckrc|\.editorconfig",
    ),
}


def _compiled(pattern: str) -> re.Pattern[str]:
    at_top = pattern.startswith(_TOP)
    return re.compile(f"(?:{pattern.removeprefix(_TOP)})" if at_top else f"(?:.*/)?(?:{pattern})")


STEERING_FILES: Final = {
    reason: tuple(map(_compiled, patterns)) for reason, patterns in _GROUPS.items()
}
