"""``agentcanvas doctor``: each subject on one line, and a failure only where a run would fail."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import venv
from pathlib import Path

import pytest

from agentcanvas.app.doctor import Finding, Grade, examine
from agentcanvas.app.workspace import ensure_folder, store_path
from agentcanvas.cli import app
from agentcanvas.store import Store
from tests.cli.test_flow import BAD, Place

pytestmark = pytest.mark.anyio

SUBJECTS = [
    "python", "git", "confinement", "workspace", "disk", "settings", "flows", "trust", "checks",
    "coding CLIs", "store", "port 7717", "UI",
]  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def found(place: Place, *, port: int = 0, **environ: str) -> dict[str, Finding]:
    given = {"HOME": str(place.home), "PATH": os.environ["PATH"], **environ}
    findings = await examine(place.root, given, port=port)
    return {finding.subject: finding for finding in findings}


def git(place: Place, *words: str) -> None:
    subprocess.run(["git", *words], cwd=place.root, check=True, capture_output=True)


def test_every_subject_has_one_line_with_a_grade(place: Place) -> None:
    done = place.run("doctor")
    lines = done.stdout.partition("\n\n")[0].splitlines()
    assert [line[6:].split("  ")[0].strip() for line in lines] == SUBJECTS
    assert {line.split()[0] for line in lines} <= {"ok", "warn", "fail"}
    failed = any(line.startswith("fail") for line in lines)
    assert done.returncode == (1 if failed else 0)


def test_in_a_terminal_a_long_line_goes_on_below_itself(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.root)
    for name, value in {"TTY_COMPATIBLE": "1", "NO_COLOR": "1", "COLUMNS": "60"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        app(["doctor"])
    table = capsys.readouterr().out.replace("\x1b[1m", "").replace("\x1b[0m", "")
    lines = table.partition("\n\n")[0].splitlines()
    assert len(lines) > len(SUBJECTS)
    assert all(len(line) <= 60 for line in lines)
    assert all(line[:4].strip() in {"ok", "warn", "fail", ""} for line in lines)


def test_json_holds_the_same_for_programs(place: Place) -> None:
    done = place.run("doctor", "--json")
    told = json.loads(done.stdout)
    assert [finding["subject"] for finding in told["findings"]] == SUBJECTS
    assert told["workspace"] == str(place.root.resolve())
    assert told["ok"] is (done.returncode == 0)


def test_looking_changes_nothing(place: Place) -> None:
    place.run("doctor")
    assert list(place.root.iterdir()) == []
    assert list(place.home.iterdir()) == []


def test_without_git_nothing_can_run_and_that_is_said(place: Place, tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    done = place.run("doctor", PATH=str(empty))
    assert done.returncode == 1
    assert "fail  git" in done.stdout
    assert "Fix what says fail" in done.stdout


async def test_the_confinement_that_is_used_is_named(place: Place) -> None:
    finding = (await found(place))["confinement"]
    assert finding.sentence
    if shutil.which("bwrap") and finding.grade is not Grade.FAIL:
        assert finding.sentence.startswith(("bubblewrap", "landlock"))


@pytest.mark.req("D43")
@pytest.mark.parametrize("said", [":/lib", "/lib:", "/a::/b", ".", "src"])
async def test_a_python_path_that_depends_on_the_folder_is_a_warning(
    place: Place, said: str
) -> None:
    finding = (await found(place, PYTHONPATH=said))["python"]
    assert finding.grade is Grade.WARN
    assert "any Python takes modules from the folder you are in" in finding.sentence
    assert "PYTHONPATH" in finding.next_step


@pytest.mark.parametrize("said", ["", "/lib", "/a:/b"])
async def test_a_python_path_of_whole_paths_is_fine(place: Place, said: str) -> None:
    assert (await found(place, PYTHONPATH=said))["python"].grade is Grade.OK


# The workspace ----------------------------------------------------------------------------------


async def test_a_folder_without_git_is_a_warning_with_a_way_out(place: Place) -> None:
    finding = (await found(place))["workspace"]
    assert finding.grade is Grade.WARN
    assert "git init" in finding.next_step


async def test_a_clean_and_a_dirty_repository_are_told_apart_and_both_fine(place: Place) -> None:
    git(place, "init", "-q")
    clean = (await found(place))["workspace"]
    (place.root / "new.txt").write_text("x")
    dirty = (await found(place))["workspace"]
    assert (clean.grade, dirty.grade) == (Grade.OK, Grade.OK)
    assert clean.sentence.endswith("a clean git repository")
    assert "uncommitted" in dirty.sentence


async def test_something_in_the_place_of_our_folder_is_in_the_way(place: Place) -> None:
    (place.root / ".agentcanvas").write_text("")
    assert (await found(place))["workspace"].grade is Grade.FAIL
    assert place.run("doctor").returncode == 1


async def test_a_read_only_workspace_is_in_the_way(place: Place) -> None:
    place.root.chmod(0o500)
    try:
        if os.access(place.root, os.W_OK):
            pytest.skip("this user may write everywhere")
        finding = (await found(place))["workspace"]
    finally:
        place.root.chmod(0o700)
    assert finding.grade is Grade.FAIL
    assert "read-only" in finding.sentence


async def test_settings_that_cannot_be_read_are_in_the_way(place: Place) -> None:
    (place.root / "agentcanvas.yaml").write_text("heartbeat: {intervall_s: 1}")
    finding = (await found(place))["settings"]
    assert finding.grade is Grade.FAIL
    assert finding.sentence.endswith("did you mean heartbeat.interval_s?")


def test_flows_are_not_blamed_for_settings_that_cannot_be_read(place: Place) -> None:
    place.run("flow", "new")
    (place.root / "agentcanvas.yaml").write_text("heartbeat: {intervall_s: 1}")
    assert place.run("trust", "--yes").returncode == 0
    said = next(
        line for line in place.run("doctor").stdout.splitlines() if line.startswith("warn  flows")
    )
    assert "heartbeat" not in said
    assert said.endswith("→ mend the settings, then look again")


async def test_settings_that_nobody_has_trusted_are_a_warning(place: Place) -> None:
    (place.root / "agentcanvas.yaml").write_text("queue: {messages: 5}\n")
    finding = (await found(place))["settings"]
    assert (finding.grade, finding.next_step) == (Grade.WARN, "agentcanvas trust")
    assert place.run("trust", "--yes").returncode == 0
    assert (await found(place))["settings"].sentence == "set: queue.messages"


async def test_flows_with_errors_and_untrusted_ones_are_warnings(place: Place) -> None:
    place.write("bad", BAD)
    findings = await found(place)
    assert findings["flows"] == Finding(
        "flows", Grade.WARN, "with errors: bad", "agentcanvas flow check"
    )
    assert findings["trust"].grade is Grade.WARN
    assert "agentcanvas trust" in findings["trust"].sentence


async def test_a_flow_whose_team_cannot_start_is_told_before_a_run(place: Place) -> None:
    text = "version: 0.2\nagents: [{id: a, runtime: {kind: a2a, url: 'http://x'}}]\n"
    place.write("far", text)
    finding = (await found(place))["flows"]
    assert finding.grade is Grade.WARN
    assert finding.sentence.startswith("far cannot start: The runtime 'a2a' of a")
    place.write("far", text.replace("a2a, url: 'http://x'", "human"))
    assert (await found(place))["flows"] == Finding("flows", Grade.OK, "far")


async def test_what_keeps_several_flows_from_starting_is_told_once(place: Place) -> None:
    text = "version: 0.2\nagents: [{id: a, runtime: {kind: a2a, url: 'http://x'}}]\n"
    place.write("far", text)
    place.write("near", text)
    sentence = (await found(place))["flows"].sentence
    assert sentence.startswith("far, near cannot start: The runtime 'a2a' of a")
    assert sentence.count("a2a") == 1
    assert not sentence.endswith(".")


async def test_checks_that_are_found_are_named_and_none_is_a_warning(
    place: Place, tmp_path: Path
) -> None:
    assert (await found(place))["checks"].grade is Grade.WARN
    (place.root / "go.mod").write_text("module x\n")
    tool(tmp_path / "bin", "go", "exit 1")
    told = (await found(place, PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}"))["checks"]
    assert told == Finding("checks", Grade.OK, "go test ./...")


async def test_what_a_check_lacks_is_told_with_how_to_mend_it(place: Place, tmp_path: Path) -> None:
    (place.root / "conftest.py").write_text("")
    venv.create(tmp_path / "bare", symlinks=True)
    told = (await found(place, PATH=f"{tmp_path / 'bare/bin'}:{os.environ['PATH']}"))["checks"]
    assert told.grade is Grade.WARN
    assert told.sentence == (
        "python3 -m pytest; pytest is not installed for python3, as it is seen in a sandbox"
    )
    assert ".venv/bin/python -m pip install pytest" in told.next_step


# The machine ------------------------------------------------------------------------------------


def tool(folder: Path, name: str, script: str, mode: int = 0o755) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(mode)


async def test_each_coding_cli_is_told_with_its_version_its_key_and_what_would_mend_it(
    place: Place, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tool(tools, "claude", "echo '2.1.325 (Claude Code)'")
    tool(tools, "codex", "echo codex-cli 0.9.1")
    tool(tools, "opencode", "echo 1.18.33")
    tool(tools, "aider", "exit 3")
    tool(tools, "pi", "echo never", 0o644)
    tool(tools, "unknown-cli", "")
    findings = await found(place, PATH=f"{tools}:/bin:/usr/bin", ANTHROPIC_API_KEY="k")
    assert findings["coding CLIs"].sentence == "can be used: claude, opencode"
    claude = findings["claude"]
    assert (claude.grade, claude.next_step) == (Grade.OK, "")
    assert claude.sentence == "2.1.325 (tried on 2026-11-18), key in ANTHROPIC_API_KEY"
    codex = findings["codex"]
    assert codex.grade is Grade.WARN
    assert codex.sentence == "Codex 0.9.1 is too old, 0.100 is the oldest that can be driven"
    assert codex.next_step == "install it: npm install -g @openai/codex"
    assert findings["aider"].sentence.endswith("does not run here (exit code 3)")
    assert findings["pi"].sentence.endswith("tools/pi is not executable")
    assert findings["pi"].next_step == "chmod +x it"
    assert not {"gemini", "unknown-cli"} & set(findings)


async def test_without_a_key_the_fix_names_key_and_login(place: Place, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    assert (await found(place, PATH=str(tools)))["coding CLIs"].grade is Grade.WARN
    tool(tools, "claude", "echo 2.1.325")
    findings = await found(place, PATH=str(tools))
    assert findings["coding CLIs"].sentence == "none of them can be used yet"
    assert findings["claude"].next_step == (
        "export ANTHROPIC_API_KEY or CLAUDE_CODE_OAUTH_TOKEN, or agentcanvas login claude"
    )


async def test_a_login_that_was_made_for_agentcanvas_is_a_way(place: Place, tmp_path: Path) -> None:
    tools, data = tmp_path / "tools", tmp_path / "data"
    tool(tools, "codex", "echo 0.166.0")
    home = data / "agentcanvas" / "logins" / "codex"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "auth.json").write_text("{}")
    findings = await found(place, PATH=str(tools), XDG_DATA_HOME=str(data))
    assert findings["codex"].sentence.endswith(f"login in {home}")


async def test_a_port_in_use_is_a_warning_only(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        finding = (await found(place, port=port))[f"port {port}"]
    assert (finding.grade, finding.sentence) == (Grade.WARN, "in use")
    assert (await found(place, port=port))[f"port {port}"].grade is Grade.OK


# The store --------------------------------------------------------------------------------------


async def test_a_store_is_examined_and_its_holder_named(place: Place) -> None:
    ensure_folder(place.root)
    assert (await found(place))["store"].sentence.startswith("none yet")
    async with await Store.open(store_path(place.root)):
        held = (await found(place))["store"]
    assert (held.grade, held.sentence) == (Grade.OK, f"whole; in use by process {os.getpid()}")
    assert (await found(place))["store"] == Finding("store", Grade.OK, "whole")


async def test_looking_does_not_keep_a_server_from_taking_the_store(place: Place) -> None:
    ensure_folder(place.root)
    async with await Store.open(store_path(place.root)):
        pass
    await found(place)
    async with await Store.open(store_path(place.root)) as store:
        assert await store.append("s", "k", b"{}")


async def test_a_damaged_store_is_in_the_way(place: Place) -> None:
    ensure_folder(place.root)
    store_path(place.root).write_bytes(b"not a database at all" * 100)
    finding = (await found(place))["store"]
    assert finding.grade is Grade.FAIL
    assert "agentcanvas store" in finding.next_step
    assert place.run("doctor").returncode == 1
