"""What the files around the code promise each other: README, Makefile, CI, lock file, documents."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
CI = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")

APACHE_2 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
CODE_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def blocks(page: str, language: str) -> Iterator[str]:
    return (text for name, text in CODE_BLOCK.findall(page) if name == language)


def make(*words: str) -> str:
    told = subprocess.run(["make", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return told.stdout


def documents() -> list[Path]:
    return [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]


def test_the_readme_begins_with_the_two_commands() -> None:
    assert next(blocks(README, "sh")).splitlines() == ["make demo", "make test"]


def test_ci_runs_the_test_command_of_the_readme_word_for_word() -> None:
    _, test_command = next(blocks(README, "sh")).splitlines()
    commands = [line for line in CI.splitlines() if line.startswith("make ")]
    assert commands[0] == test_command


def test_ci_and_make_check_do_the_same() -> None:
    (steps,) = re.findall(r"^check: (.*?) ##", MAKEFILE, re.MULTILINE)
    assert re.findall(r"^make (\S+)$", CI, re.MULTILINE) == steps.split()


def test_ci_stops_at_the_first_failure() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert "\nset -euo pipefail\n" in CI


def test_make_alone_lists_every_target() -> None:
    (declared,) = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    listed = [line.split()[1] for line in make().splitlines()]
    assert sorted(listed) == sorted(declared.replace("\\\n", " ").split())
    assert make() == make("help")


@pytest.mark.parametrize("page", documents(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_target_a_document_names_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
    text = page.read_text(encoding="utf-8")
    named = re.findall(r"`make ([a-z-]+)", text)
    named += [word for block in blocks(text, "sh") for word in re.findall(r"^make (\S+)", block)]
    assert set(named) <= targets


@pytest.mark.parametrize("page", documents(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = LINK.findall(page.read_text(encoding="utf-8"))
    broken = [
        link for link in links if "://" not in link and not (page.parent / link).resolve().exists()
    ]
    assert not broken


def test_the_index_lists_every_document() -> None:
    folder = ROOT / "docs"
    listed = {
        (index.parent / link).resolve()
        for index in folder.rglob("README.md")
        for link in LINK.findall(index.read_text())
    }
    missing = [
        str(page.relative_to(folder))
        for page in folder.rglob("*.md")
        if page not in listed and page.name != "README.md"
    ]
    assert not missing, f"list in docs/README.md: {', '.join(missing)}"


def test_design_notes_have_a_number_each() -> None:
    names = sorted(page.name for page in (ROOT / "docs" / "design").glob("*.md"))
    numbers = [name.split("-")[0] for name in names]
    assert all(re.fullmatch(r"\d{4}-[a-z0-9-]+\.md", name) for name in names), names
    assert len(set(numbers)) == len(numbers), names


def test_the_map_in_the_readme_shows_the_packages_that_exist_and_no_others() -> None:
    (folder_map,) = (block for block in blocks(README, "text") if "src/agentcanvas/" in block)
    shown = {name.rstrip("/") for name in re.findall(r"^  (\S+)", folder_map, re.MULTILINE)}
    package = ROOT / "src" / "agentcanvas"
    exist = {path.parent.name for path in package.glob("*/__init__.py")}
    exist |= {path.name for path in package.glob("*.py") if not path.name.startswith("_")}
    assert shown == exist


def test_every_locked_package_has_hashes_and_no_address() -> None:
    requirements = re.findall(r"^[A-Za-z0-9].*(?:\n    --hash.*)*", LOCK, re.MULTILINE)
    without = [text.split()[0] for text in requirements if "--hash=sha256:" not in text]
    assert requirements
    assert not without
    assert "://" not in LOCK
    assert "--index" not in LOCK


def test_every_declared_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    names = {normal(re.split(r"[<>=~! \[;]", requirement)[0]) for requirement in declared}
    locked = {normal(name) for name in re.findall(r"^([\w.-]+)==", LOCK, re.MULTILINE)}
    assert names <= locked, f"run make lock: {names - locked}"


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_licence_is_the_whole_apache_text() -> None:
    assert hashlib.sha256((ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", changelog, re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", text) for text in headings[1:])
