"""CLIs are looked for as they are, and their services where this machine's tools look for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentcanvas.agents.cli.find import find, folders_of, version_in
from agentcanvas.agents.cli.providers import ANTHROPIC, OPENAI, Api, provider_for
from agentcanvas.app.clis import CLIS, adapter_of, choose
from agentcanvas.errors import FlowError
from agentcanvas.flows.team import Runtime

pytestmark = [pytest.mark.anyio, pytest.mark.req("S2")]


def tool(folder: Path, name: str, script: str, mode: int = 0o755) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(mode)
    return {"PATH": f"{folder}:/bin:/usr/bin"}


@pytest.mark.parametrize(
    ("words", "version"),
    [
        ("2.1.325 (Claude Code)", (2, 1, 325)),
        ("codex-cli 0.166.0", (0, 166, 0)),
        ("aider 0.86.2", (0, 86, 2)),
        (" 1.34.0\n", (1, 34, 0)),
        ("v22.21.1", (22, 21, 1)),
        ("no number", ()),
    ],
)
def test_a_version_is_read_out_of_what_a_program_says(words: str, version: tuple[int, ...]) -> None:
    assert version_in(words) == version


@pytest.mark.parametrize(
    ("script", "mode", "problem"),
    [
        ("echo 0.1.0", 0o755, "is too old"),
        ("exit 9", 0o755, "does not run here (exit code 9)"),
        ("echo 2.1.0", 0o644, "is not executable; chmod +x it"),
    ],
)
async def test_what_is_wrong_with_one_is_told_with_the_next_step(
    tmp_path: Path, script: str, mode: int, problem: str
) -> None:
    environ = tool(tmp_path / "tools", "claude", script, mode)
    found = await find(adapter_of("claude").facts, environ)
    assert not found.usable
    assert problem in found.problem


async def test_a_missing_one_is_told_with_how_it_is_installed(tmp_path: Path) -> None:
    found = await find(adapter_of("gemini").facts, {"PATH": str(tmp_path)})
    assert found.problem.endswith("install it: npm install -g @google/gemini-cli")


async def test_its_version_is_asked_for_in_a_home_of_its_own(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    environ = tool(tmp_path / "tools", "claude", f'echo "$HOME" > {seen}; echo 2.1.0')
    assert (await find(adapter_of("claude").facts, environ | {"HOME": "/mine"})).version == (
        2,
        1,
        0,
    )
    assert seen.read_text().strip() != "/mine"


async def test_a_node_that_is_too_old_is_told(tmp_path: Path) -> None:
    environ = tool(tmp_path / "tools", "kimi", "echo 2.1.0")
    tool(tmp_path / "tools", "node", "echo v20.1.0")
    found = await find(adapter_of("kimi").facts, environ)
    assert "needs Node.js 22.19, this is 20.1.0" in found.problem


def test_a_package_is_readable_as_a_whole_and_nothing_else(tmp_path: Path) -> None:
    package = tmp_path / "x" / "node_modules" / "tool" / "bin"
    package.mkdir(parents=True)
    (package / "tool.js").write_text("")
    link = tmp_path / "tool"
    link.symlink_to(package / "tool.js")
    (bind,) = folders_of(str(link), tmp_path / "workspace")
    assert bind.source == tmp_path / "x" / "node_modules"


# --- auto ---------------------------------------------------------------------------------------


def test_auto_takes_the_first_in_order_that_is_here_and_has_a_key(tmp_path: Path) -> None:
    environ = tool(tmp_path / "tools", "codex", "") | {"ANTHROPIC_API_KEY": "k"}
    tool(tmp_path / "tools", "claude", "")
    tool(tmp_path / "tools", "opencode", "")
    assert choose(Runtime(), environ).adapter.facts.id == "claude"
    assert (
        choose(Runtime(), environ, ["codex", "opencode", "claude"]).adapter.facts.id == "opencode"
    )


def test_auto_says_what_each_lacks(tmp_path: Path) -> None:
    environ = tool(tmp_path / "tools", "codex", "")
    with pytest.raises(FlowError, match="export OPENAI_API_KEY or CODEX_API_KEY, or agentcanvas"):
        choose(Runtime(), environ)
    with pytest.raises(FlowError, match="No coding CLI was found"):
        choose(Runtime(), {"PATH": str(tmp_path)})


@pytest.mark.parametrize("cli", CLIS)
def test_every_cli_is_known_by_its_own_name(cli: str) -> None:
    facts = adapter_of(cli).facts
    assert facts.id == cli
    assert facts.programs
    assert facts.install


# --- services -----------------------------------------------------------------------------------


def test_the_first_service_whose_key_is_there_is_asked() -> None:
    assert provider_for((ANTHROPIC, OPENAI), {"OPENAI_API_KEY": "k"}) == OPENAI
    assert provider_for((ANTHROPIC, OPENAI), {}) is None


@pytest.mark.parametrize(
    ("url", "api", "base"),
    [
        ("http://127.0.0.1:11434/v1", "chat", "http://127.0.0.1:11434/v1"),
        ("http://127.0.0.1:11434", "chat", "http://127.0.0.1:11434/v1"),
        ("https://gateway.example.org/anthropic/v1/", "", "https://gateway.example.org/anthropic"),
    ],
)
def test_an_address_of_ones_own_is_brought_into_the_form_of_its_format(
    url: str, api: str, base: str
) -> None:
    found = provider_for((ANTHROPIC, OPENAI), {}, url=url, key_env="MINE", api=api)
    assert found is not None
    assert found.api is (Api(api) if api else Api.ANTHROPIC)
    assert found.base(found.endpoint.url) == base
    assert bool(found.endpoint.within) == url.startswith("http://127.")


def test_a_gateway_that_the_environment_names_is_asked_in_its_vendors_place() -> None:
    environ = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "https://gateway.example.org"}
    found = provider_for((ANTHROPIC,), environ)
    assert found is not None
    assert found.endpoint.url == "https://gateway.example.org"
    assert found.endpoint.header == ANTHROPIC.endpoint.header
